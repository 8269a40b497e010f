"""Nodes with more edges than one commit holds, and what stops who deletes them the naive way."""

from contextlib import suppress

import grpc
import pytest
from google.cloud import firestore

from firebreak import errors
from firebreak.metering.meter import metered, unmetered
from graph import mutate
from graph.mutate import PAGE
from tests.emulator.graph.user import Answer, User, delete_node, edge, hub, node
from tests.fault_proxy import Fault, FaultProxy, Way

MANY = 5_000


def test_a_node_goes_with_the_edges_at_both_of_its_ends(user: User) -> None:
    user.fill({"ab": ("a", "b"), "ba": ("b", "a"), "aa": ("a", "a"), "bc": ("b", "c")})

    answer = user.mutate(delete_node("a"))

    # The version, the node, two edges that lead out, two that lead in; the one that does both is read twice.
    assert answer.cost == (1 + 1 + 2 + 2, 1 + 1 + 3)
    assert set(user.edges()) == {"bc"}
    assert set(user.nodes()) == {"b", "c"}
    user.check()


def test_few_edges_go_in_one_commit_with_everything_else(shaky: User, faults: FaultProxy) -> None:
    shaky.fill({**hub(150), **{f"in{n}": ("rim", "hub") for n in range(150)}, "ro": ("rim", "other")})

    shaky.mutate(delete_node("hub"), delete_node("other"), node("new"))

    assert faults.calls["Commit"] == 1
    assert set(shaky.nodes()) == {"rim", "new"}
    shaky.check()


def test_five_thousand_edges_go_in_pages_each_committed_before_the_next_is_read(
    shaky: User, faults: FaultProxy
) -> None:
    shaky.fill(hub(MANY))
    left: list[int] = []

    def look() -> None:
        edges = shaky.graph.collection("edges").where(filter=firestore.FieldFilter("from", "==", "hub"))
        left.append(int(edges.count().get()[0][0].value))

    look_at_each = Fault("RunQuery", Way.BEFORE, times=100, first=look)
    faults.plan(look_at_each)

    answer = shaky.mutate(delete_node("hub"), reads=6_000, writes=6_000)

    pages = MANY // PAGE + 1
    assert left == [MANY - PAGE * page for page in range(pages)] + [MANY % PAGE]
    # Version and node, each edge once, and one read that the edges leading in, which are none, cost anyway.
    assert answer.reads == 1 + 1 + MANY + 1
    assert answer.writes == MANY + 1 + faults.calls["Commit"]
    assert faults.calls["Commit"] == pages
    assert set(shaky.nodes()) == {"rim"}
    shaky.check()


def test_a_budget_that_is_too_small_is_used_up_call_by_call_and_never_exceeded(user: User) -> None:
    user.fill(hub(MANY))
    answers: list[Answer] = []

    while not answers or not answers[-1].complete:
        answers.append(user.mutate(delete_node("hub"), node("new"), edge("e", "new", "rim")))
        user.check()
        assert ("hub" in user.nodes()) == (not answers[-1].complete)
        assert ("new" in user.nodes()) == answers[-1].complete

    # Of each call's thousand reads three are for the version and the nodes, and some edges wait for the next call.
    assert len(answers) == 6
    assert all(answer.reads <= 1_000 and answer.writes <= 1_000 for answer in answers)
    assert sum(answer.writes for answer in answers) <= MANY + 4 + 3 * len(answers)
    assert set(user.edges()) == {"e"}


def test_an_incomplete_call_does_nothing_else_of_its_list(user: User) -> None:
    user.fill(hub(500))

    answer = user.mutate({"op": "update_node", "id": "rim", "label": "x"}, delete_node("hub"), reads=400)

    assert answer.result == {"complete": False, "results": []}
    assert user.nodes()["rim"]["label"] == ""
    assert 0 < len(user.edges()) < 500
    user.check()


def test_an_edge_from_the_node_to_itself_counts_once_though_its_pages_are_committed_apart(user: User) -> None:
    """It is in the last page of the edges that lead out, and again in the first of those that lead in."""
    user.fill(
        {f"loop{number:03}": ("a", "a") for number in range(PAGE - 1)} | {f"in{n:02}": ("b", "a") for n in range(60)}
    )

    answer = user.mutate(delete_node("a"), reads=2_000)

    assert (answer.complete, user.edges(), set(user.nodes())) == (True, {}, {"b"})
    user.check()


@pytest.mark.parametrize(("reads", "writes", "kind"), [(2, 99, errors.ReadsExceeded), (99, 1, errors.WritesExceeded)])
def test_a_budget_that_can_delete_nothing_is_refused_not_used_up_for_ever(
    user: User, reads: int, writes: int, kind: type[errors.Refused]
) -> None:
    user.fill(hub(10))

    with pytest.raises(kind):
        user.mutate(delete_node("hub"), reads=reads, writes=writes)

    assert len(user.edges()) == 10


@pytest.mark.parametrize("writes", [2, 4, 5, 6, 7, 8, 9, 11, 12])
def test_however_few_writes_there_are_each_call_gets_on(user: User, writes: int) -> None:
    """But for the last, which must hold the four changes of the list, and the version, at once."""
    user.fill(hub(6))

    for _ in range(7):
        try:
            answer = user.mutate(delete_node("hub"), node("a"), node("b"), node("c"), writes=writes)
        except errors.WritesExceeded:
            assert writes < 5
            break
        user.check()
        if answer.complete:
            break
    else:
        pytest.fail("never done")

    assert set(user.nodes()) == ({"hub", "rim"} if writes < 5 else {"rim", "a", "b", "c"})
    assert user.edges() == {}
    user.check()


def test_nodes_that_share_thousands_of_edges_go_together(user: User) -> None:
    user.fill({f"e{n}": ("a", "b") for n in range(900)})

    answer = user.mutate(delete_node("a"), delete_node("b"), reads=2_000, writes=2_000)

    assert answer.complete
    assert user.nodes() == {}
    user.check()


def test_a_page_of_edges_that_stay_does_not_keep_the_sweep_from_those_that_go(user: User) -> None:
    """The list makes the first 97 edges anew, so that they stay: more than there is room for in one page."""
    user.fill(hub(150))
    kept = [edge(f"hub-{number:05}", "hub", "rim") for number in range(97)]

    answers = [user.mutate(delete_node("hub"), node("hub"), *kept, writes=50) for _ in range(2)]

    assert [answer.complete for answer in answers] == [False, True]
    assert set(user.edges()) == {each["id"] for each in kept}
    user.check()


def test_a_list_is_one_commit_even_where_the_edges_before_it_nearly_fill_one(shaky: User, faults: FaultProxy) -> None:
    shaky.fill(hub(PAGE - 1))
    nodes = [node(f"n{number}") for number in range(99)]
    faults.plan(Fault("Commit", Way.BEFORE, grpc.StatusCode.PERMISSION_DENIED, skip=1))

    with pytest.raises(errors.StoreUnavailable):
        shaky.mutate(*nodes, delete_node("hub"))
    assert (set(shaky.nodes()), shaky.edges()) == ({"hub", "rim"}, {})
    shaky.check()
    shaky.mutate(*nodes, delete_node("hub"))

    assert set(shaky.nodes()) == {"rim", *(each["id"] for each in nodes)}
    shaky.check()


def test_work_without_limits_is_complete_at_once(user: User) -> None:
    user.fill(hub(2 * PAGE))

    with unmetered("a script of the owner's"):
        result = mutate.run({"operations": [delete_node("hub")]}, user_key=user.key, client=user.client)

    assert result["complete"]
    assert set(user.nodes()) == {"rim"}
    user.check()


def queue_until_no_edge_is_left(user: User) -> list[firestore.WriteBatch]:
    """The naive loop: what it deletes is queued, to be committed in the end, so that each query finds it again."""
    batches: list[firestore.WriteBatch] = []
    edges = user.client.document(user.graph.path).collection("edges")
    edges = edges.where(filter=firestore.FieldFilter("from", "==", "hub")).limit(50)
    while page := edges.get():
        batches.append(user.client.batch())
        for snapshot in page:
            batches[-1].delete(snapshot.reference)
    return batches


@pytest.mark.parametrize(
    ("reads", "writes", "kind"), [(10_000, 990, errors.WritesExceeded), (990, 10_000, errors.ReadsExceeded)]
)
def test_the_naive_loop_is_stopped_by_the_meter(
    user: User, reads: int, writes: int, kind: type[errors.Refused]
) -> None:
    user.fill(hub(100))

    with metered(reads=reads, writes=writes) as meters, pytest.raises(kind):
        queue_until_no_edge_is_left(user)

    assert meters.reads.used <= 1_000
    assert meters.writes.used <= 1_000
    assert len(user.edges()) == 100


def test_the_naive_loop_cannot_go_on_by_hiding_the_refusal(user: User) -> None:
    user.fill(hub(100))

    with metered(reads=10_000, writes=200) as meters:
        for _ in range(100):
            with suppress(Exception):
                queue_until_no_edge_is_left(user)
        with pytest.raises(errors.WritesExceeded):
            meters.check()

    assert meters.reads.used <= 250
    assert meters.writes.used <= 200
