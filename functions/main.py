"""Every deployed function: decorators and wiring, no decisions."""

import os
from typing import Any

from firebase_functions import options, params, scheduler_fn

from firebreak import usage as users
from firebreak import wiring
from firebreak.budgets import caps_watch
from firebreak.budgets.notice import Message
from firebreak.gemini.generate import Pieces, answer
from firebreak.guard.callables import Call, guarded
from firebreak.guard.pubsub import on_message
from firebreak.settings.settings import GEMINI_API_KEY, TIMEOUT_S
from graph import mutate as graph_mutate
from graph import traverse as graph_traverse

# Set on each function: the SDK's global options turn the CPU into a fraction and do not reach App Check.
DEPLOYED: dict[str, Any] = {
    "region": "us-central1",
    "memory": options.MemoryOption.MB_512,
    "cpu": 1,
    "min_instances": 0,
    "max_instances": 10,
    # As many calls as the server has threads: one more would wait inside the instance while its deadline runs.
    "concurrency": params.IntParam("THREADS", default=8),
    "timeout_sec": TIMEOUT_S,
    "service_account": "firebreak-functions@",
    "ingress": options.IngressSetting.ALLOW_ALL,
}


def asked_for(knob: str) -> bool:
    """Whether `functions/.env` says true. The CLI reads it before it looks for functions: all else is not deployed."""
    return os.environ.get(knob) == "true"


@guarded(spends={"gemini"}, secrets=[GEMINI_API_KEY], **DEPLOYED)
def generate(call: Call) -> dict[str, Any] | Pieces:
    """Answer a prompt, whole or as a stream, charged to the caller's bucket."""
    return answer(
        call.data,
        user=call.user,
        streaming=call.streaming,
        knobs=call.settings,
        percent=call.percent,
        ledger=wiring.ledger(),
        gemini=wiring.gemini(),
        pool=wiring.pool(),
    )


@guarded(spends=(), requests="read", **DEPLOYED)
def usage(call: Call) -> dict[str, Any]:
    """What the caller has left; costs no write."""
    return users.show(call.user, knobs=call.settings, percent=call.percent, ledger=wiring.ledger())


if asked_for("GRAPH"):

    @guarded(spends={"firestore"}, reads=1_000, writes=1_000, **DEPLOYED)
    def mutate(call: Call) -> dict[str, Any]:
        """Change the caller's own graph by a list of operations."""
        return graph_mutate.run(call.data, user_key=call.user.key, client=wiring.store())

    @guarded(spends={"firestore"}, requests="read", reads=500, writes=0, **DEPLOYED)
    def traverse(call: Call) -> dict[str, Any]:
        """Read the caller's own graph around some nodes."""
        return graph_traverse.run(call.data, user_key=call.user.key, client=wiring.store())


if os.environ.get("BUDGET_POLICIES"):

    @on_message(
        topic="budget-alerts",
        reads=500,
        writes=500,
        retry=True,
        secrets=["BUDGET_WEBHOOK_URL"] if asked_for("BUDGET_WEBHOOK") else [],
        **DEPLOYED | {"max_instances": 2, "service_account": "firebreak-alerts@"},
    )
    def on_budget_alert(message: Message) -> None:
        """Record what a budget reports, and do what its policies say."""
        wiring.budgets().respond(message)


if asked_for("WATCH_CAPS"):

    @scheduler_fn.on_schedule(
        schedule="*/5 * * * *",
        **DEPLOYED
        | {
            "max_instances": 1,
            "concurrency": 1,
            # Spelt out: the CLI hands it to Cloud Scheduler as it stands.
            "service_account": "firebreak-caps@{{ params.PROJECT_ID }}.iam.gserviceaccount.com",
        },
    )
    def watch_caps(_event: scheduler_fn.ScheduledEvent) -> None:
        """Look at the spend caps on record, and trip the switch while one is enforced."""
        caps_watch.watch(wiring.guards(), wiring.caps())
