"""A conversation and its tools as a client sends them, checked; a part never points elsewhere."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from firebreak.errors import InvalidField

USER, MODEL = ROLES = ("user", "model")
# What a part of a tool conversation may hold, and nothing else: the API's own types take media and URIs in there too.
CALLS = {"functionCall": {"id", "name", "args"}, "functionResponse": {"id", "name", "response"}}
KINDS = ("text", "inlineData", *CALLS)
# What the model writes beside a part, and wants back unchanged.
NOTES = ("thought", "thoughtSignature")
# As many as the largest MAX_TURNS: a conversation within it fits, one part a turn.
MAX_PARTS = 1000
MAX_SIGNATURE_BYTES = 65_536
MAX_ID_BYTES = 256
SIGNATURE = re.compile(r"(?:[A-Za-z0-9+/]+|[A-Za-z0-9_-]+)={0,2}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A part that is text; a `thought` is the model's. `signature` is the model's note to itself, in base64."""

    text: str
    thought: bool = False
    signature: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inline:
    """A part that is media, sent along."""

    mime_type: str
    data: bytes
    thought: bool = False
    signature: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A part of a tool conversation: `kind` is functionCall or functionResponse, `value` its JSON."""

    kind: str
    value: Mapping[str, Any]
    thought: bool = False
    signature: str | None = None


type Part = Text | Inline | Called


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One entry of a conversation."""

    role: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """What media may be sent: MIME types, and bytes of one call together."""

    types: tuple[str, ...]
    most_bytes: int


NO_MEDIA = Media(types=(), most_bytes=0)


def turns(value: object, *, most: int, media: Media) -> tuple[Turn, ...]:
    """Check `contents`.

    Raises:
        InvalidField: it is not a conversation, is too long, or holds a part that may not be sent; the message names it.
    """
    if not isinstance(value, list) or not value:
        raise InvalidField("contents must be a list of turns, at least one")
    if len(value) > most:
        raise InvalidField(f"contents must hold at most {most} turns")
    if sum(_parts(turn) for turn in value) > MAX_PARTS:
        raise InvalidField(f"contents must hold at most {MAX_PARTS} parts; join neighbouring texts")
    checked = tuple(_turn(turn, f"contents[{index}]", media) for index, turn in enumerate(value))
    if checked[-1].role != USER:
        raise InvalidField("contents must end with a turn of the user: its text, or the functionResponse of each call")
    inline = sum(len(part.data) for turn in checked for part in turn.parts if isinstance(part, Inline))
    if inline > media.most_bytes:
        raise InvalidField(f"contents must hold at most {media.most_bytes} bytes of inlineData together")
    return checked


def text(value: object, name: str) -> str:
    """Check a text that must not be empty."""
    checked = encodable(value, name)
    if not checked.strip():
        raise InvalidField(f"{name} must be text, and not empty")
    return checked


def encodable(value: object, name: str) -> str:
    """Check a text that may be empty."""
    if not isinstance(value, str):
        raise InvalidField(f"{name} must be text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidField(f"{name} must be valid Unicode: it holds a lone surrogate") from None
    return value


def as_text(part: Part) -> str:
    """What the model reads as text of a part, its signature included; media are none."""
    return _said(part) + (part.signature or "")


def _said(part: Part) -> str:
    if isinstance(part, Text):
        return part.text
    return json.dumps(part.value, ensure_ascii=False) if isinstance(part, Called) else ""


def _parts(turn: object) -> int:
    parts = turn.get("parts") if isinstance(turn, dict) else None
    return len(parts) if isinstance(parts, list) else 0


def _turn(value: object, name: str, media: Media) -> Turn:
    if not isinstance(value, dict) or not value.keys() <= {"role", "parts"}:
        raise InvalidField(f"{name} must be an object with role and parts")
    role, parts = value.get("role", USER), value.get("parts")
    if role not in ROLES:
        raise InvalidField(f"{name}.role must be one of: {', '.join(ROLES)}")
    if not isinstance(parts, list) or not parts:
        raise InvalidField(f"{name}.parts must be a list, at least one")
    checked = tuple(_part(part, f"{name}.parts[{index}]", str(role), media) for index, part in enumerate(parts))
    return Turn(role=str(role), parts=checked)


def _part(value: object, name: str, role: str, media: Media) -> Part:
    kinds = sorted(value.keys() - {*NOTES}) if isinstance(value, dict) else []
    if not isinstance(value, dict) or len(kinds) != 1:
        raise InvalidField(
            f"{name} must be an object with one of {', '.join(KINDS)}; "
            f"in a turn of the model also {' and '.join(NOTES)}"
        )
    (kind,) = kinds
    if kind not in KINDS:
        # fileData above all: a URI has a size, and a cost, that nobody here has seen.
        raise InvalidField(f"{name} must not be {str(kind)[:40]}: only {', '.join(KINDS)} can be sent")
    notes = _notes(value, name, role)
    content, name = value[kind], f"{name}.{kind}"
    if kind == "text":
        # A model signs empty texts, and may write a lone line break; a user's empty text is a mistake.
        return Text(text=(encodable if role == MODEL else text)(content, name), **notes)
    if kind == "inlineData":
        return _inline(content, name, media, notes)
    return Called(kind=kind, value=_called(kind, content, name), **notes)


def _notes(value: Mapping[str, object], name: str, role: str) -> dict[str, Any]:
    noted = [note for note in NOTES if note in value]
    if noted and role != MODEL:
        raise InvalidField(f"{name} must not hold {noted[0]}: only turns of the model do, sent back as they came")
    thought = value.get("thought", False)
    if not isinstance(thought, bool):
        raise InvalidField(f"{name}.thought must be true or false")
    signature = value.get("thoughtSignature")
    return {"thought": thought, "signature": None if signature is None else _signature(signature, name)}


def _signature(value: object, name: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_SIGNATURE_BYTES:
        raise InvalidField(f"{name}.thoughtSignature must be base64 of at most {MAX_SIGNATURE_BYTES} bytes")
    if not SIGNATURE.fullmatch(value) or len(value.rstrip("=")) % 4 == 1 or ("=" in value and len(value) % 4):
        raise InvalidField(f"{name}.thoughtSignature must be base64, as it came with the answer")
    return value


def _called(kind: str, value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict) or not value.keys() <= CALLS[kind] or not isinstance(value.get("name"), str):
        raise InvalidField(f"{name} must be an object with a name, and only: {', '.join(sorted(CALLS[kind]))}")
    if not all(isinstance(value.get(field, {}), dict) for field in ("args", "response")):
        raise InvalidField(f"{name} must hold its args, or its response, as an object")
    for field in ("id", "name"):
        if len(encodable(value.get(field, ""), f"{name}.{field}").encode()) > MAX_ID_BYTES:
            raise InvalidField(f"{name}.{field} must be at most {MAX_ID_BYTES} bytes")
    return value


def _inline(value: object, name: str, media: Media, notes: Mapping[str, Any]) -> Inline:
    if not isinstance(value, dict) or value.keys() != {"mimeType", "data"}:
        raise InvalidField(f"{name} must be an object with mimeType and data")
    mime_type, data = value["mimeType"], value["data"]
    if mime_type not in media.types:
        raise InvalidField(f"{name}.mimeType must be one of: {', '.join(media.types)}")
    try:
        return Inline(mime_type=mime_type, data=base64.b64decode(data, validate=True), **notes)
    except (TypeError, ValueError, binascii.Error):
        raise InvalidField(f"{name}.data must be base64") from None


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
