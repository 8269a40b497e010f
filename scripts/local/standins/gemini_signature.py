"""Thought signatures: the stand-in signs the first call of a turn, and wants it back unchanged, as Gemini 3 does."""

import base64
import hashlib
import json
from binascii import Error
from collections.abc import Iterable, Iterator
from typing import Any

from scripts.local.standins.google import GoogleError

# Real ones are opaque and take up to some kB.
SIGNATURE_BYTES = 1_001
# The service's own word for a call that another model made: it is not verified.
SKIPPED = "skip_thought_signature_validator"
_UNSIGNED = ("gemini-2",)
_URL_SAFE = str.maketrans("-_", "+/")


def sign(part: dict[str, Any]) -> str:
    """The signature of a part: the same for the same name and args, or the same text."""
    said = [part.get("text"), _call(part).get("name"), _call(part).get("args") or {}]
    digest = hashlib.shake_256(json.dumps(said, sort_keys=True).encode()).digest(SIGNATURE_BYTES)
    return base64.b64encode(digest).decode()


def verify(contents: list[dict[str, Any]], model: str) -> None:
    """Check the calls of the current turn: all after the last turn of the user that holds more than responses.

    Raises:
        GoogleError: 400, in the service's words: the first call of a model's turn has no signature, or another one.
    """
    if model.startswith(_UNSIGNED):
        return
    for position, content in _current(contents):
        first = next((part for part in content["parts"] if "functionCall" in part), None)
        if first is not None:
            _verify(first, position)


def _verify(part: dict[str, Any], position: int) -> None:
    given = part.get("thoughtSignature")
    if given is None:
        raise GoogleError(
            400,
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
            "correctly, and missing thought_signature may lead to degraded model performance. Additional data, "
            f"function call `default_api:{_call(part).get('name')}` , position {position}. Please refer to "
            "https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
        )
    if given != SKIPPED and _decoded(given) != _decoded(sign(part)):
        raise GoogleError(400, "Corrupted thought signature.")


def _current(contents: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    begins = max((at for at, content in enumerate(contents) if _asks(content)), default=-1)
    yield from enumerate(contents[begins + 1 :], start=begins + 2)


def _asks(content: dict[str, Any]) -> bool:
    return content.get("role", "user") == "user" and not _all_responses(content["parts"])


def _all_responses(parts: Iterable[dict[str, Any]]) -> bool:
    return all("functionResponse" in part for part in parts)


def _call(part: dict[str, Any]) -> dict[str, Any]:
    call: dict[str, Any] = part.get("functionCall", {})
    return call


def _decoded(signature: str) -> bytes:
    try:
        return base64.b64decode(signature.translate(_URL_SAFE), validate=True)
    except Error:
        raise GoogleError(400, "Invalid value at 'contents' (TYPE_BYTES), Base64 decoding failed") from None
