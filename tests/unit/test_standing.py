"""What a notice changes about a budget's standing: one row for each rule of `decide`, and its exact edges."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from firebreak.budgets.notice import MICROS, Notice
from firebreak.budgets.respond import STRAY_US, verdict
from firebreak.budgets.standing import (
    MOST_APPLIED,
    MOST_POINTS,
    TAIL_US,
    Applied,
    Decision,
    Outcome,
    Standing,
    Told,
    decide,
)
from firebreak.events import Severity
from firebreak.settings.period import Every, Period, containing
from firebreak.settings.policies import (
    Budget,
    Policy,
    RecordPolicy,
    Threshold,
    ThresholdKind,
    TightenPolicy,
    TripPolicy,
)

HOUR_US, DAY_US = 3_600_000_000, 86_400_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def us(*when: int) -> int:
    return (datetime(*when, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)  # type: ignore[misc, arg-type]  # a date's numbers


NOVEMBER = Period(name="2026-11", start_us=us(2026, 11, 1, 7), end_us=us(2026, 12, 1, 8))
NOON = us(2026, 11, 10, 12, 30)
HALF, FULL = Threshold(kind=ThresholdKind.ACTUAL, bp=5_000), Threshold(kind=ThresholdKind.ACTUAL, bp=10_000)
DOUBLE, FORECAST = Threshold(kind=ThresholdKind.ACTUAL, bp=20_000), Threshold(kind=ThresholdKind.FORECAST, bp=12_000)
TIGHTEN, TRIP = (
    Policy(threshold=HALF, action=TightenPolicy(percent=50)),
    Policy(threshold=FULL, action=TripPolicy(scope="all")),
)
AHEAD = Policy(threshold=FORECAST, action=TripPolicy(scope="gemini"))
BUDGET = Budget(account="A", id="b", period=Every.MONTH, policies=(TRIP, TIGHTEN, AHEAD))
POINTS = {"2026-11-10T12Z": 300 * MICROS}


def notice(
    *exceeded: Threshold,
    cost: int | None = 300 * MICROS,
    amount: int | None = 100 * MICROS,
    at_us: int | None = NOON,
    name: str = "n",
    is_fixed: bool = True,
    start_us: int = NOVEMBER.start_us,
    message_id: str = "m",
) -> Notice:
    return Notice(
        message_id=message_id,
        account="A",
        budget="b",
        name=name,
        start_us=start_us,
        exceeded=exceeded,
        cost=cost,
        amount=amount,
        is_fixed=is_fixed,
        currency="EUR",
        published_us=at_us,
    )


def applied(action: object = TRIP.action, *, amount: int | None = 100 * MICROS, at_us: int = NOON) -> Applied:
    return Applied(action=str(action), at_us=at_us, message_id="m", amount=amount, told=Told.DUE)


def standing(**more: object) -> Standing:
    known = Standing(
        account="A",
        budget="b",
        name="n",
        period=NOVEMBER,
        cost=300 * MICROS,
        amount=100 * MICROS,
        currency="EUR",
        as_of_us=NOON,
        points=POINTS,
    )
    return replace(known, **more)  # type: ignore[arg-type]  # a standing's fields


def play(
    before: Standing | None, sent: Notice, *, now_us: int = NOON, heard: bool = True, budget: Budget = BUDGET
) -> Decision:
    return decide(before, sent, budget, NOVEMBER, now_us=now_us, heard=heard)


def test_the_first_notice_makes_the_standing_and_applies_what_it_reaches() -> None:
    decision = play(None, notice(FULL))

    assert decision == Decision(
        outcome=Outcome.APPLIED,
        policies=(TIGHTEN, TRIP),
        standing=standing(applied={HALF: applied(TIGHTEN.action), FULL: applied()}),
    )


def test_without_anybody_to_tell_nothing_is_due() -> None:
    decision = play(None, notice(HALF), heard=False)

    assert decision.standing is not None
    assert decision.standing.applied[HALF].told is Told.NOBODY


def test_a_routine_notice_is_recorded() -> None:
    assert play(None, notice()) == Decision(outcome=Outcome.RECORDED, standing=standing())


def test_the_same_again_is_repeated() -> None:
    assert play(standing(), notice()) == Decision(outcome=Outcome.REPEATED)


@pytest.mark.parametrize(
    ("now_us", "outcome", "recorded"),
    [
        (NOVEMBER.start_us - DAY_US - 1, Outcome.PERIOD_AHEAD, False),
        (NOVEMBER.start_us - DAY_US, Outcome.APPLIED, True),
        (NOVEMBER.end_us - 1, Outcome.APPLIED, True),
        (NOVEMBER.end_us, Outcome.PERIOD_OVER, True),
        (NOVEMBER.end_us + TAIL_US - 1, Outcome.PERIOD_OVER, True),
        (NOVEMBER.end_us + TAIL_US, Outcome.PERIOD_OVER, False),
    ],
)
def test_a_period_has_exact_edges(now_us: int, outcome: Outcome, recorded: bool) -> None:
    decision = play(None, notice(FULL), now_us=now_us)

    assert (decision.outcome, decision.standing is not None) == (outcome, recorded)
    assert bool(decision.policies) == (outcome is Outcome.APPLIED)


def test_reports_on_a_period_are_recorded_for_two_months_after_it() -> None:
    assert TAIL_US == 62 * DAY_US


def test_a_repeated_notice_after_the_end_writes_nothing() -> None:
    decision = play(standing(), notice(), now_us=NOVEMBER.end_us)

    assert decision == Decision(outcome=Outcome.PERIOD_OVER)


@pytest.mark.parametrize(
    ("given", "cost", "amount"),
    [
        ((FULL,), 99_979_999, 100 * MICROS),
        ((FULL,), 0, 1 * MICROS),
        ((FULL,), -5 * MICROS, 100 * MICROS),
        ((HALF,), 49_979_999, 100 * MICROS),
        ((DOUBLE,), 199_979_999, 100 * MICROS),
        ((FULL, FORECAST), 1 * MICROS, 100 * MICROS),
        ((FORECAST, FULL), 1 * MICROS, 100 * MICROS),
    ],
)
def test_a_cost_below_the_threshold_that_is_claimed_is_recorded_and_sets_nothing_off(
    given: tuple[Threshold, ...], cost: int, amount: int
) -> None:
    decision = play(None, notice(*given, cost=cost, amount=amount))

    assert (decision.outcome, decision.policies) == (Outcome.CONTRADICTORY, ())
    assert decision.standing is not None
    assert (decision.standing.cost, dict(decision.standing.applied)) == (cost, {})
    assert verdict(decision.outcome, notice(*given), NOVEMBER)[0] is Severity.WARNING


@pytest.mark.parametrize(
    ("given", "cost", "amount"),
    [
        ((FULL,), 100 * MICROS, 100 * MICROS),
        ((FULL,), 99_980_000, 100 * MICROS),
        ((HALF,), 49_980_000, 100 * MICROS),
        ((FULL,), None, 100 * MICROS),
        ((FULL,), 1, None),
        ((FULL,), 1, 0),
        ((FULL,), -1, -100 * MICROS),
        ((FORECAST,), 1, 100 * MICROS),
    ],
    ids=str,
)
def test_otherwise_the_threshold_alone_decides(
    given: tuple[Threshold, ...], cost: int | None, amount: int | None
) -> None:
    decision = play(None, notice(*given, cost=cost, amount=amount))

    assert decision.outcome is Outcome.APPLIED
    assert decision.policies


def test_a_contradictory_notice_again_is_still_called_so_and_writes_nothing() -> None:
    sent = notice(FULL, cost=1)
    first = play(None, sent)

    assert play(first.standing, sent) == Decision(outcome=Outcome.CONTRADICTORY)


DONE = {HALF: applied(TIGHTEN.action), FULL: applied()}


@pytest.mark.parametrize(
    ("amount", "is_fixed", "before", "again"),
    [
        (100 * MICROS, True, 100 * MICROS, ()),
        (100 * MICROS + 1, True, 100 * MICROS, (TIGHTEN, TRIP)),
        (100 * MICROS + 1, False, 100 * MICROS, ()),
        (50 * MICROS, True, 100 * MICROS, ()),
        (None, True, 100 * MICROS, ()),
        (200 * MICROS, True, None, ()),
    ],
)
def test_a_budget_that_was_raised_can_act_again(
    amount: int | None, is_fixed: bool, before: int | None, again: tuple[Policy, ...]
) -> None:
    """Also after an operator's reset; what an earlier period cost is no raise, it is corrected by itself."""
    done = {threshold: replace(each, amount=before) for threshold, each in DONE.items()}

    decision = play(standing(applied=done), notice(FULL, amount=amount, is_fixed=is_fixed))

    assert decision.policies == again


def test_a_raised_budget_acts_once_for_its_new_amount_whatever_comes_late() -> None:
    raised = notice(FULL, amount=200 * MICROS, at_us=NOON + 1)
    first = play(standing(applied=DONE), raised, now_us=NOON + 2)

    assert first.standing is not None
    assert first.standing.applied[FULL] == applied(amount=200 * MICROS, at_us=NOON + 2)
    for late in (notice(FULL), raised, notice(HALF)):
        assert play(first.standing, late).policies == ()


@pytest.mark.parametrize(
    ("at_us", "amount", "is_fixed", "policies"),
    [
        (NOON - 1, 199 * MICROS, True, ()),
        (NOON - 1, 200 * MICROS, True, (TIGHTEN, TRIP)),
        (NOON - 1, 201 * MICROS, True, (TIGHTEN, TRIP)),
        (NOON - 1, 199 * MICROS, False, (TIGHTEN, TRIP)),
        (NOON - 1, None, True, (TIGHTEN, TRIP)),
        (NOON, 199 * MICROS, True, (TIGHTEN, TRIP)),
        (None, 199 * MICROS, True, (TIGHTEN, TRIP)),
    ],
)
def test_what_was_published_before_the_budget_was_raised_sets_nothing_off(
    at_us: int | None, amount: int | None, is_fixed: bool, policies: tuple[Policy, ...]
) -> None:
    raised = standing(cost=0, amount=200 * MICROS, as_of_us=NOON, points={})
    late = notice(FULL, at_us=at_us, amount=amount, is_fixed=is_fixed)

    assert play(raised, late).policies == policies
    assert play(replace(raised, amount=None), late).policies == (TIGHTEN, TRIP)
    assert play(replace(raised, as_of_us=None), late).policies == (TIGHTEN, TRIP)


def test_a_raised_budget_tells_again_of_a_threshold_without_a_policy() -> None:
    done = standing(applied=DONE | {DOUBLE: applied(RecordPolicy())})

    assert play(done, notice(DOUBLE)).policies == ()
    assert Policy(threshold=DOUBLE, action=RecordPolicy()) in play(done, notice(DOUBLE, amount=150 * MICROS)).policies


@pytest.mark.parametrize(
    ("exceeded", "policies"),
    [
        ((), ()),
        (
            (Threshold(kind=ThresholdKind.ACTUAL, bp=4_999),),
            (Policy(threshold=Threshold(kind=ThresholdKind.ACTUAL, bp=4_999), action=RecordPolicy()),),
        ),
        (
            (Threshold(kind=ThresholdKind.ACTUAL, bp=1),),
            (Policy(threshold=Threshold(kind=ThresholdKind.ACTUAL, bp=1), action=RecordPolicy()),),
        ),
        ((HALF,), (TIGHTEN,)),
        (
            (Threshold(kind=ThresholdKind.ACTUAL, bp=5_001),),
            (TIGHTEN, Policy(threshold=Threshold(kind=ThresholdKind.ACTUAL, bp=5_001), action=RecordPolicy())),
        ),
        ((FULL,), (TIGHTEN, TRIP)),
        ((FORECAST,), (AHEAD,)),
        ((HALF, FORECAST), (TIGHTEN, AHEAD)),
    ],
)
def test_a_notice_reaches_the_policies_up_to_its_threshold(
    exceeded: tuple[Threshold, ...], policies: tuple[Policy, ...]
) -> None:
    assert play(None, notice(*exceeded)).policies == policies


@pytest.mark.parametrize(
    ("done", "now", "acts"),
    [
        (RecordPolicy(), RecordPolicy(), False),
        (RecordPolicy(), TripPolicy(scope="all"), True),
        (TripPolicy(scope="all"), RecordPolicy(), False),
        (TripPolicy(scope="all"), TripPolicy(scope="gemini"), False),
    ],
)
def test_what_was_only_recorded_may_still_act(done: object, now: RecordPolicy | TripPolicy, acts: bool) -> None:
    budget = replace(BUDGET, policies=(Policy(threshold=FULL, action=now),))

    decision = play(standing(applied={FULL: applied(done)}), notice(FULL), budget=budget)

    assert bool(decision.policies) == acts


@pytest.mark.parametrize(("known", "told"), [(MOST_APPLIED - 1, True), (MOST_APPLIED, False)])
def test_thresholds_without_a_policy_are_bounded(known: int, told: bool) -> None:
    done = {Threshold(kind=ThresholdKind.FORECAST, bp=bp + 1): applied(RecordPolicy()) for bp in range(known)}
    budget = replace(BUDGET, policies=())

    assert bool(play(standing(applied=done), notice(FULL), budget=budget).policies) == told
    assert (MOST_APPLIED, MOST_POINTS) == (100, 9_000)


@pytest.mark.parametrize(
    ("sent", "changed"),
    [
        (notice(cost=None, at_us=NOON + 1), {}),
        (notice(at_us=None, cost=1), {}),
        (notice(cost=1), {}),
        (notice(cost=1, at_us=NOON - 1), {}),
        (
            notice(cost=400, amount=7, at_us=NOON + 1, name="new"),
            {"cost": 400, "amount": 7, "as_of_us": NOON + 1, "name": "new", "points": {"2026-11-10T12Z": 400}},
        ),
        (
            notice(cost=400, at_us=NOON + HOUR_US, name=""),
            {"cost": 400, "as_of_us": NOON + HOUR_US, "points": POINTS | {"2026-11-10T13Z": 400}},
        ),
        (notice(cost=1, at_us=NOON - HOUR_US), {"points": POINTS | {"2026-11-10T11Z": 1}}),
    ],
    ids=["no cost", "no time", "as old", "older, same hour", "newer, same hour", "newer, next hour", "older, before"],
)
def test_the_cost_is_that_of_the_notice_published_last(sent: Notice, changed: dict[str, object]) -> None:
    decision = play(standing(), sent)

    assert decision == (
        Decision(outcome=Outcome.RECORDED, standing=standing(**changed))
        if changed
        else Decision(outcome=Outcome.REPEATED)
    )


def test_only_the_first_points_are_kept() -> None:
    full = {str(number): number for number in range(MOST_POINTS)}

    decision = play(standing(points=full), notice(cost=1, at_us=NOON + 1))

    assert decision.standing is not None
    assert decision.standing.points == full


def test_what_was_applied_is_listed_lowest_first() -> None:
    done = {FULL: applied(), FORECAST: applied(), HALF: applied()}

    assert [threshold for threshold, _ in standing(applied=done).in_order()] == [HALF, FULL, FORECAST]


def test_who_was_told_is_marked_at_one_threshold() -> None:
    marked = standing(applied=DONE).told(FULL, Told.TOLD)

    assert [done.told for done in marked.applied.values()] == [Told.DUE, Told.TOLD]


@pytest.mark.parametrize(
    ("outcome", "exceeded", "at_us", "start_us", "severity", "says_why"),
    [
        (Outcome.RECORDED, (), NOON, NOVEMBER.start_us, Severity.INFO, False),
        (Outcome.RECORDED, (), NOON, NOVEMBER.start_us + 9 * DAY_US, Severity.INFO, False),
        (Outcome.REPEATED, (FULL,), NOON, NOVEMBER.start_us, Severity.INFO, False),
        (Outcome.APPLIED, (FULL,), NOON, NOVEMBER.start_us, Severity.WARNING, False),
        (Outcome.APPLIED, (FULL,), NOON, NOVEMBER.start_us + DAY_US, Severity.WARNING, False),
        (Outcome.APPLIED, (FULL,), NOON, NOVEMBER.start_us + DAY_US + 1, Severity.WARNING, True),
        (Outcome.REPEATED, (FULL,), NOON, NOVEMBER.start_us - DAY_US - 1, Severity.WARNING, True),
        (Outcome.PERIOD_AHEAD, (), NOON, NOVEMBER.start_us, Severity.INFO, False),
        (Outcome.PERIOD_AHEAD, (FULL,), NOON, NOVEMBER.start_us, Severity.WARNING, True),
        (Outcome.PERIOD_OVER, (), NOVEMBER.end_us + STRAY_US, NOVEMBER.start_us, Severity.INFO, False),
        (Outcome.PERIOD_OVER, (FULL,), NOVEMBER.end_us, NOVEMBER.start_us, Severity.WARNING, True),
        (Outcome.PERIOD_OVER, (FULL,), None, NOVEMBER.start_us, Severity.WARNING, True),
        (Outcome.PERIOD_OVER, (), NOVEMBER.end_us + STRAY_US + 1, NOVEMBER.start_us, Severity.ERROR, True),
        (Outcome.CONTRADICTORY, (FULL,), NOON, NOVEMBER.start_us, Severity.WARNING, True),
    ],
)
def test_a_notice_outside_the_period_that_is_known_is_a_warning_at_once(
    outcome: Outcome,
    exceeded: tuple[Threshold, ...],
    at_us: int | None,
    start_us: int,
    severity: Severity,
    says_why: bool,
) -> None:
    level, why = verdict(outcome, notice(*exceeded, at_us=at_us, start_us=start_us), NOVEMBER)

    assert (level, why is not None) == (severity, says_why)


def test_november_is_as_the_calendar_has_it() -> None:
    assert containing(NOVEMBER.start_us, Every.MONTH) == NOVEMBER
