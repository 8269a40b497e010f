"""What was spent in this period, and the notices that say so; pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from scripts.local.standins.billing import rules as billing_rules

_FIRST_MONTH = {"MONTH": range(1, 13), "QUARTER": (1, 4, 7, 10), "YEAR": (1,)}


class Ledger:
    """Gross costs by the names of project (its number) and service; all in the account's currency."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.costs: dict[tuple[str, str], Decimal] = {}
        self.forecasts: dict[tuple[str, str], Decimal] = {}
        self.last: dict[tuple[str, str], Decimal] = {}
        self.start = month_start(datetime.now(UTC))

    def renew(self, start: datetime) -> None:
        """The next period begins at `start` with nothing spent."""
        self.costs, self.forecasts, self.last, self.start = {}, {}, self.costs, start

    def cost(self, kept: Mapping[str, Any]) -> Decimal:
        """What a budget with this filter counts."""
        return _total(self.costs, kept)

    def forecast(self, kept: Mapping[str, Any]) -> Decimal:
        """What it is expected to count by the end of the period: at least what it counts now."""
        expected = {pair: max(cost, self.forecasts.get(pair, cost)) for pair, cost in self.costs.items()}
        return _total(self.forecasts | expected, kept)

    def last_cost(self, kept: Mapping[str, Any]) -> Decimal:
        return _total(self.last, kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One Pub/Sub message."""

    topic: str
    attributes: Mapping[str, str]
    data: Mapping[str, Any]


def notice(name: str, fields: Mapping[str, Any], ledger: Ledger, currency: str) -> Notice:
    """The present status of an alerts-only budget with a topic, by its name and what is stored of it."""
    _, account, _, budget = name.split("/")
    kept = fields["budgetFilter"]
    kind = "LAST_MONTH_COST" if kept.get("calendarPeriod") == "MONTH" else "LAST_PERIODS_COST"
    limit = ledger.last_cost(kept)
    if "specifiedAmount" in fields["amount"]:
        kind, limit = "SPECIFIED_AMOUNT", billing_rules.amount(fields)
    data = {
        "budgetDisplayName": fields.get("displayName", ""),
        **_highest("alertThresholdExceeded", fields, "CURRENT_SPEND", ledger.cost(kept), limit),
        **_highest("forecastThresholdExceeded", fields, "FORECASTED_SPEND", ledger.forecast(kept), limit),
        "costAmount": float(ledger.cost(kept)),
        "costIntervalStart": f"{interval_start(kept, ledger.start):%Y-%m-%dT%H:%M:%SZ}",
        "budgetAmount": float(limit),
        "budgetAmountType": kind,
        "currencyCode": currency,
    }
    attributes = {"billingAccountId": account, "budgetId": budget, "schemaVersion": "1.0"}
    return Notice(topic=fields["notificationsRule"]["pubsubTopic"], attributes=attributes, data=data)


def anomaly(topic: str, account: str, project: str) -> Notice:
    """A cost anomaly: it may come to the same topic, and is about no budget."""
    attributes = {
        "scope": "PROJECT",
        "billingAccountName": f"billingAccounts/{account}",
        "resourceDisplayName": project,
        "resourceName": f"projects/{project}",
        "SchemaVersion": "1.0",
    }
    return Notice(topic=topic, attributes=attributes, data={"anomalyName": "local-anomaly", "resource": project})


def month_start(at: datetime) -> datetime:
    """When the month of `at` began in US Pacific time: 08:00 UTC, 07:00 in April to November."""
    pacific = at - timedelta(hours=_offset_h(at.month))
    return _midnight(pacific.year, pacific.month)


def next_month(start: datetime) -> datetime:
    """The start of the month after the one that began at `start`."""
    return month_start(start + timedelta(days=35))


def interval_start(kept: Mapping[str, Any], month: datetime) -> datetime:
    """The start of the period that a budget counts, in the month that began at `month`."""
    if custom := kept.get("customPeriod"):
        first = custom["startDate"]
        return datetime(first["year"], first["month"], first["day"], 8, tzinfo=UTC)
    firsts = _FIRST_MONTH[kept["calendarPeriod"]]
    return _midnight(month.year, max(first for first in firsts if first <= month.month))


def _midnight(year: int, month: int) -> datetime:
    return datetime(year, month, 1, _offset_h(month), tzinfo=UTC)


def _offset_h(month: int) -> int:
    """Daylight saving holds at midnight of the first day of April to November."""
    return 7 if 4 <= month <= 11 else 8


def _highest(name: str, fields: Mapping[str, Any], basis: str, cost: Decimal, limit: Decimal) -> dict[str, float]:
    percents = [
        rule.get("thresholdPercent", 0.0) for rule in fields.get("thresholdRules", []) if rule["spendBasis"] == basis
    ]
    exceeded = [percent for percent in percents if cost > Decimal(str(percent)) * limit]
    return {name: max(exceeded)} if exceeded else {}


def _total(costs: Mapping[tuple[str, str], Decimal], kept: Mapping[str, Any]) -> Decimal:
    projects, services = kept.get("projects"), kept.get("services")
    return sum(
        (
            cost
            for (project, service), cost in costs.items()
            if (projects is None or project in projects) and (services is None or service in services)
        ),
        Decimal(0),
    )
