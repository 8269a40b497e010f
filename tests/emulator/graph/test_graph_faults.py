"""Lost, late and doubled requests: the graph stays whole, and the client can always send the same list again."""

import itertools
from typing import Any

import grpc
import pytest

from firebreak import errors
from firebreak.store.tries import Clock
from tests.emulator.graph.user import User, delete_node, edge, hub, node
from tests.fault_proxy import Fault, FaultProxy, Way

LIST = [node("new", label="N"), edge("e", "new", "rim"), delete_node("hub"), node("hub", label="again")]
WAYS = pytest.mark.parametrize("way", list(Way), ids=lambda way: way.name)


def hurried() -> Clock:
    """Half a second passes each time it is looked at, and no sleep takes any."""
    ticks = itertools.count()
    return Clock(monotonic=lambda: next(ticks) / 2, sleep=lambda _: None)


def somebody_else_writes(user: User) -> None:
    other = User(key=user.key, client=user.client, direct=user.direct)
    batch = other.direct.batch()
    version = (other.graph.get().to_dict() or {}).get("version", 0)
    batch.set(other.graph, {"version": version + 1, "writer": "other"}, merge=True)
    batch.commit()


@WAYS
@pytest.mark.parametrize(
    "status", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED], ids=lambda status: status.name
)
@pytest.mark.parametrize(
    ("method", "skip"),
    [
        ("BatchGetDocuments", 0),
        ("BatchGetDocuments", 1),
        ("RunQuery", 0),
        ("RunQuery", 1),
        ("Commit", 0),
        ("Commit", 1),
    ],
)
def test_whatever_fails_once_the_list_is_done_once(
    shaky: User, faults: FaultProxy, way: Way, status: grpc.StatusCode, method: str, skip: int
) -> None:
    """The first commit deletes a page of edges, the second does everything else."""
    shaky.fill(hub(450))
    faults.plan(Fault(method, way, status, skip=skip))

    answer = shaky.mutate(*LIST, reads=3_000, writes=3_000)
    faults.release()

    assert answer.complete
    assert {id_: each["label"] for id_, each in shaky.nodes().items()} == {"new": "N", "rim": "", "hub": "again"}
    assert set(shaky.edges()) == {"e"}
    shaky.check()


@WAYS
def test_a_list_that_does_not_fit_twice_is_not_done_twice_nor_refused(
    shaky: User, faults: FaultProxy, way: Way
) -> None:
    """The node is gone after the first commit: looking at the nodes alone, the update would not fit any more."""
    shaky.fill({"ab": ("a", "b")})
    faults.plan(Fault("Commit", way))

    answer = shaky.mutate({"op": "update_node", "id": "a", "label": "last words"}, delete_node("a"))
    faults.release()

    assert answer.complete
    assert set(shaky.nodes()) == {"b"}
    shaky.check()


def test_a_list_that_may_have_been_done_is_not_refused_as_wrong(shaky: User, faults: FaultProxy) -> None:
    """Its reply is lost, and by the time we look somebody else has written over the trace of it."""
    shaky.fill({"ab": ("a", "b")})
    faults.plan(
        Fault("Commit", Way.LOSE_REPLY),
        Fault("BatchGetDocuments", Way.BEFORE, skip=2, first=lambda: somebody_else_writes(shaky)),
    )

    with pytest.raises(errors.StoreUnavailable):
        shaky.mutate({"op": "update_node", "id": "a", "label": "last words"}, delete_node("a"))

    assert set(shaky.nodes()) == {"b"}


@WAYS
def test_a_store_that_stays_away_is_unavailable_and_the_same_list_can_be_sent_again(
    shaky: User, faults: FaultProxy, way: Way
) -> None:
    shaky.fill(hub(450))
    shaky.clock = hurried()
    faults.plan(Fault("Commit", way, grpc.StatusCode.UNAVAILABLE, times=1_000))

    outcome = attempted(shaky, LIST)
    faults.forget()
    faults.release()
    shaky.check()
    again = shaky.mutate(*LIST, reads=3_000, writes=3_000)

    assert outcome in ("store", "done")
    assert again.complete
    assert set(shaky.edges()) == {"e"}
    shaky.check()


def attempted(user: User, operations: list[dict[str, Any]]) -> str:
    try:
        user.mutate(*operations, reads=30_000, writes=30_000)
    except errors.Refused as refusal:
        return refusal.reason.value
    return "done"


@pytest.mark.parametrize("method", ["BatchGetDocuments", "RunQuery", "Commit"])
@pytest.mark.parametrize("status", [grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.INVALID_ARGUMENT])
def test_what_waiting_does_not_mend_is_not_tried_again(
    shaky: User, faults: FaultProxy, method: str, status: grpc.StatusCode
) -> None:
    shaky.fill({"ab": ("a", "b")})
    faults.plan(Fault(method, Way.BEFORE, status, times=1_000))

    with pytest.raises(errors.StoreUnavailable):
        shaky.mutate(node("new"), delete_node("a"))

    assert faults.calls[method] == 1


@pytest.mark.parametrize("method", ["BatchGetDocuments", "RunQuery"])
@pytest.mark.parametrize("status", list(grpc.StatusCode)[1:], ids=lambda status: status.name)
def test_a_walk_that_is_not_answered_is_unavailable(
    shaky: User, faults: FaultProxy, method: str, status: grpc.StatusCode
) -> None:
    shaky.fill({"ab": ("a", "b")})
    faults.plan(Fault(method, Way.BEFORE, status))

    with pytest.raises(errors.StoreUnavailable):
        shaky.traverse(start="a")


@pytest.mark.parametrize("method", ["BatchGetDocuments", "RunQuery"])
def test_a_walk_whose_answer_breaks_off_is_unavailable(shaky: User, faults: FaultProxy, method: str) -> None:
    shaky.fill({"ab": ("a", "b"), "ac": ("a", "c")})
    faults.plan(Fault(method, Way.LOSE_REPLY, kept=1))

    with pytest.raises(errors.StoreUnavailable):
        shaky.traverse(start="a")


@pytest.mark.parametrize("method", ["BatchGetDocuments", "RunQuery"])
def test_where_an_answer_breaks_off_the_list_is_done_once(shaky: User, faults: FaultProxy, method: str) -> None:
    shaky.fill({"ab": ("a", "b"), "ac": ("a", "c")})
    faults.plan(Fault(method, Way.LOSE_REPLY, kept=1))

    assert shaky.mutate(delete_node("a")).complete

    assert set(shaky.nodes()) == {"b", "c"}
    shaky.check()


@pytest.mark.parametrize("status", [grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION])
@pytest.mark.parametrize("method", ["BatchGetDocuments", "RunQuery"])
def test_a_database_or_an_index_that_is_missing_is_no_contention(
    shaky: User, faults: FaultProxy, method: str, status: grpc.StatusCode
) -> None:
    faults.plan(Fault(method, Way.BEFORE, status, times=1_000))

    with pytest.raises(errors.StoreUnavailable):
        shaky.mutate(delete_node("a"))

    assert faults.calls[method] == 1


def test_races_that_are_always_lost_are_contention_and_change_nothing(shaky: User, faults: FaultProxy) -> None:
    shaky.clock = hurried()
    faults.plan(Fault("Commit", Way.BEFORE, times=1_000, first=lambda: somebody_else_writes(shaky)))

    with pytest.raises(errors.Contention) as refusal:
        shaky.mutate(node("a"))

    assert faults.calls["Commit"] > 1
    assert refusal.value.details["retryAfterSeconds"] == 1
    assert shaky.nodes() == {}


def test_a_race_that_is_lost_when_the_budget_is_used_up_is_contention_too(shaky: User, faults: FaultProxy) -> None:
    faults.plan(Fault("Commit", Way.BEFORE, first=lambda: somebody_else_writes(shaky)))

    with pytest.raises(errors.Contention):
        shaky.mutate(node("a"), reads=3)

    assert faults.calls["Commit"] == 1


def test_a_race_that_is_lost_once_is_run_again_on_what_is_there_then(shaky: User, faults: FaultProxy) -> None:
    shaky.fill({}, "a")

    def delete_it() -> None:
        shaky.graph.collection("nodes").document("a").delete()
        somebody_else_writes(shaky)

    faults.plan(Fault("Commit", Way.BEFORE, first=delete_it))

    with pytest.raises(errors.InvalidField, match=r"operations\[0\]\.id: there is no such node"):
        shaky.mutate({"op": "update_node", "id": "a", "label": "x"})


def test_a_node_that_was_deleted_in_the_console_is_not_brought_back(shaky: User, faults: FaultProxy) -> None:
    """The version has not moved: the update itself refuses to make what it is to change."""
    shaky.fill({}, "a")
    faults.plan(
        Fault("Commit", Way.BEFORE, first=lambda: shaky.graph.collection("nodes").document("a").delete() and None)
    )

    with pytest.raises(errors.InvalidField):
        shaky.mutate({"op": "update_node", "id": "a", "label": "x"})

    assert shaky.nodes() == {}
