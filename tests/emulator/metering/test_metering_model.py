"""Whatever a request does, in whatever order and through whatever faults, it stays within its budget."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import grpc
import pytest
from google.api_core.exceptions import GoogleAPICallError
from google.cloud import firestore
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firebreak.errors import MeterExceeded
from firebreak.metering.client import Metered
from firebreak.metering.meter import metered
from firebreak.waiting import within
from tests.emulator.metering.notes import fill
from tests.fault_proxy import Fault, FaultProxy, Way

MANY = 12
SECONDS = 20


@dataclass(slots=True)
class Handler:
    """A handler that reads a collection of `MANY` documents and writes new ones into another."""

    notes: firestore.CollectionReference
    written: firestore.CollectionReference
    batch: firestore.WriteBatch
    streams: list[Iterator[object]] = field(default_factory=list)

    def new(self) -> firestore.DocumentReference:
        document: firestore.DocumentReference = self.written.document()
        return document


type Step = Callable[[Handler], object]


def get(n: int) -> Step:
    return lambda handler: handler.notes.document(f"d{n}").get()


def get_all(count: int) -> Step:
    return lambda handler: list(handler.notes._client.get_all([handler.notes.document(f"d{n}") for n in range(count)]))


def query(limit: int | None, offset: int) -> Step:
    def step(handler: Handler) -> object:
        asked = handler.notes.offset(offset) if offset else handler.notes
        return (asked if limit is None else asked.limit(limit)).get()

    return step


def begin(limit: int | None, taken: int) -> Step:
    """Take some of a stream, and leave the rest for later, or for nobody."""

    def step(handler: Handler) -> object:
        stream = handler.notes.stream() if limit is None else handler.notes.limit(limit).stream()
        handler.streams.append(stream)
        return list(islice(stream, taken))

    return step


def go_on(handler: Handler) -> object:
    return list(handler.streams.pop()) if handler.streams else None


def leave(handler: Handler) -> None:
    handler.streams.clear()


def list_documents(page_size: int) -> Step:
    return lambda handler: list(handler.notes.list_documents(page_size=page_size))


def aggregate(handler: Handler) -> object:
    return handler.notes.sum("n").get()


def write(handler: Handler) -> object:
    return handler.new().set({"n": 1})


def queue(count: int) -> Step:
    def step(handler: Handler) -> None:
        for _ in range(count):
            handler.batch.set(handler.new(), {"n": 1})

    return step


def commit(handler: Handler) -> object:
    return handler.batch.commit()


def refused(handler: Handler) -> object:
    return handler.new().update({"n": 1})


def transact(count: int) -> Step:
    def step(handler: Handler) -> object:
        def work(transaction: firestore.Transaction) -> None:
            handler.notes.document("d0").get(transaction=transaction)
            for _ in range(count):
                transaction.set(handler.new(), {"n": 1})

        return firestore.transactional(work)(handler.notes._client.transaction())

    return step


def in_thread(step: Step) -> Step:
    return lambda handler: within(SECONDS, lambda: step(handler))


STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(get, st.integers(0, MANY)),
    st.builds(get_all, st.integers(0, 4)),
    st.builds(query, st.none() | st.integers(0, MANY + 3), st.integers(0, 4)),
    st.builds(begin, st.none() | st.integers(1, MANY + 3), st.integers(0, 4)),
    st.just(go_on),
    st.just(leave),
    st.builds(list_documents, st.integers(0, MANY)),
    st.just(aggregate),
    st.just(write),
    st.builds(queue, st.integers(1, 4)),
    st.just(commit),
    st.just(refused),
    st.builds(transact, st.integers(0, 3)),
)
FAULTS = st.builds(
    Fault,
    method=st.sampled_from(["Commit", "Commit", "RunQuery", "BatchGetDocuments", "ListDocuments", "BeginTransaction"]),
    way=st.sampled_from([Way.BEFORE, Way.LOSE_REPLY, Way.LATE]),
    status=st.sampled_from([grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.INTERNAL]),
    skip=st.integers(0, 2),
)


def exceeds(step: Step, handler: Handler) -> bool:
    """Run a step of a handler that swallows everything; whether it was refused."""
    try:
        step(handler)
    except MeterExceeded:
        return True
    except (GoogleAPICallError, ValueError):
        return False
    return False


@pytest.fixture
def play(
    aside: firestore.Client, handlers: Metered, faults: FaultProxy, uid: str
) -> Callable[[list[Step], list[Fault], int, int], None]:
    fill(aside.collection(uid), MANY)

    def play(steps: list[Step], planned: list[Fault], reads: int, writes: int) -> None:
        faults.clear()
        faults.plan(*planned)
        written = f"{uid}-{uuid.uuid4().hex[:8]}"
        with metered(reads=reads, writes=writes) as meters:
            handler = Handler(
                notes=handlers.collection(uid), written=handlers.collection(written), batch=handlers.batch()
            )
            refusals = [exceeds(step, handler) for step in steps]
        faults.release()

        assert meters.reads.used <= reads
        assert meters.writes.used <= writes
        assert faults.documents.total() <= reads
        assert len(aside.collection(written).get()) <= meters.writes.used
        assert any(refusals) == exceeds(lambda _: meters.check(), handler)

    return play


def profile(examples: int) -> settings:
    return settings(max_examples=examples, suppress_health_check=list(HealthCheck))


def bounded(play: Callable[..., None], examples: int) -> None:
    @profile(examples)
    @given(
        steps=st.lists(STEPS | st.builds(in_thread, STEPS), min_size=1, max_size=20),
        planned=st.lists(FAULTS, max_size=2),
        reads=st.integers(0, 40),
        writes=st.integers(0, 10),
    )
    def run(steps: list[Step], planned: list[Fault], reads: int, writes: int) -> None:
        play(steps, planned, reads, writes)

    run()


def test_any_request_stays_within_its_budget(play: Callable[..., None]) -> None:
    bounded(play, 150)


@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_ten_thousand_requests_stay_within_their_budgets(play: Callable[..., None]) -> None:
    bounded(play, 10_000)
