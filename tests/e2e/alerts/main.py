"""`on_budget_alert` as it is deployed, but for a database and a webhook of the test's own."""

import os
from typing import Any

from firebase_functions import options

from firebreak.budgets import announce
from firebreak.budgets.notice import Message
from firebreak.budgets.respond import Responder
from firebreak.guard.pubsub import on_message
from firebreak.metering.client import Metered
from firebreak.settings.settings import settings

DEPLOYED: dict[str, Any] = {"region": "us-central1", "memory": options.MemoryOption.MB_512}


@on_message(topic="budget-alerts", reads=500, writes=500, retry=True, **DEPLOYED)
def on_budget_alert(message: Message) -> None:
    Responder(
        client=Metered(project=settings().project, database=os.environ["TEST_DATABASE"]),
        budgets=settings().budget_policies,
        webhook_url=os.environ.get("BUDGET_WEBHOOK_URL", ""),
        http=announce.client(certificates=os.environ["HOOK_CERTIFICATE"]),
    ).respond(message)
