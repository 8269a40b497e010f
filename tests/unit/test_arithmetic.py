"""The arithmetic of the bucket, as facts and as properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firebreak.bucket.arithmetic import Level, Short, Taken, full_at_us, refill, take
from firebreak.store.times import DAY_US, HOUR_US

LIMITS = st.integers(1, 10**10)
TIMES = st.integers(0, 10 * DAY_US)


def level(tokens: int, updated_us: int = 0) -> Level:
    return Level(tokens=tokens, updated_us=updated_us)


def test_half_a_day_buys_half_the_limit() -> None:
    assert refill(level(0), limit=1000, now_us=DAY_US // 2) == level(500, DAY_US // 2)


def test_a_limit_an_hour_is_bought_in_an_hour() -> None:
    assert refill(level(0), limit=1000, now_us=HOUR_US // 2, period_us=HOUR_US) == level(500, HOUR_US // 2)
    assert full_at_us(level(250), limit=1000, period_us=HOUR_US) == HOUR_US * 3 // 4


def test_what_does_not_fit_says_when_an_hourly_limit_will_have_bought_it() -> None:
    decision = take(level(0), cost=1, limit=600, now_us=0, period_us=HOUR_US)

    assert decision == Short(level=level(0), retry_after_s=6)


def test_a_full_bucket_stays_at_the_limit() -> None:
    assert refill(level(1000), limit=1000, now_us=5 * DAY_US) == level(1000, 5 * DAY_US)


def test_a_level_above_a_lowered_limit_is_cut_to_it() -> None:
    assert refill(level(1000), limit=10, now_us=1) == level(10, 1)


def test_a_debt_larger_than_a_day_is_repaid_in_the_end() -> None:
    assert refill(level(-2500), limit=1000, now_us=3 * DAY_US).tokens == 500


def test_a_clock_that_steps_back_buys_nothing_and_moves_nothing() -> None:
    assert refill(level(5, 100), limit=1000, now_us=50) == level(5, 100)


def test_time_that_buys_no_whole_token_is_not_lost() -> None:
    slow = level(0)
    for now_us in range(0, DAY_US + 1, DAY_US // 1000):
        slow = refill(slow, limit=10, now_us=now_us)

    assert slow.tokens == 10


def test_what_does_not_fit_says_when_it_will() -> None:
    decision = take(level(0), cost=1, limit=86_400, now_us=0)

    assert decision == Short(level=level(0), retry_after_s=1)


@pytest.mark.parametrize("cost", [0, -1, 1001])
def test_an_impossible_cost_is_an_error(cost: int) -> None:
    with pytest.raises(ValueError, match="cost must be between"):
        take(level(1000), cost=cost, limit=1000, now_us=0)


@given(LIMITS, st.data())
def test_after_retry_after_the_cost_fits(limit: int, data: st.DataObject) -> None:
    cost = data.draw(st.integers(1, limit))
    start = level(data.draw(st.integers(-limit, limit)), data.draw(TIMES))
    now_us = data.draw(TIMES)
    decision = take(start, cost=cost, limit=limit, now_us=now_us)

    if isinstance(decision, Short):
        later_us = now_us + decision.retry_after_s * 1_000_000
        assert isinstance(take(start, cost=cost, limit=limit, now_us=later_us), Taken)


@given(LIMITS, st.integers(-(10**12), 10**12), TIMES, st.lists(TIMES, max_size=20))
def test_refill_in_steps_is_refill_at_once(limit: int, tokens: int, start_us: int, steps: list[int]) -> None:
    """Up to the one token that is always under way, and less than a microsecond for each step; and never more."""
    now_us = max([start_us, *steps])
    stepped = level(tokens, start_us)
    for step in sorted(steps):
        stepped = refill(stepped, limit=limit, now_us=step)
    at_once = refill(level(tokens, start_us), limit=limit, now_us=now_us)
    stepped = refill(stepped, limit=limit, now_us=now_us)

    lost = 1 + (len(steps) + 1) * limit // DAY_US
    assert at_once.tokens - lost <= stepped.tokens <= at_once.tokens
    assert start_us <= stepped.updated_us <= max(now_us, start_us)


@given(
    LIMITS,
    st.sampled_from([DAY_US, HOUR_US]),
    st.lists(st.tuples(st.integers(0, 2 * DAY_US), st.floats(0, 1)), min_size=1, max_size=50),
)
def test_admitted_in_any_window_is_at_most_limit_and_its_refill(
    limit: int, period_us: int, asks: list[tuple[int, float]]
) -> None:
    bucket, now_us = level(limit), 0
    taken: list[tuple[int, int]] = []
    for wait_us, share in asks:
        now_us += wait_us
        cost = max(1, min(limit, round(limit * share)))
        decision = take(bucket, cost=cost, limit=limit, now_us=now_us, period_us=period_us)
        if isinstance(decision, Taken):
            bucket = decision.level
            taken.append((bucket.updated_us, cost))

    for first, (since, _) in enumerate(taken):
        for last in range(first, len(taken)):
            window_us = taken[last][0] - since
            admitted = sum(cost for _, cost in taken[first : last + 1])
            assert admitted * period_us <= limit * (period_us + window_us)


@given(LIMITS, st.integers(-(10**12), 10**12))
def test_full_at_is_when_the_bucket_is_full(limit: int, tokens: int) -> None:
    full_us = full_at_us(level(tokens), limit=limit)

    assert refill(level(tokens), limit=limit, now_us=full_us).tokens == limit
