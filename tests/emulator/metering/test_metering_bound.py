"""The strict bound, at the wire: whatever a request does, the store sends it no more documents than its budget."""

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import grpc
import pytest
from google.api_core.exceptions import FailedPrecondition, ServiceUnavailable
from google.cloud import firestore

from firebreak.errors import MeterExceeded, ReadsExceeded
from firebreak.metering.client import Metered
from firebreak.metering.meter import NoMeter, metered
from firebreak.waiting import within
from tests.emulator.metering.notes import fill
from tests.fault_proxy import Fault, FaultProxy, Way

BUDGET = 5
MANY = 50

type Collection = firestore.CollectionReference


@pytest.fixture
def mine(aside: firestore.Client, handlers: Metered, faults: FaultProxy, uid: str) -> Collection:
    """Fifty documents, through the proxy."""
    fill(aside.collection(uid), MANY)
    collection: Collection = handlers.collection(uid)
    return collection


def nested(notes: Collection) -> None:
    for outer in notes.stream():
        for inner in notes.stream():
            assert outer.reference.parent == inner.reference.parent


def each_first(notes: Collection) -> None:
    for _ in range(MANY):
        next(notes.stream())


def at_once(notes: Collection) -> None:
    with ThreadPoolExecutor(max_workers=8) as pool:
        works = [pool.submit(contextvars.copy_context().run, notes.get) for _ in range(8)]
        for work in works:
            work.result()


def catching(notes: Collection) -> None:
    for _ in range(MANY):
        with suppress(MeterExceeded):
            notes.limit(2).get()
    notes.document("d0").get()


def in_transaction(notes: Collection) -> None:
    firestore.transactional(lambda transaction: list(notes.stream(transaction=transaction)))(
        notes._client.transaction()
    )


def by_pages(notes: Collection) -> None:
    last: list[Any] = []
    while True:
        query = notes.order_by("n").limit(2)
        last = (query.start_after(last[-1]) if last else query).get()


RUNAWAYS: dict[str, Callable[[Collection], object]] = {
    "a stream of all": lambda notes: list(notes.stream()),
    "a get of all": lambda notes: notes.get(),
    "a limit above the budget": lambda notes: notes.limit(20).get(),
    "the last ones": lambda notes: notes.order_by("n").limit_to_last(20).get(),
    "a stream in a stream": nested,
    "the first of many streams": each_first,
    "threads at once": at_once,
    "a loop that swallows refusals": catching,
    "pages by cursors": by_pages,
    "a query in a transaction": in_transaction,
    "a collection group": lambda notes: list(notes._client.collection_group(notes.id).stream()),
    "a list of documents": lambda notes: list(notes.list_documents()),
    "a list in pages": lambda notes: list(notes.list_documents(page_size=2)),
    "many documents at once": lambda notes: list(notes._client.get_all([notes.document(f"d{n}") for n in range(6)])),
    "documents one by one": lambda notes: [notes.document(f"d{n}").get() for n in range(MANY)],
    "an offset": lambda notes: notes.offset(5).get(),
    "an offset and a limit": lambda notes: notes.offset(3).limit(10).get(),
    "sums one after another": lambda notes: [notes.sum("n").get() for _ in range(MANY)],
    "collections of many documents": lambda notes: [list(notes.document(f"d{n}").collections()) for n in range(MANY)],
}


@pytest.mark.parametrize("name", RUNAWAYS)
def test_the_store_sends_no_more_documents_than_the_budget(name: str, mine: Collection, faults: FaultProxy) -> None:
    with metered(reads=BUDGET, writes=0) as meters:
        with pytest.raises(ReadsExceeded):
            RUNAWAYS[name](mine)

        with pytest.raises(ReadsExceeded):
            meters.check()
    assert faults.documents.total() <= BUDGET
    assert meters.reads.used <= BUDGET


def test_what_the_store_skips_is_part_of_what_it_may_send(mine: Collection, faults: FaultProxy) -> None:
    with metered(reads=BUDGET, writes=0), pytest.raises(ReadsExceeded):
        mine.offset(3).get()

    assert faults.documents["RunQuery"] == BUDGET - 3


def test_a_stream_gives_every_document_allowed_before_it_raises(mine: Collection) -> None:
    seen: list[str] = []

    with metered(reads=BUDGET, writes=0), pytest.raises(ReadsExceeded):
        seen.extend(snapshot.id for snapshot in mine.stream())

    assert len(seen) == BUDGET


def test_a_stream_that_fits_leaves_the_rest_of_the_budget(mine: Collection) -> None:
    with metered(reads=MANY + 1, writes=0) as meters:
        assert len(mine.get()) == MANY

        assert meters.reads.remaining == 1


def test_reading_inside_a_stream_without_a_limit_costs_what_both_read(mine: Collection, faults: FaultProxy) -> None:
    with metered(reads=3 * MANY, writes=0) as meters:
        for snapshot in mine.stream():
            snapshot.reference.get()
            list(snapshot.reference.collections())

        assert meters.reads.used == 3 * MANY
    assert faults.calls["RunQuery"] == 1


def test_streams_of_several_threads_share_a_budget_that_fits_them_exactly(mine: Collection) -> None:
    with metered(reads=4 * MANY + 1, writes=0) as meters, ThreadPoolExecutor(max_workers=4) as pool:
        works = [pool.submit(contextvars.copy_context().run, mine.get) for _ in range(4)]

        assert [len(work.result()) for work in works] == [MANY] * 4
        assert meters.reads.used == 4 * MANY


def test_a_stream_that_is_left_stays_counted_for_all_it_asked_for(mine: Collection) -> None:
    with metered(reads=30, writes=0) as meters:
        stream: Any = mine.limit(20).stream()
        next(stream)
        assert meters.reads.used == 1

        stream.close()

        assert meters.reads.used == 20


def test_an_aggregation_is_bounded_by_a_thousand_entries_a_read(
    aside: firestore.Client, handlers: Metered, uid: str
) -> None:
    for part in range(3):
        fill(aside.collection(uid), 450, start=450 * part)
    notes = handlers.collection(uid)

    with metered(reads=2, writes=0) as meters:
        assert notes.sum("n").get()[0][0].value == sum(range(1_350))
        assert meters.reads.used == 2
    with metered(reads=2, writes=0) as meters:
        five = notes.sum("n", alias="all").avg("n").count().sum("n").avg("n").get()[0]
        assert {each.value for each in five} == {sum(range(1_350)), 674.5, 1_350}
        assert meters.reads.used == 2
    with metered(reads=1, writes=0) as meters, pytest.raises(ReadsExceeded):
        notes.sum("n").get()
    assert meters.reads.used == 1


def test_a_refusal_sends_nothing(mine: Collection, faults: FaultProxy) -> None:
    with metered(reads=0, writes=0):
        for read in (mine.get, mine.document("d0").get, mine.sum("n").get, lambda: list(mine.list_documents())):
            with pytest.raises(ReadsExceeded):
                read()

    assert faults.calls.total() == 0


def test_once_writes_are_exceeded_reads_are_refused_too(mine: Collection, faults: FaultProxy) -> None:
    with metered(reads=MANY, writes=1) as meters:
        open_stream = mine.limit(10).stream()
        next(open_stream)
        mine.document("d0").update({"n": 1})
        with suppress(MeterExceeded):
            mine.document("d0").update({"n": 2})
        sent = faults.calls.total()

        for act in (mine.get, mine.document("d0").get, mine.document("d0").delete, lambda: next(open_stream)):
            with pytest.raises(MeterExceeded):
                act()
        with pytest.raises(MeterExceeded):
            in_transaction(mine)
        with pytest.raises(MeterExceeded):
            meters.check()
    assert faults.calls.total() == sent


@pytest.mark.parametrize("method", ["RunQuery", "BatchGetDocuments", "RunAggregationQuery", "ListDocuments"])
def test_a_read_is_tried_once_and_stays_counted_when_its_reply_is_lost(
    method: str, mine: Collection, faults: FaultProxy
) -> None:
    some: Any = mine.limit(4_000)
    reads: dict[str, Callable[[], object]] = {
        "RunQuery": mine.limit(4).get,
        "BatchGetDocuments": lambda: list(mine._client.get_all([mine.document(f"d{n}") for n in range(4)])),
        "RunAggregationQuery": some.sum("n").get,
        "ListDocuments": lambda: list(mine.list_documents(page_size=4)),
    }
    faults.plan(Fault(method, Way.LOSE_REPLY, times=9))

    with metered(reads=9, writes=0) as meters, pytest.raises(ServiceUnavailable):
        reads[method]()

    assert meters.reads.used == 4
    assert faults.calls == {method: 1}


def test_a_query_that_the_store_turns_away_costs_one_read(mine: Collection, faults: FaultProxy) -> None:
    faults.plan(Fault("RunQuery", Way.BEFORE, grpc.StatusCode.FAILED_PRECONDITION))

    with metered(reads=9, writes=0) as meters, pytest.raises(FailedPrecondition):
        mine.get()

    assert meters.reads.used == 1


def test_threads_of_our_own_parts_read_on_the_requests_meter(mine: Collection) -> None:
    with metered(reads=3, writes=0) as meters:
        within(10, mine.limit(2).get)

        with pytest.raises(ReadsExceeded):
            within(10, mine.limit(2).get)
        assert meters.reads.used == 3


def test_a_bare_thread_cannot_read(mine: Collection, faults: FaultProxy) -> None:
    errors: list[BaseException] = []

    def read() -> None:
        try:
            mine.get()
        except NoMeter as error:
            errors.append(error)

    with metered(reads=3, writes=0):
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()

    assert len(errors) == 1
    assert faults.calls.total() == 0
