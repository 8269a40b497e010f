"""A list on paper: each operation sees those before it, no edge is left without an end, and again is as once."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firebreak.errors import InvalidField
from graph.documents import Content, Key, Kind, edge, node, same
from graph.draft import Draft
from graph.operations import Operation, parse

type State = Mapping[Key, Content]

NAMES = st.sampled_from(["a", "b", "c"])
LABELS = st.sampled_from(["", "x"])
OPERATIONS = st.one_of(
    st.fixed_dictionaries({"op": st.just("create_node"), "id": NAMES, "label": LABELS}),
    st.fixed_dictionaries(
        {"op": st.just("create_edge"), "id": st.sampled_from(["e", "f"]), "from": NAMES, "to": NAMES, "label": LABELS}
    ),
    st.fixed_dictionaries({"op": st.just("update_node"), "id": NAMES, "label": LABELS}),
    st.fixed_dictionaries(
        {"op": st.just("move_node"), "id": NAMES, "position": st.just({"x": 1, "y": 2}) | st.just({"x": 0, "y": 0})}
    ),
    st.fixed_dictionaries({"op": st.just("delete_node"), "id": NAMES}),
    st.fixed_dictionaries({"op": st.just("delete_edge"), "id": st.sampled_from(["e", "f"])}),
)
LISTS = st.lists(OPERATIONS, min_size=1, max_size=8)


def listed(*operations: Mapping[str, object]) -> list[Operation]:
    return parse({"operations": list(operations)}, lambda: "new")


def drafted(operations: list[Operation], before: State) -> Draft:
    """Only what the list mentions is known, as it is when it was read."""
    draft = Draft(before={key: before.get(key) for each in operations for key in each.mentions})
    for operation in operations:
        operation.apply(draft)
    return draft


def done(operations: list[Operation], before: State) -> State:
    """The list applied, and swept as the store would be; the state as it was if it does not fit."""
    try:
        draft = drafted(operations, before)
        changes = draft.changes()
    except InvalidField:
        return before
    swept = {key for key, now in before.items() if key.kind is Kind.EDGE and {now["from"], now["to"]} & {*draft.swept}}
    kept = {key: now for key, now in before.items() if key not in swept or key in draft.after}
    return {key: now for key, now in {**kept, **changes}.items() if now is not None}


@given(st.lists(LISTS, max_size=4))
def test_no_edge_is_ever_left_without_an_end(lists: list[list[dict[str, object]]]) -> None:
    state: State = {}
    for operations in lists:
        state = done(listed(*operations), state)

        edges = [now for key, now in state.items() if key.kind is Kind.EDGE]
        assert all(node(each[end]) in state for each in edges for end in ("from", "to"))


@given(LISTS, LISTS)
def test_a_list_that_is_applied_again_changes_nothing(
    first: list[dict[str, object]], then: list[dict[str, object]]
) -> None:
    once = done(listed(*then), done(listed(*first), {}))

    assert done(listed(*then), once) == once


@given(LISTS, LISTS)
def test_one_list_does_what_its_operations_do_one_by_one(
    first: list[dict[str, object]], then: list[dict[str, object]]
) -> None:
    state = done(listed(*first), {})
    singly = state
    for operation in then:
        try:
            drafted(listed(operation), singly).changes()
        except InvalidField:
            return
        singly = done(listed(operation), singly)

    assert done(listed(*then), state) == singly


def test_contents_are_the_same_only_with_the_same_types() -> None:
    assert same({"a": {"b": 1, "c": 2}}, {"a": {"c": 2, "b": 1}})
    assert not same({"a": 1}, {"a": True})
    assert not same({"a": 1}, {"a": 1.0})
    assert not same({}, None)


def test_a_node_that_is_there_may_be_created_again_only_as_it_is_in_the_end() -> None:
    there: State = {node("a"): {"label": "x", "properties": {}}}
    create, update = {"op": "create_node", "id": "a", "label": ""}, {"op": "update_node", "id": "a", "label": "x"}

    assert drafted(listed(create, update), there).changes() == {}
    with pytest.raises(InvalidField, match=r"^operations\[0\]\.id: exists already"):
        drafted(listed(create), there).changes()


EDGE = {"op": "create_edge", "id": "e", "from": "b", "to": "a"}
GO = {"op": "delete_node", "id": "a"}


@pytest.mark.parametrize("edge_", [EDGE, {**EDGE, "id": None}], ids=["its own id", "no id"])
def test_an_edge_that_a_list_makes_goes_with_a_node_that_it_deletes(edge_: dict[str, object]) -> None:
    there: State = {node("a"): {}, node("b"): {}}

    assert drafted(listed(edge_, GO), there).changes() == {node("a"): None}


def test_an_edge_that_went_with_its_node_can_be_made_anew_elsewhere() -> None:
    there: State = {node("a"): {}, node("b"): {}, edge("e"): {"from": "b", "to": "a", "label": ""}}

    draft = drafted(listed(GO, {**EDGE, "to": "b"}), there)

    assert draft.changes() == {node("a"): None, edge("e"): {"from": "b", "to": "b", "label": ""}}
    assert list(draft.swept) == ["a"]
