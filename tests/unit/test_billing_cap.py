"""The states of a spend cap, and the notices of what was spent."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from scripts.local.standins.billing import cap as billing_cap
from scripts.local.standins.billing import spend as billing_spend
from scripts.local.standins.billing.cap import AWAITING, CONFIGURED, ENFORCED, Cap
from scripts.local.standins.billing.spend import Ledger

TWENTY = Decimal(20)
PAIR = ("projects/1", "services/s")
FIELDS: dict[str, Any] = {
    "displayName": "alerts",
    "budgetFilter": {"projects": ["projects/1"], "calendarPeriod": "MONTH"},
    "amount": {"specifiedAmount": {"units": 20, "nanos": 500_000_000, "currencyCode": "USD"}},
    "thresholdRules": [
        {"thresholdPercent": 0.5, "spendBasis": "CURRENT_SPEND"},
        {"thresholdPercent": 0.9, "spendBasis": "CURRENT_SPEND"},
        {"thresholdPercent": 1.0, "spendBasis": "FORECASTED_SPEND"},
    ],
    "notificationsRule": {"pubsubTopic": "projects/p/topics/t"},
}
NAME = "billingAccounts/01D4EE-079462-DFD6EC/budgets/b"


def lifted(amount: Decimal = TWENTY) -> Cap:
    cap = billing_cap.ask(Cap(resting=ENFORCED), AWAITING, amount, views=0)
    assert cap is not None
    return cap


def after(cap: Cap | None, cost: str, amount: Decimal) -> str:
    """Where the cap rests once it has seen the cost."""
    assert cap is not None
    return billing_cap.spent(cap, Decimal(cost), amount, views=0).resting


@pytest.mark.parametrize(
    ("cost", "amount", "state"),
    [
        ("20", TWENTY, CONFIGURED),
        ("20.01", TWENTY, ENFORCED),
        ("0", Decimal(0), CONFIGURED),
        ("0.01", Decimal(0), ENFORCED),
    ],
)
def test_a_cap_trips_over_its_amount(cost: str, amount: Decimal, state: str) -> None:
    assert after(Cap(), cost, amount) == state


def test_a_moving_cap_rests_after_as_many_views_as_told() -> None:
    moving = billing_cap.spent(Cap(), Decimal(21), TWENTY, views=2)

    once = billing_cap.viewed(moving)

    assert moving.shown == {"inputState": CONFIGURED, "outputState": CONFIGURED, "reconciling": True}
    assert once.shown == moving.shown
    assert billing_cap.viewed(once).shown == {"inputState": CONFIGURED, "outputState": ENFORCED}


@pytest.mark.parametrize(
    ("state", "asked", "becomes"),
    [
        (CONFIGURED, CONFIGURED, CONFIGURED),
        (CONFIGURED, AWAITING, None),
        (CONFIGURED, ENFORCED, None),
        (CONFIGURED, None, None),
        (ENFORCED, CONFIGURED, ENFORCED),
        (ENFORCED, AWAITING, AWAITING),
        (ENFORCED, ENFORCED, None),
        (AWAITING, CONFIGURED, CONFIGURED),
        (AWAITING, AWAITING, None),
        (AWAITING, ENFORCED, None),
        (AWAITING, None, None),
    ],
)
def test_what_an_owner_may_ask_for(state: str, asked: str | None, becomes: str | None) -> None:
    cap = billing_cap.ask(Cap(resting=state), asked, TWENTY, views=0)

    assert (cap and cap.resting) == becomes


def test_asking_again_on_the_way_changes_nothing() -> None:
    moving = billing_cap.ask(Cap(resting=ENFORCED), AWAITING, TWENTY, views=1)
    assert moving is not None

    assert billing_cap.ask(moving, AWAITING, TWENTY, views=1) == moving


@pytest.mark.parametrize(("amount", "state"), [("19", CONFIGURED), ("20", CONFIGURED), ("20.01", ENFORCED)])
def test_a_lifted_cap_trips_again_this_month_only_above_its_old_amount(amount: str, state: str) -> None:
    armed = billing_cap.ask(lifted(), CONFIGURED, TWENTY, views=0)

    assert after(lifted(), "99", TWENTY) == AWAITING
    assert after(armed, "99", Decimal(amount)) == state


def test_a_new_period_arms_a_lifted_cap_and_forgets_that_it_was_lifted() -> None:
    renewed = billing_cap.renew(lifted(), lifts_enforced=False)

    assert renewed == Cap(wanted=AWAITING)
    assert after(renewed, "21", TWENTY) == ENFORCED


@pytest.mark.parametrize(("lifts", "state"), [(False, ENFORCED), (True, CONFIGURED)])
def test_a_new_period_leaves_an_enforced_cap_alone_unless_told(lifts: bool, state: str) -> None:
    assert billing_cap.renew(Cap(resting=ENFORCED), lifts_enforced=lifts).resting == state


def notice(cost: str, forecast: str | None = None, **changes: object) -> dict[str, Any]:
    ledger = Ledger()
    ledger.start = datetime(2026, 11, 1, 7, tzinfo=UTC)
    ledger.costs[PAIR] = Decimal(cost)
    ledger.costs["projects/2", "services/s"] = Decimal(1000)
    if forecast:
        ledger.forecasts[PAIR] = Decimal(forecast)
    return dict(billing_spend.notice(NAME, FIELDS | changes, ledger, "USD").data)


def test_a_notice_has_the_documented_fields() -> None:
    assert notice("19") == {
        "budgetDisplayName": "alerts",
        "alertThresholdExceeded": 0.9,
        "costAmount": 19.0,
        "costIntervalStart": "2026-11-01T07:00:00Z",
        "budgetAmount": 20.5,
        "budgetAmountType": "SPECIFIED_AMOUNT",
        "currencyCode": "USD",
    }


@pytest.mark.parametrize(
    ("cost", "forecast", "alert", "expected"),
    [("10.25", None, None, None), ("10.26", None, 0.5, None), ("1", "21", None, 1.0), ("30", None, 0.9, 1.0)],
)
def test_a_threshold_is_told_only_once_it_is_exceeded(
    cost: str, forecast: str | None, alert: float | None, expected: float | None
) -> None:
    told = notice(cost, forecast)

    assert told.get("alertThresholdExceeded") == alert
    assert told.get("forecastThresholdExceeded") == expected


def test_a_budget_of_last_periods_cost_says_so() -> None:
    told = notice("1", amount={"lastPeriodAmount": {}})

    assert told["budgetAmountType"] == "LAST_MONTH_COST"
    assert told["budgetAmount"] == 0


@pytest.mark.parametrize(
    ("period", "start"),
    [
        ({"calendarPeriod": "MONTH"}, datetime(2026, 11, 1, 7, tzinfo=UTC)),
        ({"calendarPeriod": "QUARTER"}, datetime(2026, 10, 1, 7, tzinfo=UTC)),
        ({"calendarPeriod": "YEAR"}, datetime(2026, 1, 1, 8, tzinfo=UTC)),
        ({"customPeriod": {"startDate": {"year": 2025, "month": 2, "day": 3}}}, datetime(2025, 2, 3, 8, tzinfo=UTC)),
    ],
)
def test_a_period_begins_at_midnight_in_the_west(period: dict[str, Any], start: datetime) -> None:
    assert billing_spend.interval_start(period, datetime(2026, 11, 1, 7, tzinfo=UTC)) == start


@pytest.mark.parametrize(
    ("now", "start"),
    [
        (datetime(2026, 4, 1, 6, 59, tzinfo=UTC), datetime(2026, 3, 1, 8, tzinfo=UTC)),
        (datetime(2026, 4, 1, 7, 0, tzinfo=UTC), datetime(2026, 4, 1, 7, tzinfo=UTC)),
        (datetime(2026, 12, 1, 7, 59, tzinfo=UTC), datetime(2026, 11, 1, 7, tzinfo=UTC)),
        (datetime(2027, 1, 1, 8, 0, tzinfo=UTC), datetime(2027, 1, 1, 8, tzinfo=UTC)),
    ],
)
def test_a_month_begins_where_the_service_says(now: datetime, start: datetime) -> None:
    assert billing_spend.month_start(now) == start


def test_twelve_months_follow_each_other() -> None:
    start = billing_spend.month_start(datetime(2026, 1, 15, tzinfo=UTC))

    for month in range(2, 13):
        start = billing_spend.next_month(start)
        assert (start.year, start.month, start.day) == (2026, month, 1)
    assert billing_spend.next_month(start).year == 2027
