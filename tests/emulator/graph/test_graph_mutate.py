"""What each operation leaves in Firestore, and what it costs."""

from typing import Any

import pytest

from firebreak import errors
from firebreak.metering.meter import NoMeter
from graph import mutate
from tests.emulator.graph.user import User, delete_node, edge, node

# Names that mean something in a field path.
HOSTILE = {"a.b": 1, "`": {"~": None}, "*": [True, 1.5], "a/b": "x", "[0]": {"b.c": {"\\": ""}}, "é ": 2**63 - 1}


@pytest.mark.parametrize(
    ("operations", "cost"),
    [
        ([node("n")], (2, 2)),
        ([{"op": "create_node"}], (1, 2)),
        ([edge("e", "a", "b")], (4, 2)),
        ([{"op": "create_edge", "from": "a", "to": "b"}], (3, 2)),
        ([edge("loop", "a", "a")], (3, 2)),
        ([{"op": "update_node", "id": "a", "label": "A"}], (2, 2)),
        ([{"op": "move_node", "id": "a", "position": {"x": 1, "y": 2}}], (2, 2)),
        ([{"op": "delete_edge", "id": "ab"}], (2, 2)),
        ([{"op": "delete_edge", "id": "gone"}], (2, 0)),
        ([delete_node("lone")], (1 + 1 + 1 + 1, 2)),
        ([delete_node("gone")], (1 + 1 + 1 + 1, 0)),
        ([delete_node("a")], (1 + 1 + 2 + 1, 4)),
        ([node("n"), edge("e", "n", "a")], (1 + 3, 3)),
        ([node("a")], (2, 0)),
        ([edge("ab", "a", "b")], (4, 0)),
        ([{"op": "move_node", "id": "a", "position": {"x": n, "y": 0}} for n in range(100)], (2, 2)),
        ([node(f"n{n}") for n in range(100)], (101, 101)),
        ([{"op": "create_node"}] * 100, (1, 101)),
    ],
    ids=lambda value: f"{value[0]['op']}-{len(value)}" if isinstance(value, list) else "",
)
def test_what_a_list_costs(user: User, operations: list[dict[str, Any]], cost: tuple[int, int]) -> None:
    user.fill({"ab": ("a", "b"), "ac": ("a", "c")}, "lone")

    answer = user.mutate(*operations)

    assert answer.cost == cost
    assert answer.complete
    user.check()


def test_nodes_and_edges_are_stored_as_they_were_given(user: User) -> None:
    user.mutate(
        node("a", label="A", properties=HOSTILE, position={"x": 1, "y": -2.5}),
        node("b"),
        edge("e", "a", "b", label="knows"),
    )

    assert user.nodes() == {
        "a": {"label": "A", "properties": HOSTILE, "position": {"x": 1.0, "y": -2.5}},
        "b": {"label": "", "properties": {}},
    }
    assert user.edges() == {"e": {"from": "a", "to": "b", "label": "knows"}}
    user.check()


def test_an_update_replaces_properties_whole_and_keeps_the_rest(user: User) -> None:
    user.mutate(node("a", label="A", properties={"old.name": 1}, position={"x": 1, "y": 1}))

    user.mutate({"op": "update_node", "id": "a", "properties": HOSTILE})

    assert user.nodes()["a"] == {"label": "A", "properties": HOSTILE, "position": {"x": 1.0, "y": 1.0}}


def test_a_move_changes_the_position_alone(user: User) -> None:
    user.mutate(node("a", label="A", properties={"k": 1}))

    user.mutate({"op": "move_node", "id": "a", "position": {"x": 3, "y": 4}})

    assert user.nodes()["a"] == {"label": "A", "properties": {"k": 1}, "position": {"x": 3.0, "y": 4.0}}


@pytest.mark.parametrize("value", [1.0, True, "1"])
def test_a_value_of_another_type_is_another_value(user: User, value: object) -> None:
    """To Python 1 is 1.0 and True; to Firestore and to clients it is not."""
    user.mutate(node("a", properties={"k": 1}))

    user.mutate({"op": "update_node", "id": "a", "properties": {"k": value}})

    stored = user.nodes()["a"]["properties"]["k"]
    assert (stored, type(stored)) == (value, type(value))


def test_ids_that_the_client_leaves_out_are_made_and_told(user: User) -> None:
    answer = user.mutate(node("a"), {"op": "create_node", "label": "B"}, {"op": "create_edge", "from": "a", "to": "a"})

    (_, made, joined) = (each["id"] for each in answer.result["results"])
    assert user.nodes()[made]["label"] == "B"
    assert list(user.edges()) == [joined]


def test_a_list_whose_last_operation_does_not_fit_writes_nothing(user: User) -> None:
    with pytest.raises(errors.InvalidField, match=r"^operations\[2\]\.to: there is no such node$"):
        user.mutate(node("a"), node("b"), edge("e", "a", "c"))

    assert not user.graph.get().exists
    assert user.nodes() == {}


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ([edge("e", "gone", "a")], "operations[0].from: there is no such node"),
        ([{"op": "update_node", "id": "gone", "label": "x"}], "operations[0].id: there is no such node"),
        ([{"op": "move_node", "id": "e", "position": {"x": 0, "y": 0}}], "operations[0].id: there is no such node"),
        ([node("a", label="other")], "operations[0].id: exists already, with another content"),
        ([edge("ab", "b", "a")], "operations[0].id: exists already, with another content"),
        ([node("n"), node("n", label="x")], "operations[1].id: exists already, with another content"),
        ([delete_node("a"), edge("e", "a", "b")], "operations[1].from: there is no such node"),
        ([edge("e", "n", "a"), node("n")], "operations[0].from: there is no such node"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(user: User, operations: list[dict[str, Any]], message: str) -> None:
    user.fill({"ab": ("a", "b")})

    with pytest.raises(errors.InvalidField) as refusal:
        user.mutate(*operations)

    assert refusal.value.message == message
    assert (len(user.nodes()), len(user.edges())) == (2, 1)


def test_a_list_that_is_sent_again_writes_nothing(user: User) -> None:
    """The client whose answer was lost sends the same once more."""
    operations = [
        node("a", label="A"),
        node("b"),
        edge("e", "a", "b"),
        {"op": "update_node", "id": "a", "label": "changed in the same list"},
        {"op": "move_node", "id": "a", "position": {"x": 1, "y": 1}},
        {"op": "delete_edge", "id": "gone"},
        delete_node("gone"),
    ]
    first = user.mutate(*operations)

    again = user.mutate(*operations)

    assert again.result == first.result
    assert again.writes == 0


def test_a_node_that_is_deleted_and_made_anew_keeps_nothing_of_the_old(user: User) -> None:
    user.fill({"ab": ("a", "b"), "ba": ("b", "a"), "kept": ("a", "b")})
    user.mutate({"op": "move_node", "id": "a", "position": {"x": 1, "y": 1}})

    user.mutate(delete_node("a"), node("a", label="new"), edge("kept", "a", "b"))

    assert user.nodes()["a"] == {"label": "new", "properties": {}}
    assert user.edges() == {"kept": {"from": "a", "to": "b", "label": ""}}
    user.check()


def test_an_edge_of_the_same_list_goes_with_its_node(user: User) -> None:
    user.fill({"ab": ("a", "b")})

    user.mutate(edge("new", "b", "a"), delete_node("a"))

    assert user.edges() == {}
    user.check()


def test_fields_that_somebody_else_put_there_are_left_alone(user: User) -> None:
    user.mutate(node("a"))
    user.graph.collection("nodes").document("a").update({"theirs": 1})

    user.mutate({"op": "update_node", "id": "a", "label": "A"})

    assert user.nodes()["a"]["theirs"] == 1


def test_a_graph_that_is_full_takes_no_more_but_lets_go(user: User) -> None:
    user.mutate(node("a"), node("b"), most_documents=2)

    with pytest.raises(errors.InvalidField, match="at most 2 nodes and edges"):
        user.mutate(node("c"), most_documents=2)
    user.mutate({"op": "update_node", "id": "a", "label": "A"}, most_documents=2)
    user.mutate(delete_node("a"), node("c"), most_documents=2)

    assert set(user.nodes()) == {"b", "c"}
    user.check()


def test_outside_a_metered_request_nothing_runs(user: User) -> None:
    with pytest.raises(NoMeter):
        mutate.run({"operations": [node("a")]}, user_key=user.key, client=user.client)

    assert user.nodes() == {}


@pytest.mark.parametrize(("reads", "writes", "kind"), [(2, 99, errors.ReadsExceeded), (99, 2, errors.WritesExceeded)])
def test_a_list_beyond_its_budget_is_refused_and_changes_nothing(
    user: User, reads: int, writes: int, kind: type[errors.Refused]
) -> None:
    with pytest.raises(kind):
        user.mutate(node("a"), node("b"), reads=reads, writes=writes)

    assert user.nodes() == {}
