"""What every operation of the metered client counts, exactly; what it answers; and what it refuses to do at all."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from google.api_core.retry import Retry
from google.cloud import firestore
from google.cloud.firestore_v1.base_vector_query import DistanceMeasure
from google.cloud.firestore_v1.bulk_writer import BulkWriter, BulkWriterOptions, SendMode
from google.cloud.firestore_v1.query_profile import ExplainOptions
from google.cloud.firestore_v1.vector import Vector

from firebreak.errors import MeterExceeded
from firebreak.metering.batch import EmptyBatch
from firebreak.metering.client import Metered
from firebreak.metering.meter import NoMeter, Unsupported, metered

type Collection = firestore.CollectionReference


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """An operation on a collection of five documents, one of which has a child, and what it is billed for."""

    do: Callable[[Any, Any], Any]
    reads: int = 0
    writes: int = 0
    open_end: bool = False
    """It asks for all there is, so that a budget of just as many cannot tell it that there is no more."""


def in_transaction(client: firestore.Client, work: Callable[[firestore.Transaction], Any], **options: Any) -> Any:
    return firestore.transactional(work)(client.transaction(**options))


def in_batch(client: firestore.Client, notes: Collection) -> Any:
    batch = client.batch()
    batch.set(notes.document("d0"), {"n": 10})
    batch.update(notes.document("d1"), {"n": firestore.Increment(1), "at": firestore.SERVER_TIMESTAMP})
    batch.create(notes.document("new"), {"tags": firestore.ArrayUnion(["a"])})
    batch.delete(notes.document("d2"))
    return [result.transform_results for result in batch.commit()][3]


def move(client: firestore.Client, notes: Collection) -> Any:
    def work(transaction: firestore.Transaction) -> Any:
        n = notes.document("d1").get(transaction=transaction).get("n")
        [snapshot.id for snapshot in notes.limit(2).stream(transaction=transaction)]
        transaction.update(notes.document("d1"), {"n": n + 1})
        transaction.set(notes.document("d2"), {"n": n})
        return n

    return in_transaction(client, work)


def with_block(client: firestore.Client, notes: Collection) -> None:
    with client.batch() as batch:
        batch.set(notes.document("d0"), {"n": 1})


def where(field: str, op: str, value: Any) -> firestore.FieldFilter:
    return firestore.FieldFilter(field, op, value)


def ids(references: Iterable[Any]) -> list[str]:
    return [each.id for each in references]


def n_of(answer: Any) -> list[tuple[str, Any]]:
    return [(each.alias, each.value) for row in answer for each in row]


READS = {
    "get": Costs(do=lambda _, notes: notes.document("d0").get(), reads=1),
    "get of what is missing": Costs(do=lambda _, notes: notes.document("none").get(), reads=1),
    "get of one field": Costs(do=lambda _, notes: notes.document("d0").get(["n"]), reads=1),
    "get_all": Costs(
        do=lambda client, notes: sorted(
            (each.id, each.to_dict() or {})
            for each in client.get_all([notes.document(d) for d in ("d0", "d3", "none")])
        ),
        reads=3,
    ),
    "get_all of nothing": Costs(do=lambda client, _: list(client.get_all([])), reads=1),
    "collection.get": Costs(do=lambda _, notes: notes.get(), reads=5, open_end=True),
    "collection.stream": Costs(do=lambda _, notes: list(notes.stream()), reads=5, open_end=True),
    "limit": Costs(do=lambda _, notes: notes.limit(3).get(), reads=3),
    "limit above what there is": Costs(do=lambda _, notes: notes.limit(30).get(), reads=5, open_end=True),
    "limit 0": Costs(do=lambda _, notes: notes.limit(0).get(), reads=1),
    "where": Costs(do=lambda _, notes: notes.where(filter=where("n", ">", 2)).limit(2).get(), reads=2),
    "empty query": Costs(do=lambda _, notes: notes.where(filter=where("n", ">", 9)).limit(1).get(), reads=1),
    "select": Costs(do=lambda _, notes: notes.select(["n"]).limit(2).get(), reads=2),
    "offset": Costs(do=lambda _, notes: notes.offset(2).limit(2).get(), reads=4),
    "offset past the end": Costs(do=lambda _, notes: notes.offset(9).limit(1).get(), reads=9, open_end=True),
    "limit_to_last": Costs(do=lambda _, notes: notes.order_by("n").limit_to_last(2).get(), reads=2),
    "start_after": Costs(do=lambda _, notes: notes.order_by("n").start_after({"n": 1}).limit(2).get(), reads=2),
    "collection group": Costs(do=lambda client, notes: client.collection_group(notes.id).limit(4).get(), reads=4),
    "list_documents": Costs(do=lambda _, notes: ids(notes.list_documents()), reads=6, open_end=True),
    "list_documents by pages": Costs(
        do=lambda _, notes: ids(notes.list_documents(page_size=4)), reads=6, open_end=True
    ),
    "list_documents of nothing": Costs(
        do=lambda client, notes: list(client.collection(notes.id, "none", "empty").list_documents()), reads=1
    ),
    "collections of a document": Costs(do=lambda _, notes: ids(notes.document("parent").collections()), reads=1),
    "collections of a document without any": Costs(
        do=lambda _, notes: list(notes.document("d0").collections()), reads=1
    ),
    "count": Costs(do=lambda _, notes: n_of(notes.limit(5).count().get()), reads=1),
    "count of all": Costs(do=lambda _, notes: n_of(notes.count().get()), reads=1),
    "count of nothing": Costs(do=lambda _, notes: n_of(notes.where(filter=where("n", ">", 9)).count().get()), reads=1),
    "count under a name": Costs(do=lambda _, notes: n_of(notes.count(alias="all").get()), reads=1),
    "sum": Costs(do=lambda _, notes: n_of(notes.sum("n").get()), reads=1),
    "avg": Costs(do=lambda _, notes: n_of(notes.avg("n", alias="mean").get()), reads=1),
    "count after an offset": Costs(do=lambda _, notes: n_of(notes.offset(2).count().get()), reads=1),
    "five aggregations": Costs(
        do=lambda _, notes: sorted(n_of(notes.sum("n", alias="a").avg("n").count().sum("n").avg("n").get())), reads=1
    ),
    "get in a transaction": Costs(
        do=lambda client, notes: in_transaction(client, lambda t: notes.document("d0").get(transaction=t)), reads=1
    ),
    "get_all in a transaction": Costs(
        do=lambda client, notes: in_transaction(
            client, lambda t: sorted(each.id for each in t.get_all([notes.document("d0"), notes.document("none")]))
        ),
        reads=2,
    ),
    "query in a read-only transaction": Costs(
        do=lambda client, notes: in_transaction(client, lambda t: list(t.get(notes.limit(3))), read_only=True), reads=3
    ),
    "count in a transaction": Costs(
        do=lambda client, notes: in_transaction(client, lambda t: n_of(notes.count().get(transaction=t))), reads=1
    ),
}
WRITES = {
    "set": Costs(do=lambda _, notes: notes.document("d0").set({"n": 1}), writes=1),
    "set with merge": Costs(do=lambda _, notes: notes.document("d0").set({"m": 1}, merge=True), writes=1),
    "create": Costs(do=lambda _, notes: notes.document("new").create({"n": 1}), writes=1),
    "add": Costs(do=lambda _, notes: notes.add({"n": 1}), writes=1),
    "update": Costs(do=lambda _, notes: notes.document("d0").update({"n": 1}), writes=1),
    "increment": Costs(do=lambda _, notes: notes.document("d0").update({"n": firestore.Increment(1)}), writes=1),
    "server timestamp": Costs(
        do=lambda _, notes: notes.document("d0").set({"t": firestore.SERVER_TIMESTAMP}), writes=1
    ),
    "delete": Costs(do=lambda _, notes: notes.document("d0").delete(), writes=1),
    "delete of what is missing": Costs(do=lambda _, notes: notes.document("none").delete(), writes=1),
    "batch": Costs(do=in_batch, writes=4),
    "batch as a block": Costs(do=with_block, writes=1),
    "transaction": Costs(do=move, reads=3, writes=2),
}
ALL = READS | WRITES


@pytest.fixture
def mine(notes: Collection, handlers: Metered) -> Collection:
    """The same collection as a handler has it; beside `d0` to `d4` a document `parent` that only has a child."""
    notes.document("parent").collection("children").document("c").set({"n": 0})
    collection: Collection = handlers.collection(notes.id)
    return collection


def plain(answer: Any) -> Any:
    """An answer without what differs from call to call."""
    if isinstance(answer, firestore.DocumentSnapshot):
        return answer.reference.path, answer.to_dict()
    return [plain(each) for each in answer] if isinstance(answer, list) else answer


@pytest.mark.parametrize("name", ALL)
def test_an_operation_counts_what_it_is_billed_for(name: str, handlers: Metered, mine: Collection) -> None:
    costs = ALL[name]

    with metered(reads=1_000, writes=1_000) as meters:
        costs.do(handlers, mine)

    assert (meters.reads.used, meters.writes.used) == (costs.reads, costs.writes)
    assert (meters.guard_reads.used, meters.guard_writes.used) == (0, 0)


@pytest.mark.parametrize("name", READS)
def test_an_operation_answers_as_the_sdks_own_client_does(
    name: str, handlers: Metered, mine: Collection, aside: firestore.Client, notes: Collection
) -> None:
    with metered(reads=1_000, writes=1_000):
        answer = plain(READS[name].do(handlers, mine))

    assert answer == plain(READS[name].do(aside, notes))


@pytest.mark.parametrize("name", [name for name, costs in ALL.items() if not costs.open_end])
def test_an_operation_fits_a_budget_of_just_what_it_costs(name: str, handlers: Metered, mine: Collection) -> None:
    costs = ALL[name]

    with metered(reads=costs.reads, writes=costs.writes) as meters:
        costs.do(handlers, mine)

        meters.check()


@pytest.mark.parametrize("name", ALL)
def test_an_operation_is_refused_by_a_budget_of_one_less(name: str, handlers: Metered, mine: Collection) -> None:
    costs = ALL[name]
    less = {"reads": costs.reads - (not costs.writes), "writes": costs.writes - bool(costs.writes)}

    with metered(**less) as meters:
        with pytest.raises(MeterExceeded):
            costs.do(handlers, mine)

        with pytest.raises(MeterExceeded):
            meters.check()
    assert meters.reads.used <= less["reads"]
    assert meters.writes.used <= less["writes"]


@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_is_refused_writes_nothing(
    name: str, handlers: Metered, mine: Collection, notes: Collection
) -> None:
    costs = WRITES[name]
    before = [(each.id, each.update_time) for each in notes.stream()]

    with metered(reads=costs.reads, writes=costs.writes - 1), suppress(MeterExceeded):
        costs.do(handlers, mine)

    assert [(each.id, each.update_time) for each in notes.stream()] == before


@pytest.mark.parametrize("name", ALL)
def test_the_guards_own_client_counts_apart(name: str, handlers: Metered, mine: Collection) -> None:
    costs = ALL[name]
    guard = handlers.guards()

    with metered(reads=0, writes=0) as meters:
        costs.do(guard, guard.collection(mine.id))

    assert (meters.guard_reads.used, meters.guard_writes.used) == (costs.reads, costs.writes)
    assert (meters.reads.used, meters.writes.used) == (0, 0)


@pytest.mark.parametrize("guarding", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_outside_a_request_nothing_is_done(name: str, guarding: bool, handlers: Metered, mine: Collection) -> None:
    client = handlers.guards() if guarding else handlers

    with pytest.raises(NoMeter):
        ALL[name].do(client, client.collection(mine.id))


def bulk(client: Metered, notes: Collection) -> None:
    writer = BulkWriter(client, BulkWriterOptions(mode=SendMode.serial))
    writer.set(notes.document("d9"), {})
    writer.flush()  # type: ignore[no-untyped-call]  # the SDK's


UNSUPPORTED: dict[str, tuple[Callable[[Metered, Collection], Any], str]] = {
    "bulk_writer": (lambda client, _: client.bulk_writer(), "client.batch"),
    "a bulk writer made by hand": (bulk, "client.batch"),
    "recursive_delete": (lambda client, notes: client.recursive_delete(notes), "client.batch"),
    "document.on_snapshot": (lambda _, notes: notes.document("d0").on_snapshot(print), "get"),
    "query.on_snapshot": (lambda _, notes: notes.limit(1).on_snapshot(print), "get"),
    "get_partitions": (lambda client, notes: list(client.collection_group(notes.id).get_partitions(2)), "start_after"),
    "pipeline": (lambda client, _: client.pipeline(), "query"),
    "find_nearest": (
        lambda _, notes: notes.find_nearest("v", Vector([1.0]), 1, DistanceMeasure.EUCLIDEAN).get(),
        "find_nearest",
    ),
    "explain": (lambda _, notes: notes.limit(1).get(explain_options=ExplainOptions(analyze=True)), "explain"),
    "explain of an aggregation": (lambda _, notes: notes.sum("n").get(explain_options=ExplainOptions()), "explain"),
    "five aggregations without a count": (
        lambda _, notes: notes.sum("n").sum("n").sum("n").avg("n").avg("n").get(),
        "count",
    ),
    "retries of a read": (lambda _, notes: notes.document("d0").get(retry=Retry()), "retry around"),
    "retries of a query": (lambda _, notes: notes.limit(1).get(retry=Retry()), "retry around"),
    "retries of a write": (lambda _, notes: notes.document("d0").set({}, retry=Retry()), "retry around"),
    "any other rpc": (lambda client, _: client._firestore_api.update_document(None), "update_document"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_cannot_be_metered_is_refused_by_name(
    name: str, handlers: Metered, mine: Collection, notes: Collection
) -> None:
    do, instead = UNSUPPORTED[name]

    with metered(reads=1_000, writes=1_000) as meters, pytest.raises(Unsupported, match=instead):
        do(handlers, mine)

    assert meters.reads.used == 0
    assert len(notes.get()) == 5


def test_a_batch_of_nothing_is_a_fault_of_the_program(handlers: Metered) -> None:
    with metered(reads=0, writes=0):
        with pytest.raises(EmptyBatch):
            handlers.batch().commit()
        with pytest.raises(EmptyBatch):
            firestore.WriteBatch(handlers).commit()


def test_a_commit_past_our_own_batch_counts_too(handlers: Metered, mine: Collection) -> None:
    batch = firestore.WriteBatch(handlers)
    batch.set(mine.document("d0"), {"n": 1})
    batch.set(mine.document("d1"), {"n": 1})

    with metered(reads=0, writes=5) as meters:
        batch.commit()

    assert meters.writes.used == 2
