"""Function declarations: names that the API does not know are refused before its SDK can repeat or keep them."""

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from firebreak.errors import InvalidField
from firebreak.gemini import declarations, message
from firebreak.gemini.contents import Called, Turn
from firebreak.gemini.request import Bounds, Request, parse

ROOT = Path(__file__).parents[2]
BOUNDS = Bounds(models=("a",), max_output_tokens=100, default_output_tokens=10, max_prompt_bytes=10**6)
SECRET = "my mother's maiden name"


def declared(**fields: Any) -> list[dict[str, Any]]:
    return [{"functionDeclarations": [{"name": "f", **fields}]}]


def asked(tools: object) -> Request:
    return parse({"prompt": "hi", "tools": tools}, BOUNDS)


def unchecked(tools: list[dict[str, Any]], *parts: Called) -> Request:
    """As it would be if nobody had looked at the tools before."""
    plain = parse({"prompt": "hi"}, BOUNDS)
    return replace(plain, tools=tuple(tools), turns=(Turn(role="user", parts=parts or plain.turns[0].parts),))


def test_the_names_are_those_that_the_sdk_knows() -> None:
    assert set(declarations.TYPES) == set(types.Type.__members__)
    assert set(declarations.BEHAVIORS) == set(types.Behavior.__members__)


def test_every_schema_within_a_schema_is_looked_at() -> None:
    """A field for schemas that the SDK has, and we do not look into, would bring unknown names to it again."""
    holds = {name for name, field in types.Schema.model_fields.items() if "Schema" in str(field.annotation)}

    assert {"items", "any_of", "properties"} <= holds
    assert holds <= {*declarations.ALONE, *declarations.LISTED, *declarations.NAMED}


NESTED: list[Callable[[object], object]] = [
    lambda schema: schema,
    lambda schema: {"type": "ARRAY", "items": schema},
    lambda schema: {"anyOf": [{"type": "STRING"}, schema]},
    lambda schema: {"any_of": [schema]},
    lambda schema: {"type": "OBJECT", "properties": {"type": schema}},
    lambda schema: {"defs": {"x": {"items": schema}}},
]


@pytest.mark.parametrize("field", ["parameters", "response"])
@pytest.mark.parametrize("nest", NESTED)
@pytest.mark.parametrize("type_", [SECRET, "", 5, True, ["string", "null"], {"a": 1}, []])
def test_a_type_that_is_none_is_refused_wherever_it_stands(
    type_: object, nest: Callable[[object], object], field: str
) -> None:
    with pytest.raises(InvalidField, match=rf"tools\[0\]\.functionDeclarations\[0\]\.{field} must hold as type"):
        asked(declared(**{field: nest({"type": type_})}))


@pytest.mark.parametrize("behavior", [SECRET, "", 5, ["BLOCKING"], {}])
def test_a_behavior_that_is_none_is_refused(behavior: object) -> None:
    with pytest.raises(InvalidField, match="behavior"):
        asked(declared(behavior=behavior))


@pytest.mark.parametrize("nest", NESTED)
@pytest.mark.parametrize("type_", ["object", "STRING", "Integer", None])
def test_types_are_taken_in_either_case(type_: object, nest: Callable[[object], object]) -> None:
    message.check(asked(declared(parameters=nest({"type": type_}), behavior="blocking")))


def test_json_schema_may_have_lists_of_types() -> None:
    message.check(asked(declared(parametersJsonSchema={"type": ["string", "null"]})))


@pytest.mark.parametrize("type_", [["string", "null"], 5, {"a": 1}, True])
def test_what_the_sdk_stumbles_over_is_an_invalid_field(type_: object) -> None:
    with pytest.raises(InvalidField, match="tools must hold"):
        message.check(unchecked(declared(parameters={"type": type_})))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
SCHEMA_FIELDS = [
    name for field in types.Schema.model_fields for name in (field, str(types.Schema.model_fields[field].alias))
]
TYPE = st.sampled_from([*declarations.TYPES, "string", SECRET]) | JSON
SCHEMA = st.recursive(
    st.fixed_dictionaries({"type": TYPE}),
    lambda inner: st.dictionaries(
        st.sampled_from(SCHEMA_FIELDS),
        inner | st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2) | JSON,
        max_size=4,
    ),
    max_leaves=6,
)
DECLARATION = st.fixed_dictionaries(
    {},
    optional={
        "name": st.just("f") | JSON,
        "description": JSON,
        "parameters": SCHEMA | JSON,
        "response": SCHEMA | JSON,
        "parametersJsonSchema": JSON,
        "responseJsonSchema": JSON,
        "behavior": st.sampled_from(["BLOCKING", SECRET]) | JSON,
    },
)
TOOLS = st.lists(
    st.fixed_dictionaries({"functionDeclarations": st.lists(DECLARATION | JSON, max_size=2) | JSON}), max_size=2
)
CALLS = st.builds(
    Called,
    kind=st.sampled_from(["functionCall", "functionResponse"]),
    value=st.dictionaries(st.sampled_from(["id", "name", "args", "response"]), JSON, max_size=3),
)


@given(TOOLS, CALLS)
def test_whatever_is_declared_is_taken_or_an_invalid_field_and_never_warned_of(
    tools: list[dict[str, Any]], called: Called
) -> None:
    """With the check of names, and, should the SDK know of more names, without it."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with suppress(InvalidField):
            message.check(asked(tools))
        for request in (unchecked(tools), unchecked([], called)):
            with suppress(InvalidField):
                message.check(request)

    assert not warned


PROBE = f"""
import warnings
from firebreak.gemini import message
from firebreak.gemini.request import Bounds, parse
from dataclasses import replace
bounds = Bounds(models=("a",), max_output_tokens=9, default_output_tokens=9, max_prompt_bytes=9)
plain = parse({{"prompt": "hi"}}, bounds)
for again in range(2):
    schema = {{"type": "{SECRET} " + str(again)}}
    message.check(replace(plain, tools=({{"functionDeclarations": [{{"name": "f", "parameters": schema}}]}},)))
    warnings.simplefilter("always")
from google.genai import _common
print([kept for kept in vars(_common).get("__warningregistry__", ()) if "{SECRET}" in str(kept)])
"""


@pytest.mark.parametrize("filtered", ["default", "always", "error"])
def test_the_sdk_neither_prints_nor_keeps_what_a_client_sent(filtered: str) -> None:
    """In a process of its own: the tests' runner has filters of its own."""
    env = os.environ | {"PYTHONPATH": str(ROOT / "functions")}
    command = [sys.executable, "-W", filtered, "-c", PROBE]

    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)

    assert SECRET not in ran.stderr
    assert (ran.returncode, ran.stdout) == (0, "[]\n"), ran.stderr
