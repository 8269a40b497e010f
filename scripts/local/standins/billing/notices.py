"""How tests and the demo spend money; the caps see it, and the budgets tell it to their Pub/Sub topics.

Each is a POST with a JSON object; bad input is answered 400 and names the field. What was published is the answer.

- `/_billing/spend` `{project, service, amount, forecast?, publish?, times?, shuffle?}`: what the pair cost in this
  period. `publish: false` tells nobody; each notice goes out `times` times, in any order if `shuffle`.
- `/_billing/notify` `{times?, shuffle?, history?}`: the present status once more; with `history` each of this period.
- `/_billing/anomaly` `{topic?}`: a cost anomaly, to the topics of all budgets or to this one.
- `/_billing/period` `{start?, liftsEnforced?}`: the next month begins: nothing is spent, lifted caps are armed again.
  Of an enforced cap the sources say both: it stays enforced unless `liftsEnforced`.
"""

import random
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from aiohttp import web

from scripts.local.layout import PROJECT
from scripts.local.standins.admin.iam import Policies
from scripts.local.standins.admin.pubsub_topics import TOPIC, Topics
from scripts.local.standins.billing import spend as billing_spend
from scripts.local.standins.billing.accounts import ACCOUNT, Accounts
from scripts.local.standins.billing.api import PUBLISHER
from scripts.local.standins.billing.budgets import Budgets
from scripts.local.standins.billing.catalog import Catalog
from scripts.local.standins.billing.spend import Ledger, Notice
from scripts.local.standins.control_input import bad, take
from scripts.local.standins.jsonfront import BOOL, DOUBLE, INT32, STRING

_HOW = {"times": INT32, "shuffle": BOOL}


class BillingNotices:
    """The handlers; `history` is every status that was told in this period."""

    def __init__(
        self,
        ledger: Ledger,
        budgets: Budgets,
        accounts: Accounts,
        catalog: Catalog,
        *,
        topics: Topics,
        policies: Policies,
    ) -> None:
        self._ledger, self._budgets, self._accounts, self._catalog = ledger, budgets, accounts, catalog
        self._topics, self._policies = topics, policies
        self.history: list[Notice] = []

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/_billing/spend", self._spend),
            web.post("/_billing/notify", self._notify),
            web.post("/_billing/anomaly", self._anomaly),
            web.post("/_billing/period", self._period),
        ]

    def reset(self) -> None:
        self.history.clear()

    async def _spend(self, request: web.Request) -> web.StreamResponse:
        required = {"project": STRING, "service": STRING, "amount": DOUBLE}
        given = await take(request, required, {"forecast": DOUBLE, "publish": BOOL, **_HOW})
        pair = self._pair(given.get("project", ""), given.get("service", ""))
        self._ledger.costs[pair] = _money("amount", given.get("amount", 0.0))
        if "forecast" in given:
            self._ledger.forecasts[pair] = _money("forecast", given["forecast"])
        self._budgets.settle()
        silent = (await request.json()).get("publish") is False
        return await self._publish([] if silent else self._statuses(), given)

    async def _notify(self, request: web.Request) -> web.StreamResponse:
        given = await take(request, {}, {"history": BOOL, **_HOW})
        statuses = list(self.history) if "history" in given else self._statuses()
        return await self._publish(statuses, given)

    async def _anomaly(self, request: web.Request) -> web.StreamResponse:
        given = await take(request, {}, {"topic": STRING, **_HOW})
        topics = {record.topic for record in self._budgets.records.values() if record.topic}
        if "topic" in given:
            if not TOPIC.fullmatch(given["topic"]):
                raise bad("topic", "is projects/{id}/topics/{id}")
            topics = {given["topic"]}
        return await self._publish([billing_spend.anomaly(topic, ACCOUNT, PROJECT) for topic in sorted(topics)], given)

    async def _period(self, request: web.Request) -> web.StreamResponse:
        given = await take(request, {}, {"start": STRING, "liftsEnforced": BOOL})
        try:
            given_start = datetime.fromisoformat(given["start"]) if "start" in given else None
        except ValueError:
            raise bad("start", "is a time like 2026-12-01T08:00:00Z") from None
        if given_start is not None and given_start.tzinfo is None:
            raise bad("start", "has a time zone")
        self._ledger.renew(given_start or billing_spend.next_month(self._ledger.start))
        self.history.clear()
        self._budgets.renew(lifts_enforced=given.get("liftsEnforced", False))
        return web.json_response({"start": self._ledger.start.isoformat()})

    def _statuses(self) -> list[Notice]:
        told = [
            billing_spend.notice(
                record.name, record.fields, self._ledger, self._accounts.account(record.account).currency
            )
            for record in self._budgets.records.values()
            if record.topic
        ]
        self.history += told
        return told

    def _pair(self, project: str, service: str) -> tuple[str, str]:
        known = self._accounts.project(project.removeprefix("projects/"))
        if known is None:
            raise bad("project", f"is unknown: {project}")
        if service.removeprefix("services/") not in self._catalog.services:
            raise bad("service", f"is no id of the catalog: {service}")
        return f"projects/{known.number}", f"services/{service.removeprefix('services/')}"

    async def _publish(self, notices: Sequence[Notice], how: dict[str, int]) -> web.StreamResponse:
        """Nobody is told of what cannot be delivered, but for the answer here."""
        times = how.get("times", 1)
        if times < 0:
            raise bad("times", "is not negative")
        going = [notice for notice in notices for _ in range(times)]
        if how.get("shuffle"):
            random.shuffle(going)
        told = []
        for notice in going:
            delivered = self._policies.has(notice.topic, *PUBLISHER) and await self._topics.publish(notice)
            shown = {"topic": notice.topic, "attributes": notice.attributes, "data": notice.data}
            told.append(shown | {"delivered": delivered})
        return web.json_response({"notices": told, "caps": self._caps()})

    def _caps(self) -> dict[str, dict[str, object]]:
        records = self._budgets.records.values()
        return {record.name: record.cap.shown for record in records if record.cap is not None}


def _money(name: str, amount: float) -> Decimal:
    money = Decimal(str(amount))
    if not money.is_finite() or money < 0:
        raise bad(name, "is not negative")
    return money
