"""Writes: counted when queued, given back only when they provably failed, and never more of them than the budget."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import grpc
import pytest
from google.api_core.exceptions import AlreadyExists, GoogleAPICallError, NotFound, ServiceUnavailable
from google.cloud import firestore

from firebreak.bucket.ledger import Ledger
from firebreak.bucket.reserve import Ask
from firebreak.errors import MeterExceeded, WritesExceeded
from firebreak.metering.batch import FLUSH_AT, EmptyBatch, TransactionTooLarge
from firebreak.metering.client import Metered
from firebreak.metering.meter import NoMeter, metered, unmetered
from firebreak.store.outcome import NOT_APPLIED
from tests.emulator.books import books
from tests.fault_proxy import Fault, FaultProxy, Way

type Collection = firestore.CollectionReference

REFUSED = [
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
]
UNKNOWN = [
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.UNKNOWN,
]


@pytest.fixture
def mine(handlers: Metered, faults: FaultProxy, uid: str) -> Collection:
    """A collection that is empty."""
    collection: Collection = handlers.collection(uid)
    return collection


@pytest.fixture
def stored(aside: firestore.Client, uid: str) -> Callable[[], int]:
    """How many documents really are in that collection."""
    return lambda: len(aside.collection(uid).get())


def queue(notes: Collection, count: int, batch: firestore.WriteBatch | None = None) -> firestore.WriteBatch:
    batch = batch or notes._client.batch()
    for n in range(count):
        batch.set(notes.document(f"d{n}"), {"n": n})
    return batch


def test_a_loop_that_only_queues_is_stopped_before_anything_is_written(
    mine: Collection, stored: Callable[[], int]
) -> None:
    with metered(reads=0, writes=FLUSH_AT) as meters, pytest.raises(WritesExceeded):
        queue(mine, 10**6)

    assert meters.writes.used == FLUSH_AT
    assert stored() == 0


def test_a_loop_that_only_queues_holds_no_more_than_one_part_and_writes_no_more_than_its_budget(
    mine: Collection, stored: Callable[[], int]
) -> None:
    batch = mine._client.batch()

    with metered(reads=0, writes=2 * FLUSH_AT + 10), pytest.raises(WritesExceeded):
        queue(mine, 10**6, batch)

    assert len(batch._write_pbs) <= FLUSH_AT
    assert stored() == 2 * FLUSH_AT


def test_a_batch_is_whole_up_to_its_bound(mine: Collection, stored: Callable[[], int], faults: FaultProxy) -> None:
    with metered(reads=0, writes=FLUSH_AT):
        batch = queue(mine, FLUSH_AT)
        assert stored() == 0

        results = batch.commit()

    assert len(results) == FLUSH_AT == stored()
    assert faults.calls["Commit"] == 1


def test_a_batch_beyond_its_bound_is_sent_in_parts_and_answers_for_all_of_them(
    mine: Collection, stored: Callable[[], int], faults: FaultProxy
) -> None:
    with metered(reads=0, writes=1_000) as meters:
        batch = queue(mine, FLUSH_AT + 1)
        assert stored() == FLUSH_AT

        results = batch.commit()

        assert meters.writes.used == FLUSH_AT + 1
    assert len(results) == FLUSH_AT + 1 == stored()
    assert faults.calls["Commit"] == 2


def test_a_batch_that_was_sent_is_empty_again(mine: Collection) -> None:
    with metered(reads=0, writes=1_000):
        batch = queue(mine, FLUSH_AT + 1)
        batch.commit()
        batch.set(mine.document("more"), {})

        assert len(batch.commit()) == 1
        with pytest.raises(EmptyBatch):
            batch.commit()


def test_what_was_queued_before_the_excess_is_not_sent_after_it(mine: Collection, stored: Callable[[], int]) -> None:
    with metered(reads=0, writes=2):
        batch = queue(mine, 2)
        with suppress(WritesExceeded):
            queue(mine, 1)

        with pytest.raises(WritesExceeded):
            batch.commit()

    assert stored() == 0


def test_a_transaction_beyond_the_bound_fails_before_it_is_sent(
    mine: Collection, stored: Callable[[], int], faults: FaultProxy
) -> None:
    def work(transaction: firestore.Transaction) -> None:
        for n in range(FLUSH_AT + 1):
            transaction.set(mine.document(f"d{n}"), {"n": n})

    with metered(reads=0, writes=1_000), pytest.raises(TransactionTooLarge):
        firestore.transactional(work)(mine._client.transaction())

    assert faults.calls["Commit"] == 0
    assert stored() == 0


@pytest.mark.parametrize("status", REFUSED, ids=lambda status: status.name)
def test_writes_that_provably_failed_are_given_back(
    status: grpc.StatusCode, mine: Collection, faults: FaultProxy
) -> None:
    faults.plan(Fault("Commit", Way.BEFORE, status))

    with metered(reads=0, writes=5) as meters:
        with pytest.raises(NOT_APPLIED):
            queue(mine, 5).commit()

        assert meters.writes.used == 0
        queue(mine, 5).commit()
        assert meters.writes.used == 5


@pytest.mark.parametrize("status", UNKNOWN, ids=lambda status: status.name)
@pytest.mark.parametrize("way", [Way.BEFORE, Way.LOSE_REPLY])
def test_writes_without_an_answer_stay_counted_and_are_sent_once(
    way: Way, status: grpc.StatusCode, mine: Collection, faults: FaultProxy
) -> None:
    faults.plan(Fault("Commit", way, status, times=9))

    with metered(reads=0, writes=5) as meters, pytest.raises(GoogleAPICallError):
        queue(mine, 3).commit()

    assert meters.writes.used == 3
    assert faults.calls["Commit"] == 1


@pytest.mark.parametrize(
    ("write", "error"),
    [
        (lambda notes: notes.document("here").create({}), AlreadyExists),
        (lambda notes: notes.document("none").update({"n": 1}), NotFound),
        (lambda notes: notes.document("none").delete(firestore.Client.write_option(exists=True)), NotFound),
    ],
    ids=["create", "update", "delete"],
)
def test_what_the_store_itself_turns_away_is_given_back(
    write: Callable[[Collection], object], error: type[Exception], mine: Collection
) -> None:
    with metered(reads=0, writes=2) as meters:
        mine.document("here").set({})

        with pytest.raises(error):
            write(mine)

        assert meters.writes.used == 1


def test_a_batch_that_is_sent_again_is_counted_again(mine: Collection, faults: FaultProxy) -> None:
    faults.plan(Fault("Commit", Way.LOSE_REPLY))

    with metered(reads=0, writes=5) as meters:
        batch = queue(mine, 2)
        with pytest.raises(ServiceUnavailable):
            batch.commit()
        batch.commit()

        assert meters.writes.used == 4
        with pytest.raises(WritesExceeded):
            queue(mine, 2)


def test_a_part_whose_reply_is_lost_stays_counted_and_is_counted_again_with_the_next(
    mine: Collection, stored: Callable[[], int], faults: FaultProxy
) -> None:
    faults.plan(Fault("Commit", Way.LOSE_REPLY))

    with metered(reads=0, writes=3 * FLUSH_AT) as meters:
        batch = queue(mine, FLUSH_AT)
        with pytest.raises(ServiceUnavailable):
            batch.set(mine.document("more"), {})
        batch.commit()

        assert meters.writes.used == 2 * FLUSH_AT + 1
    assert stored() == FLUSH_AT


def test_each_attempt_of_a_transaction_counts_what_it_reads(mine: Collection, faults: FaultProxy) -> None:
    faults.plan(Fault("Commit", Way.BEFORE, grpc.StatusCode.ABORTED, times=2))

    def work(transaction: firestore.Transaction) -> None:
        mine.document("other").get(transaction=transaction)
        transaction.set(mine.document("d0"), {"n": 1})

    with metered(reads=9, writes=9) as meters:
        firestore.transactional(work)(mine._client.transaction())

        assert (meters.reads.used, meters.writes.used) == (3, 1)


def test_each_attempt_of_a_transaction_counts_what_it_queues(mine: Collection, faults: FaultProxy) -> None:
    attempts: list[Any] = []

    def work(transaction: firestore.Transaction) -> None:
        attempts.append(transaction)
        transaction.set(mine.document("d0"), {"n": 1})
        if len(attempts) == 1:
            raise LookupError("the work itself fails")

    with metered(reads=9, writes=9) as meters:
        with suppress(LookupError):
            firestore.transactional(work)(mine._client.transaction())
        firestore.transactional(work)(mine._client.transaction())

        assert meters.writes.used == 2


def test_a_transaction_whose_reply_is_lost_stays_counted(
    mine: Collection, faults: FaultProxy, stored: Callable[[], int]
) -> None:
    faults.plan(Fault("Commit", Way.LOSE_REPLY))

    with metered(reads=9, writes=9) as meters, pytest.raises(ServiceUnavailable):
        firestore.transactional(lambda t: t.set(mine.document("d0"), {"n": 1}))(mine._client.transaction())

    assert meters.writes.used == 1 == stored()


def test_a_read_only_transaction_counts_no_write_that_it_cannot_make(mine: Collection) -> None:
    def work(transaction: firestore.Transaction) -> None:
        transaction.set(mine.document("d0"), {"n": 1})

    with metered(reads=0, writes=1) as meters, pytest.raises(ValueError, match="read-only"):
        firestore.transactional(work)(mine._client.transaction(read_only=True))

    assert meters.writes.used == 0


def test_an_outage_at_the_beginning_of_a_transaction_is_told_as_one(mine: Collection, faults: FaultProxy) -> None:
    faults.plan(Fault("BeginTransaction", Way.BEFORE))

    with metered(reads=0, writes=0), pytest.raises(ServiceUnavailable):
        firestore.transactional(lambda _: None)(mine._client.transaction())


def test_a_transaction_that_is_refused_in_the_middle_leaves_no_lock(mine: Collection, aside: firestore.Client) -> None:
    def work(transaction: firestore.Transaction) -> None:
        mine.document("d0").get(transaction=transaction)
        transaction.set(mine.document("d0"), {"n": 1})

    with metered(reads=1, writes=0), pytest.raises(WritesExceeded):
        firestore.transactional(work)(mine._client.transaction())

    aside.collection(mine.id).document("d0").set({"n": 2}, timeout=1, retry=None)


def test_a_loop_that_swallows_refusals_writes_no_more_than_its_budget_and_is_found_out(
    mine: Collection, stored: Callable[[], int]
) -> None:
    with metered(reads=0, writes=7) as meters:
        for n in range(50):
            with suppress(Exception):
                mine.document(f"d{n}").set({"n": n})

        with pytest.raises(WritesExceeded):
            meters.check()
    assert stored() == 7


def test_what_is_queued_in_one_request_and_sent_in_another_counts_in_both(mine: Collection) -> None:
    with metered(reads=0, writes=9) as first:
        batch = queue(mine, 3)
    with metered(reads=0, writes=9) as second:
        batch.commit()

    assert (first.writes.used, second.writes.used) == (3, 3)


def test_a_batch_that_goes_on_in_another_request_counts_there_in_full(mine: Collection) -> None:
    with metered(reads=0, writes=9):
        batch = queue(mine, 3)
    with metered(reads=0, writes=9) as second:
        batch.set(mine.document("more"), {})
        batch.commit()

    assert second.writes.used == 4


def test_what_is_queued_in_a_request_is_not_sent_outside(mine: Collection, stored: Callable[[], int]) -> None:
    with metered(reads=0, writes=9):
        batch = queue(mine, 3)

    with pytest.raises(NoMeter):
        batch.commit()

    assert stored() == 0


def test_work_that_is_no_request_writes_without_a_limit(mine: Collection, stored: Callable[[], int]) -> None:
    with unmetered("filling a collection for a test") as meters:
        queue(mine, 2 * FLUSH_AT).commit()

    assert meters.writes.used == stored() == 2 * FLUSH_AT


def test_the_ledger_works_as_ever_and_counts_on_the_guard(
    handlers: Metered, faults: FaultProxy, aside: firestore.Client, uid: str
) -> None:
    ledger = Ledger(handlers.guards())

    with metered(reads=0, writes=0) as meters:
        with suppress(MeterExceeded):
            handlers.document("notes", uid).set({})
        hold = ledger.reserve(uid, "r", Ask(estimate=100, limit=1_000, model="m"))
        settled = ledger.settle(hold, actual=40, counters={"calls": 1})

        assert settled.booked
        assert (meters.guard_reads.used, meters.guard_writes.used) == (1, 4)
    assert books(aside, uid).statuses() == ["settled"]


def test_the_ledger_outside_a_request_is_a_fault_of_the_program(handlers: Metered, uid: str) -> None:
    with pytest.raises(NoMeter):
        Ledger(handlers.guards()).reserve(uid, "r", Ask(estimate=100, limit=1_000, model="m"))


def test_the_guards_client_shares_the_connection_and_the_database(handlers: Metered) -> None:
    guard = handlers.guards()

    assert guard._wire is handlers._wire
    assert guard._database_string == handlers._database_string
