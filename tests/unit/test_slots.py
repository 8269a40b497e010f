"""One user holds so many threads and no more, and gives each back at whatever end."""

import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from firebreak.errors import Contention
from firebreak.guard.slots import Slots
from firebreak.settings.settings import load
from firebreak.settings.tiers import threads


def test_a_user_who_holds_all_of_theirs_is_refused_and_told_when_to_come_back() -> None:
    slots = Slots()
    with slots.lease() as one, slots.lease() as other, slots.lease() as third, slots.lease() as somebody:
        one.take("ann", most=2)
        other.take("ann", most=2)

        with pytest.raises(Contention) as refusal:
            third.take("ann", most=2)
        somebody.take("bob", most=2)

        assert refusal.value.details == {"reason": "contention", "retryAfterSeconds": 2}
        assert len(slots) == 3


def test_a_refusal_holds_nothing_and_what_is_given_back_can_be_taken() -> None:
    slots = Slots()
    with slots.lease() as held:
        held.take("ann", most=1)
        with pytest.raises(Contention), slots.lease() as refused:
            refused.take("ann", most=1)
        assert len(slots) == 1

    with slots.lease() as next_one:
        next_one.take("ann", most=1)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_it_is_given_back_however_the_request_ends(error: type[BaseException]) -> None:
    slots = Slots()

    def end() -> None:
        with slots.lease() as slot:
            slot.take("ann", most=1)
            raise error

    with pytest.raises(error):
        end()

    assert len(slots) == 0


def test_a_thread_that_is_left_can_be_taken_before_the_request_ends() -> None:
    slots = Slots()
    with slots.lease() as held, slots.lease() as other:
        held.take("ann", most=1)
        held.leave()

        other.take("ann", most=1)

        assert len(slots) == 1
    assert len(slots) == 0


def test_who_waits_gets_the_thread_that_is_left() -> None:
    slots = Slots()
    with slots.lease() as held, slots.lease() as waiting, ThreadPoolExecutor() as pool:
        held.take("ann", most=1)
        taking = pool.submit(waiting.take, "ann", most=1, wait_s=300)
        held.leave()

        taking.result()

        assert len(slots) == 1


def test_who_waited_in_vain_is_refused() -> None:
    slots = Slots()
    with slots.lease() as held, slots.lease() as waiting:
        held.take("ann", most=1)

        with pytest.raises(Contention):
            waiting.take("ann", most=1, wait_s=0.05)

        assert len(slots) == 1


def test_a_request_that_took_none_gives_none_back() -> None:
    slots = Slots()
    with slots.lease() as held:
        held.take("ann", most=1)
        with slots.lease():
            pass

        assert len(slots) == 1


def streamed(slots: Slots) -> Iterator[bytes]:
    with slots.lease() as slot:
        slot.take("ann", most=1)
        yield b""
        yield b"more"


def test_a_stream_holds_it_until_it_is_read_to_its_end() -> None:
    slots = Slots()
    stream = streamed(slots)
    assert (next(stream), len(slots)) == (b"", 1)

    assert (list(stream), len(slots)) == ([b"more"], 0)


def test_a_stream_that_nobody_reads_or_closes_gives_it_back() -> None:
    slots = Slots()
    stream = streamed(slots)
    next(stream)

    del stream
    gc.collect()

    assert len(slots) == 0


def test_of_threads_that_come_at_once_no_more_than_that_pass() -> None:
    slots, started, done = Slots(), threading.Barrier(32), threading.Barrier(32)

    def ask(_: int) -> bool:
        with slots.lease() as slot:
            started.wait()
            try:
                slot.take("ann", most=4)
            except Contention:
                return False
            finally:
                # Nobody leaves before all have asked.
                done.wait()
            return True

    with ThreadPoolExecutor(32) as pool:
        passed = list(pool.map(ask, range(32)))

    assert passed.count(True) == 4
    assert len(slots) == 0


@pytest.mark.parametrize(
    ("of", "percent", "most"), [("8", "50", 4), ("7", "50", 3), ("1", "50", 1), ("3", "1", 1), ("8", "100", 8)]
)
def test_the_share_is_a_part_of_the_threads_and_at_least_one(of: str, percent: str, most: int) -> None:
    env = {"GCLOUD_PROJECT": "my-app", "MAX_DAILY_TOKENS": "1", "THREADS": of, "USER_THREADS_PERCENT": percent}

    assert threads(load(env)) == most
