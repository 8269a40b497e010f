"""Function declarations as a client sends them: every field is checked here and made plain, so the SDK sees none."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from firebreak.errors import InvalidField

TYPES = ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL", "TYPE_UNSPECIFIED")
BEHAVIORS = ("BLOCKING", "NON_BLOCKING", "UNSPECIFIED")
MODES = ("AUTO", "ANY", "NONE", "VALIDATED")
# Of these modes alone the API takes the names of functions.
NAMING_MODES = ("ANY", "VALIDATED")
CONFIG = "functionCallingConfig"
ALLOWED = "allowedFunctionNames"
MAX_NAME_BYTES = 128
MAX_ALLOWED = 128
# Of all tools and the response schema together: 128 functions of some forty values each.
MAX_VALUES = 5_000

type Check = Callable[[object, str], Any]


def parse(value: object, name: str) -> list[dict[str, Any]]:
    """Check `functionDeclarations`; types and behaviors come back in capitals, as the API names them.

    Raises:
        InvalidField: a field is unknown or of the wrong type; the message names it.
    """
    return [_declaration(each, where) for each, where in _listed(value, name)]


def config(value: object, declared: Iterable[str]) -> dict[str, Any]:
    """Check `toolConfig`: the mode of function calling, and which of the `declared` functions may be called.

    Raises:
        InvalidField: it holds anything else; the message names it.
    """
    where = f"toolConfig.{CONFIG}"
    if not isinstance(value, dict) or value.keys() != {CONFIG}:
        raise InvalidField(f"toolConfig must be an object with only {CONFIG}")
    checked = _object(value[CONFIG], {"mode": _one_of(MODES), ALLOWED: _texts}, where)
    if "mode" not in checked:
        raise InvalidField(f"{where}.mode must be one of: {', '.join(MODES)}")
    if ALLOWED in checked and checked["mode"] not in NAMING_MODES:
        raise InvalidField(f"{where}.{ALLOWED} needs the mode {' or '.join(NAMING_MODES)}")
    if {*checked.get(ALLOWED, ())} - {*declared}:
        raise InvalidField(f"{where}.{ALLOWED} must name functions that tools declares")
    if len(checked.get(ALLOWED, ())) > MAX_ALLOWED:
        raise InvalidField(f"{where}.{ALLOWED} must hold at most {MAX_ALLOWED} names")
    return {CONFIG: checked}


def values(json: object) -> int:
    """How many values JSON holds, itself included."""
    if isinstance(json, Mapping):
        return 1 + sum(map(values, json.values()))
    return 1 + sum(map(values, json)) if isinstance(json, list | tuple) else 1


def _declaration(value: object, name: str) -> dict[str, Any]:
    checked = _object(value, DECLARATION, name)
    if not 0 < len(checked.get("name", "").encode()) <= MAX_NAME_BYTES:
        raise InvalidField(f"{name}.name must be 1 to {MAX_NAME_BYTES} bytes")
    return checked


def _object(value: object, fields: Mapping[str, Check], name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidField(f"{name} must be an object")
    unknown = sorted(str(field)[:40] for field in value.keys() - fields.keys())
    if unknown:
        raise InvalidField(f"{name} must not hold {unknown[0]}; it may hold {', '.join(fields)}")
    return {field: fields[field](each, f"{name}.{field}") for field, each in value.items() if each is not None}


def _listed(value: object, name: str) -> list[tuple[object, str]]:
    if not isinstance(value, list):
        raise InvalidField(f"{name} must be a list")
    return [(each, f"{name}[{index}]") for index, each in enumerate(value)]


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidField(f"{name} must be text")
    return value


def _texts(value: object, name: str) -> list[str]:
    return [_text(each, where) for each, where in _listed(value, name)]


def _number(value: object, name: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidField(f"{name} must be a number")
    return value


def _whole(value: object, name: str) -> int:
    number = _number(value, name)
    if number != number // 1:
        raise InvalidField(f"{name} must be a whole number")
    return int(number)


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidField(f"{name} must be true or false")
    return value


def _anything(value: object, _name: str) -> object:
    return value


def _one_of(known: tuple[str, ...]) -> Check:
    def check(value: object, name: str) -> str:
        # Not upper() first: it turns some letters of other scripts into these.
        if not isinstance(value, str) or not value.isascii() or value.upper() not in known:
            raise InvalidField(f"{name} must be one of: {', '.join(known)}")
        return value.upper()

    return check


def _schema(value: object, name: str) -> dict[str, Any]:
    return _object(value, SCHEMA, name)


def _schemas(value: object, name: str) -> list[dict[str, Any]]:
    return [_schema(each, where) for each, where in _listed(value, name)]


def _named(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidField(f"{name} must be an object")
    # A client chose these names: the message shows where, not what.
    return {each: _schema(schema, f"{name}[{index}]") for index, (each, schema) in enumerate(value.items())}


SCHEMA: dict[str, Check] = {
    "type": _one_of(TYPES),
    **dict.fromkeys(("title", "description", "format", "pattern", "ref"), _text),
    **dict.fromkeys(("enum", "required", "propertyOrdering"), _texts),
    **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"), _whole),
    **dict.fromkeys(("minimum", "maximum"), _number),
    **dict.fromkeys(("default", "example", "additionalProperties"), _anything),
    "nullable": _flag,
    "items": _schema,
    "anyOf": _schemas,
    **dict.fromkeys(("properties", "defs"), _named),
}
DECLARATION: dict[str, Check] = {
    **dict.fromkeys(("name", "description"), _text),
    "behavior": _one_of(BEHAVIORS),
    **dict.fromkeys(("parameters", "response"), _schema),
    **dict.fromkeys(("parametersJsonSchema", "responseJsonSchema"), _anything),
}
