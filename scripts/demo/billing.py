"""The billing stand-in as the story uses it: a budget for Firestore, what is spent of it, and who is told."""

from datetime import UTC, datetime

from scripts.clients.client import Json
from scripts.local import wire
from scripts.local.standins.billing.spend import month_start

ACCOUNT, ID = "01D4EE-079462-DFD6EC", "f12eb12e-a4f1-42eb-92ea-4f12eb12ea4f"
AMOUNT_USD = 100
FIRESTORE = "EE2C-7FAC-5E08"
TOPIC = "budget-alerts"


class Billing:
    """Of one project, at a stand-in."""

    def __init__(self, *, project: str, standins_url: str) -> None:
        self._project, self._url = project, standins_url

    def lay(self) -> None:
        """A new month, and the budget in it. Alerts alone: Google itself stops nothing."""
        self._begin_month()
        budget = {
            "displayName": "Firestore",
            "budgetFilter": {"projects": [f"projects/{self._project}"], "services": [f"services/{FIRESTORE}"]},
            "amount": {"specifiedAmount": {"units": str(AMOUNT_USD)}},
            "thresholdRules": [{"thresholdPercent": part} for part in (0.5, 0.9, 1.0)],
            "notificationsRule": {"pubsubTopic": f"projects/{self._project}/topics/{TOPIC}", "schemaVersion": "1.0"},
        }
        self._tell("budget", id=ID, budget=budget)

    def clear(self) -> None:
        """No budget, and nothing spent."""
        self._tell("budget", id=ID)
        self._begin_month()

    def spend(self, usd: int) -> int:
        """So much is spent in this month, and told once; how many notices that were."""
        return _published(self._tell("spend", project=self._project, service=FIRESTORE, amount=usd))

    def notify(self, times: int, *, history: bool = False) -> int:
        """Tell what is spent, or with `history` all that was told in this month, so many times more, shuffled."""
        asked = {"times": times, "shuffle": True} | ({"history": True} if history else {})
        return _published(self._tell("notify", **asked))

    def _begin_month(self) -> None:
        self._tell("period", start=month_start(datetime.now(UTC)).isoformat())

    def _tell(self, what: str, **fields: object) -> Json:
        answer = wire.call("POST", f"{self._url}/_billing/{what}", fields, timeout_s=60)
        if answer.status != 200:
            raise OSError(f"the billing stand-in answered {answer.status} to {what}: {answer.body.decode()}")
        return answer.json


def _published(told: Json) -> int:
    return sum(notice["delivered"] for notice in told["notices"])
