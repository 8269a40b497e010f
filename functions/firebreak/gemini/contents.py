"""A conversation as a client sends it: turns and their parts, checked; a part never points elsewhere."""

import base64
import binascii
import json
import re
from collections.abc import Mapping
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
