"""A conversation as a client sends it: turns and their parts, checked; no part may point elsewhere."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firebreak.errors import InvalidField

ROLES = ("user", "model")
# What a part of a tool conversation may hold, and nothing else: the API's own types take media and URIs in there too.
CALLS = {"functionCall": {"id", "name", "args"}, "functionResponse": {"id", "name", "response"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A part that is text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inline:
    """A part that is media, sent along."""

    mime_type: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A part of a tool conversation: `kind` is functionCall or functionResponse, `value` its JSON."""

    kind: str
    value: Mapping[str, Any]


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
        InvalidField: it is no conversation, too long, or holds a part that may not be sent; the message names it.
    """
    if not isinstance(value, list) or not value:
        raise InvalidField("contents must be a list of turns, at least one")
    if len(value) > most:
        raise InvalidField(f"contents must hold at most {most} turns")
    checked = tuple(_turn(turn, f"contents[{index}]", media) for index, turn in enumerate(value))
    if checked[-1].role != "user":
        raise InvalidField("contents must end with a turn of the user")
    inline = sum(len(part.data) for turn in checked for part in turn.parts if isinstance(part, Inline))
    if inline > media.most_bytes:
        raise InvalidField(f"contents must hold at most {media.most_bytes} bytes of inlineData together")
    return checked


def text(value: object, name: str) -> str:
    """Check a text that must not be empty."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidField(f"{name} must be text, and not empty")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidField(f"{name} must be valid Unicode: it holds a lone surrogate")
    return value


def as_text(part: Part) -> str:
    """What the model reads as text of a part; media are none."""
    if isinstance(part, Text):
        return part.text
    return json.dumps(part.value, ensure_ascii=False) if isinstance(part, Called) else ""


def _turn(value: object, name: str, media: Media) -> Turn:
    if not isinstance(value, dict) or not value.keys() <= {"role", "parts"}:
        raise InvalidField(f"{name} must be an object with role and parts")
    role, parts = value.get("role", "user"), value.get("parts")
    if role not in ROLES:
        raise InvalidField(f"{name}.role must be one of: {', '.join(ROLES)}")
    if not isinstance(parts, list) or not parts:
        raise InvalidField(f"{name}.parts must be a list, at least one")
    checked = tuple(_part(part, f"{name}.parts[{index}]", media) for index, part in enumerate(parts))
    return Turn(role=str(role), parts=checked)


def _part(value: object, name: str, media: Media) -> Part:
    if not isinstance(value, dict) or len(value) != 1:
        raise InvalidField(f"{name} must be an object with one of: text, inlineData, {', '.join(CALLS)}")
    ((kind, content),) = value.items()
    if kind == "text":
        return Text(text=text(content, f"{name}.text"))
    if kind == "inlineData":
        return _inline(content, f"{name}.inlineData", media)
    if kind in CALLS:
        return _called(kind, content, f"{name}.{kind}")
    # fileData above all: a URI has a size, and a cost, that nobody here has seen.
    raise InvalidField(f"{name} must not be {str(kind)[:40]}: only text, inlineData, {', '.join(CALLS)} are sent")


def _called(kind: str, value: object, name: str) -> Called:
    if not isinstance(value, dict) or not value.keys() <= CALLS[kind] or not isinstance(value.get("name"), str):
        raise InvalidField(f"{name} must be an object with a name, and only: {', '.join(sorted(CALLS[kind]))}")
    if not all(isinstance(value.get(field, {}), dict) for field in ("args", "response")):
        raise InvalidField(f"{name} must hold its args, or its response, as an object")
    return Called(kind=kind, value=value)


def _inline(value: object, name: str, media: Media) -> Inline:
    if not isinstance(value, dict) or value.keys() != {"mimeType", "data"}:
        raise InvalidField(f"{name} must be an object with mimeType and data")
    mime_type, data = value["mimeType"], value["data"]
    if mime_type not in media.types:
        raise InvalidField(f"{name}.mimeType must be one of: {', '.join(media.types)}")
    try:
        return Inline(mime_type=mime_type, data=base64.b64decode(data, validate=True))
    except (TypeError, ValueError, binascii.Error):
        raise InvalidField(f"{name}.data must be base64") from None
