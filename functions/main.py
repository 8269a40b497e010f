"""Every deployed function: decorators and wiring, no decisions."""

from typing import Any

from firebase_functions import options, params

from firebreak import usage as users
from firebreak import wiring
from firebreak.callables import Call, guarded
from firebreak.gemini import spend
from firebreak.settings import GEMINI_API_KEY, TIMEOUT_S

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


@guarded(secrets=[GEMINI_API_KEY], **DEPLOYED)
def generate(call: Call) -> dict[str, Any] | spend.Pieces:
    """Answer a prompt, whole or as a stream, charged to the caller's bucket."""
    return spend.answer(
        call.data,
        user=call.user,
        streaming=call.streaming,
        knobs=call.settings,
        ledger=wiring.ledger(),
        gemini=wiring.gemini(),
    )


@guarded(**DEPLOYED)
def usage(call: Call) -> dict[str, Any]:
    """What the caller has left; costs no write."""
    return users.show(call.user, knobs=call.settings, ledger=wiring.ledger())
