"""What `mutate` takes, what it names when it does not, and that nothing it takes can fail for its form later."""

import json
from typing import Any

import pytest
from google.cloud.firestore_v1._helpers import encode_dict
from hypothesis import given
from hypothesis import strategies as st

from firebreak.errors import InvalidField
from graph import fields
from graph.documents import FIELDS, Kind
from graph.operations import HANDLERS, MOST_OPERATIONS, Operation, parse
from scripts.local.layout import ROOT

NODE = {"op": "create_node", "id": "a"}
EDGE = {"op": "create_edge", "from": "a", "to": "b"}
FAR = ": must be a number from -1000000000 to 1000000000"
NAMES = ": names in it must be 1-100 bytes, and must not start and end with a double underscore"


def parsed(*operations: object) -> list[Operation]:
    numbers = iter(range(1_000))
    return parse({"operations": list(operations)}, lambda: f"new-{next(numbers)}")


def refusal(data: object) -> str:
    with pytest.raises(InvalidField) as refused:
        parse(data, lambda: "new")
    return refused.value.message


def deep(levels: int) -> dict[str, Any]:
    return {"in": deep(levels - 1)} if levels else {}


def test_a_list_is_taken_in_its_order_with_ids_made_where_there_are_none() -> None:
    operations = parsed(NODE, EDGE, {"op": "create_node"}, {"op": "delete_node", "id": "a"})

    assert [type(each).__name__ for each in operations] == ["CreateNode", "CreateEdge", "CreateNode", "DeleteNode"]
    assert [each.id for each in operations] == ["a", "new-0", "new-1", "a"]


def test_only_what_can_be_there_is_read() -> None:
    (given_id, no_id, edge) = parsed(NODE, {"op": "create_node"}, EDGE)

    assert [key.id for key in given_id.mentions] == ["a"]
    assert no_id.mentions == ()
    assert [tuple(key) for key in edge.mentions] == [("nodes", "a"), ("nodes", "b")]


def test_null_is_as_good_as_left_out() -> None:
    (operation,) = parsed(NODE | {"label": None, "properties": None, "position": None})

    assert operation == parsed(NODE)[0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "data: must be an object"),
        ([], "data: must be an object"),
        ({}, "operations: must be given"),
        ({"operations": []}, "operations: must be a list of 1 to 100"),
        ({"operations": [NODE] * (MOST_OPERATIONS + 1)}, "operations: must be a list of 1 to 100"),
        ({"operations": [NODE], "more": 1}, "more: unknown field"),
    ],
)
def test_what_is_wrong_with_the_whole_is_named(data: object, message: str) -> None:
    assert refusal(data) == message


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (7, ": must be an object"),
        ({}, ".op: must be given"),
        ({"op": "drop_node"}, f".op: must be one of: {', '.join(HANDLERS)}"),
        ({"op": ["create_node"]}, f".op: must be one of: {', '.join(HANDLERS)}"),
        (NODE | {"colour": 1}, ".colour: unknown field"),
        (NODE | {"from": "a"}, ".from: unknown field"),
        ({"op": "update_node", "id": "a"}, ": must have a label or properties"),
        ({"op": "update_node", "label": "x"}, ".id: must be given"),
        ({"op": "move_node", "id": "a"}, ".position: must be given"),
        ({"op": "create_edge", "from": "a"}, ".to: must be given"),
        (
            EDGE | {"from": 5},
            ".from: must be 1-64 letters, digits, _ or -, and must not start and end with a double underscore",
        ),
        (NODE | {"label": "é" * 101}, ".label: must be a text of at most 200 bytes"),
        (NODE | {"label": "\ud800"}, ".label: must be valid Unicode, without lone surrogates"),
        (NODE | {"position": {"x": 1}}, ".position.y: must be given"),
        (NODE | {"position": {"x": 1, "y": 2, "z": 3}}, ".position.z: unknown field"),
        (NODE | {"position": {"x": True, "y": 0}}, f".position.x{FAR}"),
        (NODE | {"position": {"x": float("nan"), "y": 0}}, f".position.x{FAR}"),
        (NODE | {"position": {"x": 0, "y": 10**400}}, f".position.y{FAR}"),
        (NODE | {"properties": []}, ".properties: must be an object"),
        (NODE | {"properties": {"k": 2**63}}, ".properties: must hold no whole number beyond 64 bits"),
        (NODE | {"properties": {"k": float("inf")}}, ".properties: must hold finite numbers only"),
        (NODE | {"properties": {"k": ["\udfff"]}}, ".properties: must be valid Unicode, without lone surrogates"),
        (NODE | {"properties": {"k": {"__type__": 1}}}, f".properties{NAMES}"),
        (NODE | {"properties": {"": 1}}, f".properties{NAMES}"),
        (
            NODE | {"properties": {"k": [[1]]}},
            ".properties: must hold no list directly in a list, which Firestore has not",
        ),
        (NODE | {"properties": deep(5)}, ".properties: must not be nested deeper than 5"),
        (NODE | {"properties": {"k": "x" * 4_089}}, ".properties: must be at most 4096 bytes as JSON"),
    ],
)
def test_a_wrong_field_is_named_with_the_index_of_its_operation(operation: object, message: str) -> None:
    assert refusal({"operations": [NODE, NODE, operation]}) == f"operations[2]{message}"


def test_what_is_just_within_the_bounds_is_taken() -> None:
    parsed(
        NODE | {"label": "é" * 100, "position": {"x": -1e9, "y": 10**9}},
        NODE | {"properties": {"k": "x" * (fields.PROPERTIES_BYTES - 9)}},
        NODE | {"properties": deep(4)},
        NODE | {"properties": {"a.b": 1, "`": -(2**63), "k" * 100: [{"l": [1.5, True, None]}]}},
        NODE | {"id": "x" * 64},
    )


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=70)
    | st.sampled_from(["a", "__a__", "__type__", 2**63, -(2**63), "x" * 300]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5) | st.just("__x__"), inner),
    max_leaves=20,
)
ID = st.sampled_from(["a", "b", "x-1"]) | JSON
OPERATION = st.fixed_dictionaries(
    {"op": st.sampled_from([*HANDLERS])},
    optional={
        "id": ID,
        "from": ID,
        "to": ID,
        "label": st.text(max_size=5) | JSON,
        "properties": st.dictionaries(st.text(max_size=5), JSON, max_size=3) | JSON,
        "position": st.fixed_dictionaries({"x": st.floats() | st.integers(), "y": st.just(1)}) | JSON,
        "other": JSON,
    },
)


@given(JSON | st.fixed_dictionaries({"operations": st.lists(OPERATION | JSON, max_size=4)}))
def test_any_input_is_a_plan_or_a_refusal(data: object) -> None:
    try:
        operations = parse(data, lambda: "new")
    except InvalidField as refused:
        json.dumps(refused.message)
        return

    for operation in operations:
        assert fields.is_identifier(operation.id)
        content = getattr(operation, "content", None) or getattr(operation, "changed", None) or {}
        for value in encode_dict(content).values():
            type(value).serialize(value)


def test_what_is_queried_is_indexed_and_nothing_else_of_a_graph_is() -> None:
    """Each index entry of a document is written with it; and the emulator answers without any index."""
    overrides = json.loads((ROOT / "firestore.indexes.json").read_text())["fieldOverrides"]
    indexes = {(each["collectionGroup"], each["fieldPath"]): each["indexes"] for each in overrides}
    ascending = [{"order": "ASCENDING", "queryScope": "COLLECTION"}]

    assert all(indexes["edges", name] == ascending for name in FIELDS[Kind.EDGE])
    assert all(indexes["nodes", name] == [] for name in FIELDS[Kind.NODE])
    assert all(indexes["graphs", name] == [] for name in ("version", "writer", "size"))
