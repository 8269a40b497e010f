"""What a client may ask of `generate`: its fields, checked and made plain."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from firebreak.errors import InvalidField

REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
ROLES = ("user", "model")
FIELDS = frozenset({"prompt", "contents", "model", "system", "maxOutputTokens", "temperature", "requestId"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One entry of a conversation."""

    role: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A checked request; all of it is sent to the model."""

    model: str
    turns: tuple[Turn, ...]
    system: str | None
    max_output_tokens: int
    temperature: float | None
    candidates: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What the owner of the backend allows and adds: model names, the first is the default; sizes; system text."""

    models: tuple[str, ...]
    max_output_tokens: int
    default_output_tokens: int
    max_prompt_bytes: int
    system: str = ""
    allow_client_system: bool = False


def parse(data: object, bounds: Bounds) -> Request:
    """Check the `data` of a call.

    Raises:
        InvalidField: a field is unknown, missing, of the wrong type or out of range; the message names it.
    """
    if not isinstance(data, dict):
        raise InvalidField("data must be an object")
    unknown = sorted(str(key)[:40] for key in data.keys() - FIELDS)
    if unknown:
        raise InvalidField(f"unknown field: {unknown[0]}")
    request = Request(
        model=_model(data.get("model"), bounds),
        turns=_turns(data),
        system=_system(data.get("system"), bounds),
        max_output_tokens=_max_output_tokens(data.get("maxOutputTokens"), bounds),
        temperature=_temperature(data.get("temperature")),
    )
    if prompt_bytes(request) > bounds.max_prompt_bytes:
        raise InvalidField(f"prompt, contents and system must be at most {bounds.max_prompt_bytes} bytes together")
    return request


def request_id(data: object) -> str | None:
    """The client's idempotency key, if it sent one; its form is checked.

    Raises:
        InvalidField: it is not 1 to 64 characters of A-Z, a-z, 0-9, `_` and `-`.
    """
    value = data.get("requestId") if isinstance(data, Mapping) else None
    if value is None:
        return None
    if not isinstance(value, str) or not REQUEST_ID.fullmatch(value):
        raise InvalidField("requestId must be 1 to 64 characters of A-Z, a-z, 0-9, _ and -")
    return value


def prompt_bytes(request: Request) -> int:
    """UTF-8 bytes of everything the model reads."""
    texts = [text for turn in request.turns for text in turn.texts]
    return sum(len(text.encode()) for text in [*texts, request.system or ""])


def _model(value: object, bounds: Bounds) -> str:
    if value is None:
        return bounds.models[0]
    if not isinstance(value, str) or value not in bounds.models:
        raise InvalidField(f"model must be one of: {', '.join(bounds.models)}")
    return value


def _system(value: object, bounds: Bounds) -> str | None:
    if value is None:
        return bounds.system or None
    if not bounds.allow_client_system:
        raise InvalidField("system may not be sent: the owner of the backend sets it")
    return "\n\n".join(text for text in (bounds.system, _text(value, "system")) if text)


def _turns(data: Mapping[str, object]) -> tuple[Turn, ...]:
    prompt, contents = data.get("prompt"), data.get("contents")
    if (prompt is None) == (contents is None):
        raise InvalidField("exactly one of prompt and contents must be given")
    if contents is None:
        return (Turn(role="user", texts=(_text(prompt, "prompt"),)),)
    if not isinstance(contents, list) or not contents:
        raise InvalidField("contents must be a list of turns, at least one")
    turns = tuple(_turn(turn, f"contents[{index}]") for index, turn in enumerate(contents))
    if turns[-1].role != "user":
        raise InvalidField("contents must end with a turn of the user")
    return turns


def _turn(value: object, name: str) -> Turn:
    if not isinstance(value, dict) or not value.keys() <= {"role", "parts"}:
        raise InvalidField(f"{name} must be an object with role and parts")
    role, parts = value.get("role", "user"), value.get("parts")
    if role not in ROLES:
        raise InvalidField(f"{name}.role must be one of: {', '.join(ROLES)}")
    if not isinstance(parts, list) or not parts:
        raise InvalidField(f"{name}.parts must be a list, at least one")
    texts = []
    for index, part in enumerate(parts):
        if not isinstance(part, dict) or part.keys() != {"text"}:
            raise InvalidField(f"{name}.parts[{index}] must be an object with text alone")
        texts.append(_text(part["text"], f"{name}.parts[{index}].text"))
    return Turn(role=str(role), texts=tuple(texts))


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidField(f"{name} must be text, and not empty")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidField(f"{name} must be valid Unicode: it holds a lone surrogate")
    return value


def _max_output_tokens(value: object, bounds: Bounds) -> int:
    if value is None:
        return bounds.default_output_tokens
    if isinstance(value, float) and isfinite(value) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= bounds.max_output_tokens:
        raise InvalidField(f"maxOutputTokens must be a whole number from 1 to {bounds.max_output_tokens}")
    return value


def _temperature(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 2:
        raise InvalidField("temperature must be a number from 0 to 2")
    return float(value)
