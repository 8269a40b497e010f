"""How Google's APIs read a JSON message, as strict and worded like them, and how they write one."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from scripts.local.standins.google import GoogleError

_SYSTEM = frozenset(
    "$alt $.xgafv $prettyPrint access_token alt callback fields key oauth_token prettyPrint quotaUser uploadType "
    "upload_protocol".split()
)
_BITS = {"TYPE_INT32": 32, "TYPE_INT64": 64}


@dataclass(frozen=True, slots=True)
class Scalar:
    type: str


@dataclass(frozen=True, slots=True)
class Enum:
    """Its values in the order of their numbers; the first is the default."""

    type: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    of: "Kind"


@dataclass(frozen=True, slots=True)
class Map:
    of: "Kind"


@dataclass(frozen=True, slots=True)
class Message:
    """Its fields in lower camel case; of the fields of one `oneof` at most one is set."""

    fields: Mapping[str, "Kind"]
    oneofs: Mapping[str, frozenset[str]] = field(default_factory=dict)


type Kind = Scalar | Enum | Repeated | Map | Message
STRING, BOOL, DOUBLE, INT32, INT64, ANY = (
    Scalar(f"TYPE_{name}") for name in ("STRING", "BOOL", "DOUBLE", "INT32", "INT64", "ANY")
)


def read(text: str, message: Message, root: str = "") -> dict[str, Any]:
    """The fields that are set, in lower camel case; a scalar or list with its default value is not set.

    Args:
        text: the body.
        message: what it is.
        root: the field of the request that the body stands for, for the errors' paths.

    Raises:
        GoogleError: 400, in the JSON front's words.
    """
    try:
        value = json.loads(text or "{}")
    except ValueError:
        raise _bad(root, "Invalid JSON payload received. Unexpected token.") from None
    return parse(value, message, root)


def parse(value: object, message: Message, root: str = "") -> dict[str, Any]:
    """As `read`, of what was JSON."""
    if not isinstance(value, dict):
        raise _bad(root, 'Invalid JSON payload received. Unknown name "": Root element must be a message.')
    parsed: dict[str, Any] = {}
    for given, item in value.items():
        name = camel(given)
        if name not in message.fields:
            at = f" at '{root}'" if root else ""
            raise _bad(root, f'Invalid JSON payload received. Unknown name "{given}"{at}: Cannot find field.')
        if item is not None and not _is_default(found := _parse(item, message.fields[name], _join(root, name))):
            _check_oneof(message, parsed, name, root)
            parsed[name] = found
    return parsed


def _parse(value: object, kind: Kind, path: str) -> Any:  # noqa: ANN401
    match kind:
        case Message():
            return parse(value, kind, path)
        case Repeated(of):
            if not isinstance(value, list):
                raise _bad(path, f"Invalid value at '{path}', a list is expected, not {json.dumps(value)}")
            return [_parse(item, of, f"{path}[{number}]") for number, item in enumerate(value)]
        case Map(of):
            if not isinstance(value, dict):
                raise _bad(path, f"Invalid value at '{path}', an object is expected, not {json.dumps(value)}")
            return {key: _parse(item, of, f"{path}[{key}]") for key, item in value.items()}
    if isinstance(value, list):
        raise _bad(
            path,
            f'Invalid JSON payload received. Unknown name "{path.rpartition(".")[2]}": '
            "Proto field is not repeating, cannot start list.",
        )
    return _enum(value, kind, path) if isinstance(kind, Enum) else _scalar(value, kind, path)


def _enum(value: object, kind: Enum, path: str) -> str | None:
    """Its name, given by name or by number; None for the default."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(kind.values):
        value = kind.values[value]
    if value not in kind.values:
        raise _bad(path, f"Invalid value at '{path}' (type.googleapis.com/{kind.type}), {json.dumps(value)}")
    return None if value == kind.values[0] else str(value)


def _scalar(value: object, kind: Scalar, path: str) -> object:
    wrong = _bad(path, f"Invalid value at '{path}' ({kind.type}), {json.dumps(value)}")
    if kind == ANY:
        return value
    if kind in {STRING, BOOL}:
        if not isinstance(value, str if kind == STRING else bool):
            raise wrong
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise wrong
    try:
        number = float(value) if kind == DOUBLE else _whole(value)
    except ValueError:
        raise wrong from None
    if isinstance(number, int) and not -(2 ** (_BITS[kind.type] - 1)) <= number < 2 ** (_BITS[kind.type] - 1):
        raise wrong
    return number


def _whole(value: float | str) -> int:
    if isinstance(value, str):
        if not re.fullmatch(r"-?\d+", value, re.ASCII):
            raise ValueError(value)
        return int(value)
    if not math.isfinite(value) or value != int(value):
        raise ValueError(value)
    return int(value)


def _check_oneof(message: Message, parsed: Mapping[str, object], name: str, root: str) -> None:
    for oneof, members in message.oneofs.items():
        if name in members and members & parsed.keys():
            raise _bad(
                root, f"Invalid value at '{root}' (oneof), oneof field '{oneof}' is already set. Cannot set '{name}'"
            )


def write(value: Any, kind: Kind) -> Any:  # noqa: ANN401
    """As Google writes it: a 64-bit number is a string."""
    match kind:
        case Message(fields):
            return {name: write(item, fields[name]) for name, item in value.items()}
        case Repeated(of):
            return [write(item, of) for item in value]
        case Map(of):
            return {key: write(item, of) for key, item in value.items()}
    return str(value) if kind == INT64 else value


def check_query(given: Iterable[str], known: Iterable[str]) -> None:
    """Let a query pass that has only parameters of the method, or those that every method has.

    Raises:
        GoogleError: 400.
    """
    for name in given:
        if camel(name) not in known and name not in _SYSTEM:
            raise _bad(
                "",
                f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter. '
                f"Field '{name}' could not be found in request message.",
            )


def whole_number(text: str, name: str) -> int:
    """A 32-bit number of the query.

    Raises:
        GoogleError: 400.
    """
    number = _scalar(text, INT32, snake(name))
    assert isinstance(number, int)
    return number


def camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)


def snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", name)


def _join(root: str, name: str) -> str:
    return f"{root}.{snake(name)}" if root else snake(name)


def _is_default(value: object) -> bool:
    """Of a field without presence; an empty message is set."""
    return value is None or (not isinstance(value, dict) and not value)


def _bad(path: str, description: str) -> GoogleError:
    violation = {"field": path, "description": description} if path else {"description": description}
    details = {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]}
    return GoogleError(400, description, [details])
