"""What an instance knows of a bucket: which knowledge counts, and when it is given up."""

import threading
from datetime import UTC, datetime, timedelta

from firebreak.bucket.arithmetic import Level
from firebreak.bucket.documents import Bucket, Commit
from firebreak.bucket.memory import KNOWN_S, REFUSE_S, KnownUsers

START = datetime(2026, 1, 1, tzinfo=UTC)


class Hand:
    """A monotonic clock, moved by hand."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def bucket(tokens: int = 100, version: int = 7, at: int = 0) -> Bucket:
    return Bucket(
        level=Level(tokens=tokens, updated_us=0),
        version=version,
        override=None,
        updated=START + timedelta(seconds=at),
    )


def commit(at: int, **sums: int) -> Commit:
    return Commit(updated=START + timedelta(seconds=at), sums=sums)


def test_what_was_put_is_known() -> None:
    known = KnownUsers(Hand())
    known.put("u", bucket())

    entry = known.get("u")
    assert entry is not None
    assert entry.bucket == bucket()
    assert known.get("v") is None


def test_the_newest_state_wins_whatever_order_replies_come_in() -> None:
    known = KnownUsers(Hand())
    known.put("u", bucket(50, at=2))
    known.put("u", bucket(90, at=1))

    entry = known.get("u")
    assert entry is not None
    assert entry.bucket == bucket(50, at=2)


def test_a_bucket_without_a_document_is_not_remembered() -> None:
    known = KnownUsers(Hand())
    known.put("u", Bucket(level=None, version=None, override=None, updated=None))

    assert known.get("u") is None


def test_a_failure_gives_up_only_what_it_went_by() -> None:
    known = KnownUsers(Hand())
    known.put("u", bucket(at=1))
    old = known.get("u")
    known.put("u", bucket(50, at=2))

    known.doubt("u", old)
    assert known.get("u") is not None

    known.doubt("u", known.get("u"))
    assert known.get("u") is None


def test_while_a_settle_is_on_its_way_the_state_is_unknown() -> None:
    known = KnownUsers(Hand())
    known.put("u", bucket())

    known.settling("u")

    assert known.get("u") is None


def test_a_settle_on_the_very_state_that_was_known_makes_the_new_one_known() -> None:
    known = KnownUsers(Hand())
    known.put("u", bucket(100, version=7))
    before = known.settling("u")

    known.settled("u", before, commit(1, tokens=130, version=8), refund=30)

    entry = known.get("u")
    assert entry is not None
    assert entry.bucket == bucket(130, version=8, at=1)


def test_a_settle_on_any_other_state_leaves_it_unknown() -> None:
    for sums in ({"tokens": 130, "version": 9}, {"tokens": 131, "version": 8}, {}):
        known = KnownUsers(Hand())
        known.put("u", bucket(100, version=7))
        before = known.settling("u")

        known.settled("u", before, commit(1, **sums), refund=30)

        assert known.get("u") is None


def test_the_reply_of_a_settle_that_is_late_does_not_undo_what_was_read_since() -> None:
    known = KnownUsers(Hand())
    known.put("u", bucket(100, version=7))
    before = known.settling("u")
    known.put("u", bucket(20, version=9, at=5))

    known.settled("u", before, commit(1, tokens=130, version=8), refund=30)

    entry = known.get("u")
    assert entry is not None
    assert entry.bucket == bucket(20, version=9, at=5)


def test_of_two_settles_at_once_only_what_is_sure_is_known() -> None:
    known = KnownUsers(Hand())
    known.put("u", bucket(100, version=7))
    first, second = known.settling("u"), known.settling("u")

    known.settled("u", second, commit(2, tokens=140, version=9), refund=10)
    assert known.get("u") is None

    known.settled("u", first, commit(1, tokens=130, version=8), refund=30)

    entry = known.get("u")
    assert entry is not None
    assert entry.bucket == bucket(130, version=8, at=1)


def test_of_two_settles_at_once_the_first_is_not_taken_for_the_state_that_the_second_made() -> None:
    """The second's commit came first: the first one's sums hold both."""
    known = KnownUsers(Hand())
    known.put("u", bucket(100, version=7))
    first, second = known.settling("u"), known.settling("u")

    known.settled("u", second, commit(1, tokens=110, version=8), refund=10)
    known.settled("u", first, commit(2, tokens=140, version=9), refund=30)

    assert known.get("u") is None


def test_a_state_admits_for_long_and_refuses_only_while_it_is_young() -> None:
    clock = Hand()
    known = KnownUsers(clock)
    known.put("u", bucket())
    entry = known.get("u")
    assert entry is not None
    assert known.may_refuse(entry)

    clock.now += REFUSE_S + 0.1
    assert not known.may_refuse(entry)
    assert known.get("u") is not None

    clock.now += KNOWN_S
    assert known.get("u") is None


def test_no_more_users_are_remembered_than_fit_and_the_least_seen_goes_first() -> None:
    known = KnownUsers(Hand(), users=2)
    known.put("a", bucket())
    known.put("b", bucket())
    known.get("a")
    known.put("c", bucket())

    assert [name for name in "abc" if known.get(name)] == ["a", "c"]


def test_threads_do_not_break_it() -> None:
    known = KnownUsers(Hand(), users=50)

    def hammer(seed: int) -> None:
        for step in range(2_000):
            name = f"u{(seed * 31 + step) % 80}"
            known.put(name, bucket(at=step))
            known.doubt(name, known.get(name))
            known.settled(name, known.settling(name), commit(step, tokens=1, version=1), refund=1)

    threads = [threading.Thread(target=hammer, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(known._entries) == 50
