"""Meters: exact under threads, latched once exceeded, and no way around them."""

import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import pytest

from firebreak.errors import MeterExceeded, ReadsExceeded, Refused, WritesExceeded
from firebreak.metering.meter import AlreadyMetered, Meter, NoMeter, ReadMeter, WriteMeter, current, metered, unmetered
from firebreak.metering.queries import ReadHold
from firebreak.waiting import DONE, ReadAhead, within


def alone(call: Callable[[], object]) -> object:
    """What a thread with a context of its own makes of it: the result, or the error."""
    outcome: list[object] = []

    def run() -> None:
        try:
            outcome.append(call())
        except Exception as error:  # noqa: BLE001 - to look at
            outcome.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    return outcome[0]


def took(meter: Meter) -> bool:
    try:
        meter.take()
    except MeterExceeded:
        return False
    return True


@pytest.mark.parametrize(("kind", "refusal"), [(ReadMeter, ReadsExceeded), (WriteMeter, WritesExceeded)])
def test_a_meter_counts_up_to_its_limit_and_refuses_what_is_more(
    kind: type[Meter], refusal: type[MeterExceeded]
) -> None:
    meter = kind(3)
    meter.take()
    meter.take(2)

    with pytest.raises(refusal) as caught:
        meter.take()

    assert meter.used == 3
    assert meter.remaining == 0
    assert caught.value.details == {"reason": caught.value.reason.value, "limit": 3, "remaining": 0}


def test_what_does_not_fit_counts_nothing_at_all() -> None:
    meter = ReadMeter(3)
    meter.take(2)

    with pytest.raises(ReadsExceeded):
        meter.take(2)

    assert meter.used == 2


def test_an_exceeded_meter_refuses_even_what_would_fit() -> None:
    meter = ReadMeter(3)
    with pytest.raises(ReadsExceeded):
        meter.take(4)

    with pytest.raises(ReadsExceeded):
        meter.take(1)


def test_what_is_given_back_can_be_taken_again() -> None:
    meter = WriteMeter(3)
    meter.take(3)

    meter.give_back(2)

    meter.take(2)
    assert meter.used == 3


@pytest.mark.parametrize(("count", "left"), [(0, 3), (3, 0)])
def test_all_or_nothing_may_be_given_back(count: int, left: int) -> None:
    meter = WriteMeter(9)
    meter.take(3)

    meter.give_back(count)

    assert meter.used == left


@pytest.mark.parametrize("count", [-1, 4])
def test_no_more_is_given_back_than_was_taken(count: int) -> None:
    meter = WriteMeter(9)
    meter.take(3)

    with pytest.raises(ValueError, match="cannot be given back"):
        meter.give_back(count)


@pytest.mark.parametrize("count", [0, -1])
@pytest.mark.parametrize("limit", [None, 5])
def test_nothing_is_no_count(limit: int | None, count: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ReadMeter(limit).take(count)


def test_a_limit_may_be_0_and_not_below() -> None:
    with pytest.raises(ReadsExceeded):
        ReadMeter(0).take()
    with pytest.raises(ValueError, match="at least 0"):
        ReadMeter(-1)


def test_a_meter_without_a_limit_counts_on() -> None:
    meter = ReadMeter()

    meter.take(10**9)

    assert meter.used == 10**9
    assert meter.remaining is None


def test_threads_take_exactly_the_limit() -> None:
    meter = ReadMeter(500)

    with ThreadPoolExecutor(max_workers=16) as pool:
        admitted = sum(pool.map(lambda _: took(meter), range(1_000)))

    assert admitted == meter.used == 500


def test_what_a_read_under_way_has_set_aside_is_not_used_and_not_free() -> None:
    meter = ReadMeter(10)
    hold = ReadHold(meter)
    with hold.lock:
        hold.open(8)
        hold.spend(3)

        assert (meter.used, meter.remaining) == (3, 2)
        hold.end()

    assert (meter.used, meter.remaining) == (3, 7)


def test_who_needs_what_a_read_has_set_aside_waits_for_its_end() -> None:
    meter = ReadMeter(10)
    hold = ReadHold(meter)
    with ThreadPoolExecutor(max_workers=1) as pool:
        with hold.lock:
            hold.open(None)
            taking = pool.submit(meter.take, 5)
            hold.spend(5)
            assert not taking.done()
            hold.end()

        taking.result(timeout=10)
    assert meter.used == 10


def test_a_read_that_nobody_waits_for_stays_counted_in_full() -> None:
    meter = ReadMeter(10)
    hold = ReadHold(meter)
    with hold.lock:
        hold.open(6)
        hold.spend(1)

    del hold

    assert (meter.used, meter.remaining) == (6, 4)


def test_two_reads_of_all_that_is_left_share_it_and_never_more() -> None:
    meter = ReadMeter(100)

    def read(_: int) -> int:
        hold = ReadHold(meter)
        with hold.lock:
            granted = hold.open(None)
            hold.spend(10)
            hold.end()
        return granted or 0

    with ThreadPoolExecutor(max_workers=8) as pool:
        granted = list(pool.map(read, range(10)))

    assert meter.used == 100
    assert sorted(granted, reverse=True) == list(range(100, 0, -10))


def test_both_meters_of_a_request_refuse_once_one_is_exceeded() -> None:
    with metered(reads=5, writes=1) as meters:
        with pytest.raises(WritesExceeded):
            meters.writes.take(2)

        with pytest.raises(WritesExceeded):
            meters.reads.take()


def test_the_first_excess_of_a_request_is_the_one_it_is_refused_for() -> None:
    with metered(reads=5, writes=1) as meters:
        meters.writes.exceed()
        meters.reads.exceed()

        assert isinstance(meters.exceeded, WritesExceeded)


def test_a_refusal_that_was_swallowed_is_raised_at_the_end() -> None:
    with metered(reads=5, writes=1) as meters:
        meters.check()
        took(meters.writes)
        took(meters.writes)

        with pytest.raises(WritesExceeded):
            meters.check()


def test_a_request_has_no_budget_before_it_is_given_one() -> None:
    with metered(reads=0, writes=0) as meters:
        assert meters.exceeded is None

        meters.allow(reads=2, writes=1)

        meters.reads.take(2)
        meters.writes.take()
        assert not took(meters.writes)
        assert isinstance(meters.exceeded, WritesExceeded)


def test_the_guards_own_meters_have_no_limit_and_go_on_after_the_handlers_are_exceeded() -> None:
    with metered(reads=0, writes=0) as meters:
        took(meters.reads)

        meters.guard_reads.take(100)
        meters.guard_writes.take(100)

    assert (meters.guard_reads.used, meters.guard_writes.used) == (100, 100)


def test_without_a_request_there_is_no_meter() -> None:
    with pytest.raises(NoMeter):
        current()
    with metered(reads=1, writes=1):
        current()
    with pytest.raises(NoMeter):
        current()


def test_having_no_meter_is_a_fault_of_the_program_and_no_refusal() -> None:
    assert not issubclass(NoMeter, Refused)


def test_requests_that_run_at_once_have_meters_of_their_own() -> None:
    def request(reads: int) -> int:
        with metered(reads=reads, writes=1) as meters:
            while took(current().reads):
                pass
            return meters.reads.used

    with ThreadPoolExecutor(max_workers=8) as pool:
        assert list(pool.map(request, range(50))) == list(range(50))


def test_threads_started_through_our_own_parts_count_on_the_request() -> None:
    with metered(reads=9, writes=1) as meters:
        within(5, lambda: current().reads.take(2))
        reading = ReadAhead(lambda: (took(current().reads) for _ in range(3)))
        while reading.take(wait_s=5) is not DONE:
            pass
        contextvars.copy_context().run(lambda: current().reads.take(4))

        assert meters.reads.used == 9
        with pytest.raises(ReadsExceeded):
            within(5, current().reads.take)


def test_a_bare_thread_has_no_meter() -> None:
    with metered(reads=1, writes=1):
        assert isinstance(alone(current), NoMeter)


def test_work_that_is_no_request_says_so_and_is_counted() -> None:
    with unmetered("a script of operations") as meters:
        current().reads.take(10**6)
        current().writes.take()

    assert (meters.reads.used, meters.writes.used) == (10**6, 1)


@pytest.mark.parametrize("reason", ["", "  "])
def test_work_that_is_no_request_gives_a_reason(reason: str) -> None:
    with pytest.raises(ValueError, match="reason"), unmetered(reason):
        pass


def test_inside_a_request_there_is_no_way_around_its_meters() -> None:
    with metered(reads=1, writes=1) as meters:
        with pytest.raises(AlreadyMetered), unmetered("I need more"):
            pass
        with pytest.raises(AlreadyMetered), metered(reads=10**9, writes=10**9):
            pass

        assert current() is meters
