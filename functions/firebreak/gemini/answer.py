"""The model's answer as it came over the wire: checked, bounded, and kept as it is; no SDK, no I/O.

Decided on the raw JSON, because the SDK's types coerce what they read: `true` becomes 1 token, "8" becomes 8.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from firebreak import strict_json
from firebreak.gemini.prices import NOT_A_COUNT, UNSAID, Usage

# The largest answer that Cloud Run passes on to a client: what is larger could not be returned.
MAX_BYTES = 2**25
MAX_DEPTH = 64
MAX_VALUES = 200_000
# Of one stream: more than one for each token of the longest answer.
MAX_EVENTS = 100_000
# What the API says for "nothing": neither ends an answer.
UNSPECIFIED = ("", "FINISH_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED")
COUNTS = {
    "prompt": "promptTokenCount",
    "output": "candidatesTokenCount",
    "thought": "thoughtsTokenCount",
    "cached": "cachedContentTokenCount",
    "tool": "toolUsePromptTokenCount",
    "total": "totalTokenCount",
}

type Json = Mapping[str, Any]


class NotAnAnswer(ValueError):
    """What came is not an answer of the model. Its message quotes nothing of it."""


class ToldError(NotAnAnswer):
    """The model answered 200, and then told of an error; `code` is its own."""

    def __init__(self, code: int) -> None:
        super().__init__(f"error {code}")
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """An answer, or a piece of one.

    `content` is the model's turn as it came; `finish_reason` and `block_reason` None: none was given; `usage` None:
    it was not told.
    """

    content: Json | None = None
    finish_reason: str | None = None
    block_reason: str | None = None
    model: str | None = None
    usage: Usage | None = None

    @property
    def parts(self) -> Sequence[Json]:
        """The parts of the turn."""
        return [] if self.content is None else self.content.get("parts") or []

    @property
    def text(self) -> str:
        """What the model says; its thoughts are left out."""
        return "".join(part.get("text") or "" for part in self.parts if not part.get("thought"))

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Its function calls, each with what must be sent back with it."""
        return [_call(part) for part in self.parts if part.get("functionCall") is not None]

    @property
    def done(self) -> bool:
        """Whether the model says that its answer ends here."""
        return self.finish_reason is not None or self.block_reason is not None

    @property
    def says_nothing(self) -> bool:
        """Whether neither a part, nor an end, nor usage is in it."""
        return not (self.parts or self.done or self.usage)


def parse(body: bytes) -> Chunk:
    """Read one JSON body, or the data of one event.

    Raises:
        NotAnAnswer: it is not JSON, is too deep, or is not an answer.
    """
    return chunk(value(body))


def value(body: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Parse a body of the model's; lone surrogates, which nothing could encode again, become U+FFFD.

    Raises:
        NotAnAnswer: it is not JSON, too large or too deep, or holds a number that JSON clients cannot read.
    """
    structure = strict_json.structure(body)
    if len(body) > MAX_BYTES or len(structure) > MAX_VALUES or strict_json.deeper(structure, MAX_DEPTH):
        raise NotAnAnswer("too large or too deep")
    try:
        parsed = strict_json.loads(body)
    except ValueError as error:
        raise NotAnAnswer("not JSON") from error
    return _encodable(parsed) if rb"\u" in body else parsed


def chunk(value: object) -> Chunk:
    """Check a parsed body.

    Raises:
        NotAnAnswer: it is not an answer; ToldError: it tells of an error.
    """
    if not isinstance(value, dict):
        raise NotAnAnswer("not an object")
    if value.get("error") is not None:
        raise ToldError(_code(value["error"]))
    candidate = _candidate(value.get("candidates"))
    feedback = _object(value, "promptFeedback")
    usage = _object(value, "usageMetadata")
    return Chunk(
        content=None if candidate is None else _content(candidate),
        finish_reason=None if candidate is None else _reason(candidate, "finishReason"),
        block_reason=None if feedback is None else _reason(feedback, "blockReason"),
        model=_text(value, "modelVersion") or None,
        usage=_usage(usage or {}),
    )


def content(chunks: Iterable[Chunk]) -> dict[str, Any] | None:
    """The model's whole turn, to be sent back as it is; None if it has no part.

    Of one chunk it is as it came. Of several, plain texts that stand together are joined, for pieces of a text mean
    nothing apart; a part with anything beside its text, a signature above all, stays as it is.
    """
    turns = [each.content for each in chunks if each.content is not None]
    parts = list(turns[0].get("parts") or []) if len(turns) == 1 else _joined(part for t in turns for part in _parts(t))
    if not parts:
        return None
    keys = {key: value for turn in turns for key, value in turn.items() if value is not None}
    return {"role": "model", **keys, "parts": parts}


def counted(body: bytes) -> int:
    """The tokens that countTokens tells.

    Raises:
        NotAnAnswer: it tells of none.
    """
    told = value(body)
    count = _count(told.get("totalTokens")) if isinstance(told, dict) else None
    if count is None or count < 1:
        raise NotAnAnswer("no count")
    return count


def bounded(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Pass the pieces of a body on.

    Raises:
        NotAnAnswer: they are more than an answer can be.
    """
    left = MAX_BYTES
    for piece in pieces:
        left -= len(piece)
        if left < 0:
            raise NotAnAnswer("too large")
        yield piece


def events(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The data of each server-sent event.

    Raises:
        NotAnAnswer: a line is not one of an event, or there are more than an answer can have.
    """
    data: list[bytes] = []
    left = MAX_EVENTS
    for line in _lines(pieces):
        if line.startswith(b"data:"):
            data.append(line.removeprefix(b"data:"))
        elif not line and data:
            yield b"\n".join(data)
            data = []
            left -= 1
            if not left:
                raise NotAnAnswer("too many events")
        elif line and not line.startswith((b":", b"event:", b"id:", b"retry:")):
            raise NotAnAnswer("not an event")
    if data:
        yield b"\n".join(data)


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = bytearray()
    for piece in pieces:
        at = len(rest)
        rest += piece
        start = 0
        while (end := rest.find(b"\n", max(start, at))) >= 0:
            yield bytes(rest[start:end]).removesuffix(b"\r")
            start = end + 1
        del rest[:start]
    yield bytes(rest)


def _encodable(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return value


def _candidate(value: object) -> dict[str, Any] | None:
    """The first: one is asked for."""
    if value is not None and not isinstance(value, list):
        raise NotAnAnswer("candidates is not a list")
    if not value:
        return None
    if not isinstance(value[0], dict):
        raise NotAnAnswer("a candidate is not an object")
    return value[0]


def _content(candidate: Json) -> Json | None:
    content = _object(candidate, "content")
    if content is None:
        return None
    _text(content, "role")
    for part in _parts(content):
        _check(part)
    return content


def _parts(content: Json) -> list[Any]:
    parts = content.get("parts")
    if parts is not None and not isinstance(parts, list):
        raise NotAnAnswer("parts is not a list")
    return parts or []


def _check(part: object) -> None:
    """Check what is read of a part; whatever else it holds is passed on unread."""
    if not isinstance(part, dict):
        raise NotAnAnswer("a part is not an object")
    _text(part, "text")
    _text(part, "thoughtSignature")
    call = _object(part, "functionCall")
    if call is not None:
        _text(call, "name")
        _text(call, "id")
        _object(call, "args")


def _call(part: Json) -> dict[str, Any]:
    call = part["functionCall"]
    # Without arguments a call comes without args: protocol buffers leave empty messages out.
    told = {"name": call.get("name") or "", "args": call.get("args") or {}, "id": call.get("id")}
    told["thoughtSignature"] = part.get("thoughtSignature")
    return {key: value for key, value in told.items() if value is not None}


def _joined(parts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    joined: list[dict[str, Any]] = []
    for plain, group in groupby(parts, key=lambda part: part.keys() == {"text"}):
        together = list(group)
        text = "".join(part["text"] or "" for part in together) if plain else ""
        joined += together if not plain else [{"text": text}] if text else []
    return joined


def _object(value: Json, key: str) -> dict[str, Any] | None:
    found = value.get(key)
    if found is not None and not isinstance(found, dict):
        raise NotAnAnswer(f"{key} is not an object")
    return found


def _text(value: Json, key: str) -> str | None:
    found = value.get(key)
    if found is not None and not isinstance(found, str):
        raise NotAnAnswer(f"{key} is not text")
    return found


def _reason(value: Json, key: str) -> str | None:
    found = _text(value, key)
    return None if found in UNSPECIFIED else found


def _usage(told: Json) -> Usage | None:
    usage = Usage(**{kind: _count(told.get(name)) for kind, name in COUNTS.items()})
    return None if usage == UNSAID else usage


def _count(value: object) -> int | None:
    """A count as it was told; one that is not a whole number is kept as one that nobody believes."""
    if value is None:
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else NOT_A_COUNT


def _code(error: object) -> int:
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and not isinstance(code, bool) else 0
