"""What `traverse` takes, and that what it gives to go on with is taken."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firebreak.errors import InvalidField
from graph.traverse import DEFAULT_NODES, ENDS, MOST_DEPTH, MOST_STARTS, Task, parse
from tests.unit.test_graph_operations import JSON


def test_a_start_alone_is_one_step_out() -> None:
    asked = parse({"start": "a"})

    assert asked.tasks == (Task(node="a", end="from", depth=1),)
    assert (asked.limit, asked.label) == (DEFAULT_NODES, None)


def test_an_empty_label_is_a_label() -> None:
    assert parse({"start": "a", "label": ""}).label == ""


def test_what_is_asked_twice_is_done_once() -> None:
    assert len(parse({"start": ["a", "a", {"id": "a"}], "direction": "both"}).tasks) == 2


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "start: must be given"),
        ({"start": []}, f"start: must be a list of 1 to {MOST_STARTS}"),
        ({"start": ["a"] * (MOST_STARTS + 1)}, f"start: must be a list of 1 to {MOST_STARTS}"),
        ({"start": ["a", 5]}, "start[1]: must be an object"),
        ({"start": ["a", {"after": "e"}]}, "start[1].id: must be given"),
        ({"start": {"id": "a", "from": "b"}}, "start.from: unknown field"),
        (
            {"start": {"id": "a", "after": "e"}, "direction": "both"},
            "start.direction: must be in or out where there is an after",
        ),
        ({"start": "a", "depth": 0}, f"depth: must be a whole number from 1 to {MOST_DEPTH}"),
        ({"start": "a", "depth": 1.5}, f"depth: must be a whole number from 1 to {MOST_DEPTH}"),
        ({"start": [{"id": "a", "depth": 6}]}, f"start[0].depth: must be a whole number from 1 to {MOST_DEPTH}"),
        ({"start": "a", "limit": 201}, "limit: must be a whole number from 1 to 200"),
        ({"start": "a", "limit": True}, "limit: must be a whole number from 1 to 200"),
        ({"start": "a", "direction": "up"}, f"direction: must be one of: {', '.join(ENDS)}"),
        ({"start": "a", "direction": {}}, f"direction: must be one of: {', '.join(ENDS)}"),
        ({"start": "a", "label": 1}, "label: must be a text of at most 200 bytes"),
    ],
)
def test_a_wrong_field_is_named(data: object, message: str) -> None:
    with pytest.raises(InvalidField) as refused:
        parse(data)

    assert refused.value.message == message


@given(
    JSON
    | st.fixed_dictionaries(
        {"start": JSON | st.lists(st.fixed_dictionaries({"id": JSON}, optional={"after": JSON, "depth": JSON}))},
        optional={"depth": JSON, "limit": JSON, "direction": JSON, "label": JSON},
    )
)
def test_any_input_is_a_walk_or_a_refusal(data: object) -> None:
    try:
        asked = parse(data)
    except InvalidField as refused:
        json.dumps(refused.message)
        return

    assert 1 <= len(asked.tasks) <= 2 * MOST_STARTS


@given(
    st.builds(
        Task,
        node=st.from_regex(r"[A-Za-z0-9-]{1,64}", fullmatch=True),
        end=st.sampled_from(["from", "to"]),
        depth=st.integers(1, MOST_DEPTH),
        after=st.just("") | st.from_regex(r"[A-Za-z0-9-]{1,64}", fullmatch=True),
    )
)
def test_where_to_go_on_is_a_place_to_start_from(task: Task) -> None:
    assert parse({"start": [json.loads(json.dumps(task.shown()))], "direction": "both", "depth": 3}).tasks == (task,)
