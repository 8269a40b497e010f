"""Notices are read from anything, and each policy is applied once a period, whatever order they come in."""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firebreak.budgets import notice as notices
from firebreak.budgets.notice import NotANotice, Notice
from firebreak.budgets.respond import changes
from firebreak.budgets.standing import MOST_APPLIED, MOST_POINTS, TAIL_US, Outcome, Standing, Told, decide
from firebreak.settings import policies
from firebreak.settings.period import Dates, Every, Period, Span, containing
from firebreak.settings.policies import Threshold, ThresholdKind
from firebreak.store import times
from firebreak.switch.state import SCOPES, State

ACCOUNT, BUDGET = "01D4EE-079462-DFD6EC", "11111111-2222-3333-4444-555555555555"
ATTRIBUTES = {"billingAccountId": ACCOUNT, "budgetId": BUDGET, "schemaVersion": "1.0"}
FIELDS: dict[str, Any] = {
    "budgetDisplayName": "Firestore",
    "costAmount": 45.5,
    "costIntervalStart": "2026-11-01T07:00:00Z",
    "budgetAmount": 100,
    "budgetAmountType": "SPECIFIED_AMOUNT",
    "alertThresholdExceeded": 0.5,
    "currencyCode": "EUR",
}
TEXT = f"{ACCOUNT}/{BUDGET}: 50%=tighten(50) 90%=tighten(20) 100%=trip(firestore) forecast 120%=trip(gemini)"
SECOND_US, DAY_US = 1_000_000, 86_400_000_000


def us(text: str) -> int:
    found = times.parse(text)
    assert found is not None
    return found


def budget(text: str = TEXT) -> policies.Budget:
    return policies.parse(text)[BUDGET]


def november(span: Span = Every.MONTH) -> Period:
    period = containing(us("2026-11-01T07:00:00Z"), span)
    assert period is not None
    return period


CUSTOM = Dates(first=date(2026, 11, 1), last=date(2027, 2, 28))
NOON = us("2026-11-10T12:00:00Z")


def read(
    fields: object = FIELDS, *, attributes: dict[str, str] = ATTRIBUTES, published_us: int | None = NOON
) -> Notice:
    data = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
    return notices.read(message_id="m", attributes=attributes, data=data, published_us=published_us)


def notice(
    *, actual: int = 0, forecast: int = 0, cost: int = 1, published_us: int = NOON, name: str = "m", amount: int = 1
) -> Notice:
    """Of a budget of 1 unless it says otherwise: what it cost is above every threshold that it claims."""
    parts = {"alertThresholdExceeded": actual / 100, "forecastThresholdExceeded": forecast / 100}
    fields = (
        FIELDS
        | {"costAmount": cost, "budgetAmount": amount, "alertThresholdExceeded": None}
        | {k: v for k, v in parts.items() if v}
    )
    return replace(read(fields, published_us=published_us), message_id=name)


def play(
    messages: Iterable[Notice], *, before: Standing | None = None, now_us: int = NOON, of: str = TEXT
) -> tuple[Standing | None, list[str]]:
    """The standing after these, and what was applied on the way."""
    applied: list[str] = []
    for message in messages:
        decision = decide(before, message, budget(of), november(), now_us=now_us, heard=True)
        before = decision.standing or before
        applied += [f"{policy.threshold}={policy.action}" for policy in decision.policies]
    return before, applied


def test_a_notice_is_read() -> None:
    assert read() == Notice(
        message_id="m",
        account=ACCOUNT,
        budget=BUDGET,
        name="Firestore",
        start_us=us("2026-11-01T07:00:00Z"),
        exceeded=(Threshold(kind=ThresholdKind.ACTUAL, bp=5_000),),
        cost=45_500_000,
        amount=100_000_000,
        is_fixed=True,
        currency="EUR",
        published_us=NOON,
    )


def test_a_routine_report_exceeds_nothing() -> None:
    routine = {name: value for name, value in FIELDS.items() if "Threshold" not in name}

    assert read(routine).exceeded == ()


def test_thresholds_are_whole_hundredths_of_a_percent() -> None:
    found = read(FIELDS | {"alertThresholdExceeded": 0.29, "forecastThresholdExceeded": 1.2})

    assert [str(threshold) for threshold in found.exceeded] == ["actual 29%", "forecast 120%"]


def test_fields_that_are_not_known_are_passed_over() -> None:
    assert read(FIELDS | {"commitment": {"new": [1]}, "scope": None}) == read()


@pytest.mark.parametrize(
    "start", ["2026-11-01T07:00:00.123456789Z", "2026-11-01T07:00:00.5Z", "2026-11-01T00:00:00-07:00"]
)
def test_times_may_be_fine_or_of_another_zone(start: str) -> None:
    assert read(FIELDS | {"costIntervalStart": start}).start_us // SECOND_US == us("2026-11-01T07:00:00Z") // SECOND_US


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"budgetId": BUDGET},
        {"billingAccountId": ACCOUNT},
        ATTRIBUTES | {"budgetId": ""},
        ATTRIBUTES | {"schemaVersion": "2.0"},
        {"scope": "project", "billingAccountName": "a", "SchemaVersion": "1.0"},
    ],
)
def test_a_message_without_a_budget_is_no_notice(attributes: dict[str, str]) -> None:
    with pytest.raises(NotANotice):
        read(attributes=attributes)


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"\xff\xfe",
        b"not json",
        b"[]",
        b"null",
        b"1" * 5_000,
        b"[" * 60_000,
        b'{"a":' * 10_000,
        b" " * 70_000 + json.dumps(FIELDS).encode(),
        b"{}",
        *(
            json.dumps(FIELDS | {"costIntervalStart": start}).encode()
            for start in [None, 1, "", "soon", "2026-11-01", "2026-11-01T07:00:00", "9" * 99, ["2026-11-01T07:00:00Z"]]
        ),
        *(
            json.dumps(FIELDS | {"alertThresholdExceeded": part}).encode()
            for part in ["0.5", True, [0.5], {}, -1, 1e99, 10**400, float("nan"), float("inf")]
        ),
        json.dumps(FIELDS | {"forecastThresholdExceeded": "1.2"}).encode(),
        *(
            json.dumps(FIELDS | {name: number}).encode()
            for name in ("costAmount", "budgetAmount", "someFieldOfNextYear")
            for number in (float("nan"), float("inf"), float("-inf"))
        ),
    ],
)
def test_garbage_is_no_notice(data: bytes | None) -> None:
    with pytest.raises(NotANotice):
        notices.read(message_id="m", attributes=ATTRIBUTES, data=data, published_us=NOON)


@pytest.mark.parametrize("cost", [None, "12", True, [], 1e30, -1e30, 10**4000])
def test_a_cost_that_is_none_does_not_hide_a_threshold(cost: object) -> None:
    found = read(FIELDS | {"costAmount": cost})

    assert (found.cost, [str(threshold) for threshold in found.exceeded]) == (None, ["actual 50%"])


def test_a_name_is_one_short_line_that_can_be_stored() -> None:
    found = read(FIELDS | {"budgetDisplayName": "a\nb\ud800\u202e" + "c" * 500, "currencyCode": ["EUR"]})

    assert found.name.startswith("ab?ccc")
    assert len(found.name) <= 100
    assert found.currency is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*FIELDS, "x"]), inner),
    )
)
def test_whatever_the_data_it_is_a_notice_or_none(value: object) -> None:
    try:
        found = read(value)
    except NotANotice:
        return

    assert found.budget == BUDGET


@pytest.mark.parametrize("year", range(2024, 2041))
def test_months_begin_at_midnight_in_los_angeles(year: int) -> None:
    zone = ZoneInfo("America/Los_Angeles")
    for month in range(1, 13):
        start = datetime(year, month, 1, tzinfo=zone)
        end = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=zone)
        period = containing(round(start.timestamp()) * SECOND_US, Every.MONTH)

        assert period == Period(
            name=f"{year}-{month:02}",
            start_us=round(start.timestamp()) * SECOND_US,
            end_us=round(end.timestamp()) * SECOND_US,
        )


@pytest.mark.parametrize(
    ("start", "every", "name", "end"),
    [
        ("2026-11-01T07:00:00Z", Every.MONTH, "2026-11", "2026-12-01T08:00:00Z"),
        ("2026-12-01T08:00:00Z", Every.MONTH, "2026-12", "2027-01-01T08:00:00Z"),
        ("2026-10-01T07:00:00Z", Every.QUARTER, "2026-q4", "2027-01-01T08:00:00Z"),
        ("2026-04-01T07:00:00Z", Every.QUARTER, "2026-q2", "2026-07-01T07:00:00Z"),
        ("2026-01-01T08:00:00Z", Every.YEAR, "2026", "2027-01-01T08:00:00Z"),
        ("2026-10-31T18:30:00Z", Every.MONTH, "2026-11", "2026-12-01T08:00:00Z"),
        ("2026-12-01T07:00:00Z", Every.MONTH, "2026-12", "2027-01-01T08:00:00Z"),
    ],
)
def test_a_period_has_a_name_and_an_end(start: str, every: Every, name: str, end: str) -> None:
    """The last two: another zone's midnight, and daylight saving time the whole year round."""
    period = containing(us(start), every)

    assert period is not None
    assert (period.name, times.second(period.end_us)) == (name, end)


@pytest.mark.parametrize("start_s", [-62_135_596_800, 253_402_300_799, -62_135_683_140])
def test_the_ends_of_the_calendar_begin_no_period(start_s: int) -> None:
    assert containing(start_s * SECOND_US, Every.MONTH) is None


def test_a_notice_applies_every_policy_up_to_its_threshold_lowest_first() -> None:
    standing, applied = play([notice(actual=100)])

    assert applied == ["actual 50%=tighten(50)", "actual 90%=tighten(20)", "actual 100%=trip(firestore)"]
    assert standing is not None
    assert {done.told for done in standing.applied.values()} == {Told.DUE}


def test_a_forecast_does_not_stand_for_what_was_spent() -> None:
    _, applied = play([notice(forecast=150)])

    assert applied == ["forecast 120%=trip(gemini)", "forecast 150%=record"]


def test_a_threshold_without_a_policy_is_told_of_once_and_only_on_the_way_up() -> None:
    _, applied = play([notice(actual=a) for a in (30, 30, 20, 45, 30)], of=f"{ACCOUNT}/{BUDGET}")

    assert applied == ["actual 30%=record", "actual 45%=record"]


def test_thresholds_that_somebody_makes_up_fill_no_document() -> None:
    climbing = [notice(actual=a, published_us=NOON + a * DAY_US // 1_000, cost=a) for a in range(1, 400)]

    standing, applied = play(climbing)

    assert standing is not None
    assert len(standing.applied) <= MOST_APPLIED + 3
    assert "actual 100%=trip(firestore)" in applied


def test_points_are_one_an_hour_and_bounded() -> None:
    full = {times.hour(NOON + n * 3_600 * SECOND_US): n for n in range(MOST_POINTS)}
    before, _ = play([notice()])
    assert before is not None
    later = NOON + MOST_POINTS * 3_600 * SECOND_US

    standing, _ = play(
        [notice(cost=2, published_us=NOON + 1), notice(cost=3, published_us=later)], before=replace(before, points=full)
    )

    assert standing is not None
    assert (len(standing.points), standing.points["2026-11-10T12Z"]) == (MOST_POINTS, 2_000_000)
    assert standing.cost == 3_000_000


def test_a_policy_made_after_its_threshold_was_only_recorded_is_applied() -> None:
    before, _ = play([notice(actual=100)], of=f"{ACCOUNT}/{BUDGET}: 100%=record")

    _, applied = play([notice(actual=100)], before=before, of=f"{ACCOUNT}/{BUDGET}: 100%=trip(all)")

    assert applied == ["actual 100%=trip(all)"]


def test_a_policy_that_was_changed_after_it_acted_does_not_act_again() -> None:
    before, _ = play([notice(actual=100)], of=f"{ACCOUNT}/{BUDGET}: 100%=trip(gemini)")

    _, applied = play([notice(actual=100)], before=before, of=f"{ACCOUNT}/{BUDGET}: 100%=trip(all)")

    assert applied == []


@given(
    st.lists(
        st.builds(
            notice,
            actual=st.sampled_from([0, 10, 50, 75, 90, 100, 130]),
            forecast=st.sampled_from([0, 100, 120, 200]),
            cost=st.integers(2, 1_000),
            published_us=st.integers(NOON - DAY_US, NOON),
        ),
        min_size=1,
        max_size=8,
    ).flatmap(lambda sent: st.tuples(st.just(sent), st.permutations(sent * 2)))
)
def test_in_any_order_with_duplicates_each_policy_acts_once_and_the_cost_never_goes_back(
    sent_and_delivered: tuple[list[Notice], list[Notice]],
) -> None:
    sent, delivered = sent_and_delivered
    reached = {ThresholdKind.ACTUAL: 0, ThresholdKind.FORECAST: 0}
    for threshold in (t for message in sent for t in message.exceeded):
        reached[threshold.kind] = max(reached[threshold.kind], threshold.bp)
    named = [p for p in budget().policies if p.threshold.bp <= reached[p.threshold.kind]]

    standing: Standing | None = None
    applied: list[str] = []
    as_of = 0
    for message in delivered:
        standing, more = play([message], before=standing)
        assert standing is not None
        assert (standing.as_of_us or 0) >= as_of
        as_of = standing.as_of_us or 0
        applied += more

    acted = [entry for entry in applied if not entry.endswith("=record")]
    assert sorted(acted) == sorted(f"{policy.threshold}={policy.action}" for policy in named)
    assert len(applied) == len(set(applied))
    assert as_of == max(message.published_us or 0 for message in sent)
    assert standing is not None
    assert standing.cost in {message.cost for message in sent if message.published_us == as_of}


@given(st.permutations(["nov 50", "nov 100", "nov 100", "dec 50", "dec 100", "dec 100"]), st.integers(0, 6))
def test_a_new_period_starts_afresh_and_then_the_old_one_sets_nothing_off(order: list[str], old: int) -> None:
    """The first `old` messages come in November, where those of December cannot be yet."""
    december = containing(november().end_us, Every.MONTH)
    assert december is not None
    periods, standings = {"nov": november(), "dec": december}, dict[str, Standing | None]()
    applied: list[str] = []
    order = sorted(order[:old], key=lambda message: message.startswith("dec")) + order[old:]
    turned = False
    for position, message in enumerate(order):
        month, _, percent = message.partition(" ")
        turned = turned or month == "dec" or position >= old
        now_us = december.start_us if turned else NOON
        decision = decide(
            standings.get(month), notice(actual=int(percent)), budget(), periods[month], now_us=now_us, heard=False
        )
        standings[month] = decision.standing or standings.get(month)
        applied += [f"{month} {policy.threshold}" for policy in decision.policies]
        assert not (turned and month == "nov" and decision.policies)

    december_s = [entry for entry in applied if entry.startswith("dec")]
    assert sorted(december_s) == ["dec actual 100%", "dec actual 50%", "dec actual 90%"]
    assert len(applied) == len(set(applied))


def test_a_repeated_notice_changes_nothing() -> None:
    standing, _ = play([notice(actual=100)])

    decision = decide(standing, notice(actual=100), budget(), november(), now_us=NOON + 1, heard=True)

    assert (decision.outcome, decision.standing, decision.policies) == (Outcome.REPEATED, None, ())


def test_an_older_notice_applies_its_policies_and_leaves_the_cost() -> None:
    later = notice(actual=50, cost=60, published_us=NOON)
    earlier = notice(forecast=120, cost=40, published_us=NOON - 1)

    standing, applied = play([later, earlier])

    assert standing is not None
    assert (standing.cost, applied) == (60_000_000, ["actual 50%=tighten(50)", "forecast 120%=trip(gemini)"])


def test_after_the_end_of_its_period_a_notice_is_recorded_and_sets_nothing_off() -> None:
    end = november().end_us

    before, _ = play([notice(actual=50)])
    last = decide(
        before, notice(actual=100, cost=7, published_us=end - 1), budget(), november(), now_us=end, heard=True
    )

    assert (last.outcome, last.policies) == (Outcome.PERIOD_OVER, ())
    assert last.standing is not None
    assert (last.standing.cost, len(last.standing.applied)) == (7_000_000, 1)


def test_a_microsecond_before_the_end_it_still_does() -> None:
    _, applied = play([notice(actual=100)], now_us=november().end_us - 1)

    assert applied[-1] == "actual 100%=trip(firestore)"


@pytest.mark.parametrize(
    ("now_us", "outcome"),
    [
        (november().end_us + TAIL_US, Outcome.PERIOD_OVER),
        (november().start_us - DAY_US - 1, Outcome.PERIOD_AHEAD),
    ],
)
def test_a_period_long_over_or_far_ahead_leaves_no_document(now_us: int, outcome: Outcome) -> None:
    decision = decide(None, notice(actual=100), budget(), november(), now_us=now_us, heard=True)

    assert (decision.outcome, decision.standing) == (outcome, None)


@pytest.mark.parametrize(
    "text",
    [
        f"{ACCOUNT}/{BUDGET}",
        f"{ACCOUNT}/{BUDGET}:",
        f" {ACCOUNT.lower()}/{BUDGET.upper()} : ; ",
        f"{ACCOUNT}/{BUDGET} month: 50%",
    ],
)
def test_a_budget_is_the_owners_however_it_is_spelled(text: str) -> None:
    found = budget(text)

    assert (found.account, found.id, found.period) == (ACCOUNT, BUDGET, Every.MONTH)


def test_policies_are_read() -> None:
    text = f"{TEXT}; {ACCOUNT}/{BUDGET[:-1]}6 quarter: 33.3% actual 0.5%=tighten(1) forecast 100%=trip(all)"

    first, second = policies.parse(text).values()

    assert [f"{p.threshold}={p.action}" for p in first.policies] == [
        "actual 50%=tighten(50)",
        "actual 90%=tighten(20)",
        "actual 100%=trip(firestore)",
        "forecast 120%=trip(gemini)",
    ]
    assert second.period is Every.QUARTER
    assert budget(f"{ACCOUNT}/{BUDGET} 2026-11-01..2027-02-28: 100%=trip(all)").period == CUSTOM
    assert [f"{p.threshold}={p.action}" for p in second.policies] == [
        "actual 33.3%=record",
        "actual 0.5%=tighten(1)",
        "forecast 100%=trip(all)",
    ]


def test_the_scopes_are_those_of_the_switch() -> None:
    assert policies.SCOPES == SCOPES


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("x", "account/budget"),
        (f"{BUDGET}: 50%", "account/budget"),
        (f"{ACCOUNT}/abc: 50%", "account/budget"),
        (f"{ACCOUNT}/{BUDGET} weekly: 50%", "weekly"),
        (f"{ACCOUNT}/{BUDGET} month week: 50%", "month week"),
        (f"{ACCOUNT}/{BUDGET} 2026-01-15..: 50%", "two days such as"),
        (f"{TEXT}; {TEXT}", "twice"),
        (f"{ACCOUNT}/{BUDGET}: 50%=tighten(50) 50.00%=record", "actual 50% twice"),
        (f"{ACCOUNT}/{BUDGET}: 50", "thresholds such as"),
        (f"{ACCOUNT}/{BUDGET}: 0%", "thresholds such as"),
        (f"{ACCOUNT}/{BUDGET}: -5%", "thresholds such as"),
        (f"{ACCOUNT}/{BUDGET}: ٥٠%", "thresholds such as"),
        (f"{ACCOUNT}/{BUDGET}: 50%=tighten(50), 60%", "'tighten(50),'"),
        (f"{ACCOUNT}/{BUDGET}: 50%=", "actions"),
        (f"{ACCOUNT}/{BUDGET}: 50%=tighten", "actions"),
        (f"{ACCOUNT}/{BUDGET}: 50%=tighten(0)", "tighten(0)"),
        (f"{ACCOUNT}/{BUDGET}: 50%=tighten(100)", "tighten(100)"),
        (f"{ACCOUNT}/{BUDGET}: 50%=trip(billing)", "trip(billing)"),
        (f"{ACCOUNT}/{BUDGET}: 50%=trip()", "trip()"),
        (f"{ACCOUNT}/{BUDGET}: forecast", "thresholds such as"),
        (f"{ACCOUNT}/{BUDGET}: forecast forecast 5%", "thresholds such as"),
        (f"{ACCOUNT}/{BUDGET}: 50 % = record", "'50'"),
    ],
)
def test_policies_that_are_wrong_say_what_is(text: str, named: str) -> None:
    with pytest.raises(ValueError, match=r"^must ") as error:
        policies.parse(text)

    assert named in str(error.value)


@pytest.mark.parametrize("first", [Every.MONTH, Every.YEAR])
def test_what_a_budget_tightens_ends_with_its_own_period_and_loosens_no_other(first: Every) -> None:
    """One of the month and one of the year, in either order."""
    asked = {
        every: changes(
            (
                policies.Policy(
                    threshold=Threshold(kind=ThresholdKind.ACTUAL, bp=5_000),
                    action=policies.TightenPolicy(percent=percent),
                ),
            ),
            Standing(account=ACCOUNT, budget=f"{every}-budget", name="", period=november(every)),
        )
        for every, percent in ((Every.MONTH, 5), (Every.YEAR, 80))
    }

    state = State()
    for change in [c for every in sorted(Every, key=lambda every: every != first) for c in asked.get(every, [])]:
        state = change.on(state, NOON)

    ends = [us("2026-12-01T08:00:00Z"), us("2027-01-01T08:00:00Z")]
    assert [state.percent(at) for at in (ends[0] - 1, ends[0], ends[1] - 1, ends[1])] == [5, 80, 80, 100]


def test_a_trip_of_a_custom_period_lasts_until_its_last_day_is_over() -> None:
    standing = Standing(account=ACCOUNT, budget=BUDGET, name="", period=november(CUSTOM))
    trip = policies.Policy(
        threshold=Threshold(kind=ThresholdKind.ACTUAL, bp=10_000), action=policies.TripPolicy(scope="all")
    )

    state = State()
    for change in changes((trip,), standing):
        state = change.on(state, NOON)

    end = us("2027-03-01T08:00:00Z")
    assert [state.tripped((), at) is not None for at in (NOON, end - 1, end)] == [True, True, False]


def test_a_budget_does_not_loosen_what_a_forecast_made_it_tighten() -> None:
    forecast = policies.Policy(
        threshold=Threshold(kind=ThresholdKind.FORECAST, bp=12_000), action=policies.TightenPolicy(percent=20)
    )
    half = policies.Policy(
        threshold=Threshold(kind=ThresholdKind.ACTUAL, bp=5_000), action=policies.TightenPolicy(percent=50)
    )
    standing = Standing(account=ACCOUNT, budget=BUDGET, name="", period=november())

    state = State()
    for change in changes((forecast, half), standing):
        state = change.on(state, NOON)

    assert state.percent(NOON) == 20


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("0001-01-01T00:00:00+23:59", False),
        ("0001-01-01T00:00:00Z", False),
        ("1969-12-31T23:59:59.999999Z", False),
        ("1970-01-01T00:00:00Z", True),
        ("9998-12-31T23:59:59Z", True),
        ("9999-01-01T00:00:00+00:01", True),
        ("9999-01-01T00:00:00Z", False),
        ("9999-12-31T23:59:59-23:59", False),
    ],
)
def test_a_time_that_could_not_be_reckoned_with_is_none(text: str, known: bool) -> None:
    assert (times.parse(text) is not None) == known


def test_times_are_told_to_the_second() -> None:
    assert times.second(us("2026-12-01T08:00:00Z")) == "2026-12-01T08:00:00Z"
    assert times.parse(datetime(2026, 12, 1, tzinfo=UTC).isoformat()) == us("2026-12-01T00:00:00Z")


@pytest.mark.parametrize(("more", "taken"), [(0, True), (1, False)])
def test_a_notice_is_read_up_to_its_last_byte(more: int, taken: bool) -> None:
    data = json.dumps(FIELDS).encode().ljust(notices.MOST_BYTES + more)

    if taken:
        assert notices.read(message_id="m", attributes=ATTRIBUTES, data=data, published_us=1).amount == 100_000_000
    else:
        with pytest.raises(NotANotice):
            notices.read(message_id="m", attributes=ATTRIBUTES, data=data, published_us=1)
