"""Function declarations: every field is checked by name and type, and what passes is what the SDK would take."""

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, get_args

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from firebreak.errors import InvalidField
from firebreak.gemini import contents
from firebreak.gemini.request import THINKING_LEVELS, Bounds, parse

BOUNDS = Bounds(models=("a",), max_output_tokens=100, default_output_tokens=10, max_prompt_bytes=10**6)
SECRET = "my mother's maiden name"
WHERE = r"tools\[0\]\.functionDeclarations\[0\]"


def declared(**fields: Any) -> list[dict[str, Any]]:
    return [{"functionDeclarations": [{"name": "f", **fields}]}]


def taken(tools: object) -> list[Any]:
    return list(parse({"prompt": "hi", "tools": tools}, BOUNDS).tools)


def aliases(model: Any) -> set[str]:
    return {str(field.alias) for field in model.model_fields.values()}


def names(enum: Any) -> set[str]:
    return {str(member.value) for member in enum}


def test_every_field_and_name_is_one_that_the_sdk_knows_and_none_is_missing() -> None:
    assert set(contents.SCHEMA) == aliases(types.Schema)
    assert set(contents.DECLARATION) == aliases(types.FunctionDeclaration)
    assert set(contents.TYPES) == names(types.Type)
    assert set(contents.BEHAVIORS) == names(types.Behavior)
    assert set(contents.MODES) == names(types.FunctionCallingConfigMode) - {"MODE_UNSPECIFIED"}
    assert set(THINKING_LEVELS) == names(types.ThinkingLevel) - {"THINKING_LEVEL_UNSPECIFIED"}


def test_every_field_that_holds_schemas_is_looked_into() -> None:
    holds = {str(f.alias) for f in types.Schema.model_fields.values() if "Schema" in str(get_args(f.annotation))}

    assert holds == {"items", "anyOf", "properties", "defs"}


NESTED: list[Callable[[object], object]] = [
    lambda schema: schema,
    lambda schema: {"type": "ARRAY", "items": schema},
    lambda schema: {"anyOf": [{"type": "STRING"}, schema]},
    lambda schema: {"type": "OBJECT", "properties": {"type": schema}},
    lambda schema: {"defs": {"x": {"items": schema}}},
]


@pytest.mark.parametrize("field", ["parameters", "response"])
@pytest.mark.parametrize("nest", NESTED)
@pytest.mark.parametrize("type_", [SECRET, "", 5, True, ["string", "null"], {"a": 1}, [], "ﬅRING"])
def test_a_type_that_is_none_is_refused_wherever_it_stands(
    type_: object, nest: Callable[[object], object], field: str
) -> None:
    with pytest.raises(InvalidField, match=rf"^{WHERE}\.{field}.*type must be one of") as refusal:
        taken(declared(**{field: nest({"type": type_})}))

    assert SECRET not in refusal.value.message


@pytest.mark.parametrize("behavior", [SECRET, "", 5, ["BLOCKING"], {}])
def test_a_behavior_that_is_none_is_refused(behavior: object) -> None:
    with pytest.raises(InvalidField, match=rf"^{WHERE}\.behavior must be one of: BLOCKING"):
        taken(declared(behavior=behavior))


@pytest.mark.parametrize("nest", NESTED)
@pytest.mark.parametrize("type_", ["object", "STRING", "Integer"])
def test_types_are_taken_in_either_case(type_: str, nest: Callable[[object], object]) -> None:
    plain = taken(declared(parameters=nest({"type": type_}), behavior="blocking"))

    assert plain == declared(parameters=nest({"type": type_.upper()}), behavior="BLOCKING")


def test_an_empty_field_is_left_out() -> None:
    assert taken(declared(parameters={"type": None, "title": "t"})) == declared(parameters={"title": "t"})


def test_json_schema_may_hold_anything() -> None:
    tools = declared(parametersJsonSchema={"type": ["string", "null"]}, responseJsonSchema={"$ref": "#"})

    assert taken(tools) == tools


WRONG: list[tuple[dict[str, Any], str]] = [
    *(({field: 1}, f"{field} must be text") for field in ("title", "description", "format", "pattern", "ref")),
    *(({field: "a"}, f"{field} must be a list") for field in ("enum", "required", "propertyOrdering", "anyOf")),
    *(({field: ["a", 1]}, rf"{field}\[1\] must be text") for field in ("enum", "required", "propertyOrdering")),
    *(({f"{least}{of}": 1.5}, "whole") for least in ("min", "max") for of in ("Items", "Length", "Properties")),
    *(({f"{least}{of}": "1"}, "number") for least in ("min", "max") for of in ("Items", "Length", "Properties")),
    *(({field: value}, f"{field} must be a number") for field in ("minimum", "maximum") for value in (True, "1")),
    ({"nullable": 1}, "nullable must be true or false"),
    ({"items": []}, "items must be an object"),
    ({"anyOf": [{}, 1]}, r"anyOf\[1\] must be an object"),
    ({"properties": []}, "properties must be an object"),
    ({"defs": {"a": {}, "b": 1}}, r"defs\[1\] must be an object"),
    ({"any_of": []}, "must not hold any_of; it may hold type, title"),
    ({"$ref": "x"}, r"must not hold \$ref"),
    ({SECRET * 9: 1}, f"must not hold {(SECRET * 9)[:40]};"),
]


@pytest.mark.parametrize(("schema", "told"), WRONG)
def test_a_wrong_field_of_a_schema_is_named(schema: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidField, match=rf"^{WHERE}\.parameters.*{told}"):
        taken(declared(parameters=schema))


@pytest.mark.parametrize(
    ("tools", "told"),
    [
        ([{"functionDeclarations": {}}], r"tools\[0\].functionDeclarations must be a list"),
        ([{"functionDeclarations": ["f"]}], rf"{WHERE} must be an object"),
        ([{"functionDeclarations": [{}]}], rf"{WHERE}.name must be 1 to 128 bytes"),
        (declared(name=""), rf"{WHERE}.name must be 1 to 128 bytes"),
        (declared(name="é" * 64 + "x"), rf"{WHERE}.name must be 1 to 128 bytes"),
        (declared(name=1), rf"{WHERE}.name must be text"),
        (declared(description=1), rf"{WHERE}.description must be text"),
        (declared(parameters=1), rf"{WHERE}.parameters must be an object"),
        (declared(code="x"), rf"{WHERE} must not hold code; it may hold name, description"),
    ],
)
def test_a_wrong_declaration_is_named(tools: object, told: str) -> None:
    with pytest.raises(InvalidField, match=f"^{told}"):
        taken(tools)


def test_the_longest_name_and_the_numbers_of_a_schema_are_taken() -> None:
    schema = {"minItems": 0, "maxItems": 7.0, "minimum": 0.5, "maximum": 2, "nullable": False, "default": [None]}

    assert taken(declared(name="n" * 128, parameters=schema)) == declared(name="n" * 128, parameters=schema)


@pytest.mark.parametrize(
    ("json", "count"),
    [(1, 1), (None, 1), ("abc", 1), ([], 1), ({}, 1), ([1, 2], 3), ({"a": 1, "b": [1]}, 4), (({"a": {}},), 3)],
)
def test_values_are_counted_with_what_holds_them(json: object, count: int) -> None:
    assert contents.values(json) == count


def test_tools_and_schema_are_bounded_together() -> None:
    def asked(count: int, **more: object) -> dict[str, Any]:
        return {"prompt": "hi", "tools": declared(parameters={"enum": ["x"] * count}), **more}

    most = contents.MAX_VALUES - contents.values([declared(parameters={"enum": []}), None])
    parse(asked(most), BOUNDS)

    for data in (asked(most + 1), asked(most, responseSchema={"a": 1})):
        with pytest.raises(InvalidField, match="at most 5000 values together"):
            parse(data, BOUNDS)


def called(config: object, tools: object = None) -> Any:
    return parse({"prompt": "hi", "tools": tools or declared(), "toolConfig": config}, BOUNDS).tool_config


@pytest.mark.parametrize("mode", ["AUTO", "any", "None", "VALIDATED"])
def test_a_mode_is_taken(mode: str) -> None:
    assert called({"functionCallingConfig": {"mode": mode}}) == {"functionCallingConfig": {"mode": mode.upper()}}


@pytest.mark.parametrize("mode", ["ANY", "VALIDATED"])
def test_declared_functions_may_be_named(mode: str) -> None:
    config = {"functionCallingConfig": {"mode": mode, "allowedFunctionNames": ["f"]}}

    assert called(config) == config


def names_of(mode: object, names: object) -> dict[str, Any]:
    return {"functionCallingConfig": {"mode": mode, "allowedFunctionNames": names}}


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({}, "toolConfig must be an object with only functionCallingConfig"),
        ([], "toolConfig must be an object with only functionCallingConfig"),
        ({"functionCallingConfig": {"mode": "ANY"}, "retrievalConfig": {}}, "toolConfig must be an object with only"),
        ({"functionCallingConfig": 1}, "toolConfig.functionCallingConfig must be an object"),
        ({"functionCallingConfig": {}}, "toolConfig.functionCallingConfig.mode must be one of: AUTO, ANY"),
        ({"functionCallingConfig": {"mode": "MODE_UNSPECIFIED"}}, "toolConfig.functionCallingConfig.mode must be"),
        ({"functionCallingConfig": {"streamFunctionCallArguments": True}}, "toolConfig.functionCallingConfig must not"),
        (names_of("AUTO", ["f"]), "toolConfig.functionCallingConfig.allowedFunctionNames needs the mode ANY or VALID"),
        (names_of("NONE", ["f"]), "toolConfig.functionCallingConfig.allowedFunctionNames needs the mode ANY or VALID"),
        (names_of("ANY", ["f", "g"]), "toolConfig.functionCallingConfig.allowedFunctionNames must name functions"),
        (names_of("ANY", ["f"] * 129), "toolConfig.functionCallingConfig.allowedFunctionNames must hold at most 128"),
        (names_of("ANY", "f"), "toolConfig.functionCallingConfig.allowedFunctionNames must be a list"),
    ],
)
def test_a_wrong_config_is_named(config: object, told: str) -> None:
    with pytest.raises(InvalidField, match=f"^{told}"):
        called(config)


def test_as_many_names_as_the_api_takes_are_taken() -> None:
    assert called(names_of("ANY", ["f"] * 128)) == names_of("ANY", ["f"] * 128)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
TYPE = st.sampled_from([*contents.TYPES, "string", SECRET]) | JSON
SCHEMA = st.recursive(
    st.fixed_dictionaries({"type": TYPE}),
    lambda inner: st.dictionaries(
        st.sampled_from([*contents.SCHEMA, "any_of"]),
        inner | st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2) | JSON,
        max_size=4,
    ),
    max_leaves=6,
)
DECLARATION = st.fixed_dictionaries(
    {"name": st.just("f") | JSON},
    optional={
        "description": JSON,
        "parameters": SCHEMA | JSON,
        "response": SCHEMA | JSON,
        "parametersJsonSchema": JSON,
        "responseJsonSchema": JSON,
        "behavior": st.sampled_from(["BLOCKING", SECRET]) | JSON,
    },
)


@given(DECLARATION)
def test_whatever_is_taken_the_sdk_takes_as_well_without_a_warning(declaration: dict[str, Any]) -> None:
    """Its types are the API's: what passes here would not be refused, or guessed at, there."""
    with suppress(InvalidField):
        (tool,) = taken([{"functionDeclarations": [declaration]}])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                types.Tool.model_validate(tool)
            except ValidationError as error:
                pytest.fail(str(error))
