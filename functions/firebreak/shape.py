"""The shape of a callable request: its headers, checked before anything else, and its body, read after all else."""

import json
import re
from typing import Any, NoReturn

from flask import Request

from firebreak.errors import Malformed
from firebreak.incoming import Incoming

MAX_DEPTH = 64
# Two tokens of 8 KB, and as much again for what browsers and proxies add.
MAX_HEADER_BYTES = 32_768
# How long a client may take to send its body.
BODY_S = 15.0
COMMA = ord(",")
MAX_DIGITS = 20
# Small values take a hundred times their bytes in memory: a body within its size could fill an instance's.
MAX_VALUES = 20_000
WRAPPED = frozenset(f"type.googleapis.com/google.protobuf.{name}" for name in ("Int64Value", "UInt64Value"))
_INTEGER = re.compile(r"-?[0-9]{1,20}")
# A string that never ends is taken whole too: tried again from each of its quotes, it would cost quadratic time.
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_OTHERS = bytes(byte for byte in range(256) if byte not in b"[]{},")


def check(request: Request, *, max_bytes: int) -> None:
    """Check what the headers tell of a request; nothing of its body is read.

    Raises:
        Malformed: method, content type, announced length or headers are not those of a callable request.
    """
    if request.method != "POST":
        raise Malformed("The method must be POST.")
    if request.mimetype != "application/json":
        raise Malformed("The content type must be application/json.")
    if (Incoming.take(request.environ).length or 0) > max_bytes:
        raise _too_long(max_bytes)
    if sum(len(name) + len(value) for name, value in request.headers) > MAX_HEADER_BYTES:
        raise Malformed(f"The headers must be at most {MAX_HEADER_BYTES} bytes in all.")


def read(request: Request, *, max_bytes: int) -> Any:  # noqa: ANN401 - any JSON value
    """The `data` of a callable request, whose headers have been checked.

    Raises:
        Malformed: the body is too long, incomplete, or not that of a callable request; the message tells which.
    """
    body = Incoming.take(request.environ).read(max_bytes=max_bytes, seconds=BODY_S)
    if len(body) > max_bytes:
        raise _too_long(max_bytes)
    envelope = _parse(body)
    if not isinstance(envelope, dict) or envelope.keys() != {"data"}:
        raise Malformed("The body must be a JSON object with the one key data.")
    return _decoded(envelope["data"])


def _too_long(max_bytes: int) -> Malformed:
    return Malformed(f"The body must be at most {max_bytes} bytes.")


def _parse(body: bytes) -> Any:  # noqa: ANN401 - any JSON value
    structure = _STRINGS.sub(b"", body).translate(None, _OTHERS)
    if len(structure) > MAX_VALUES:
        raise Malformed(f"The JSON must not hold more than {MAX_VALUES} values.")
    if _too_deep(structure):
        raise Malformed(f"The JSON must not be nested deeper than {MAX_DEPTH}.")
    try:
        value = json.loads(
            body.decode(), parse_constant=_no_constant, parse_int=_bounded_int, parse_float=_finite_float
        )
        if rb"\u" in body:
            # An escaped lone surrogate parses, and breaks whatever encodes it later.
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeError as error:
        raise Malformed("The body must be valid UTF-8, without lone surrogates.") from error
    except ValueError as error:
        raise Malformed("The body must be valid JSON.") from error
    return value


def _too_deep(structure: bytes) -> bool:
    """Whether brackets and commas are nested deeper than allowed, found without parsing: a parser recurses."""
    depth = 0
    for byte in structure:
        if byte != COMMA:
            depth += 1 if byte in b"[{" else -1
        if depth > MAX_DEPTH:
            return True
    return False


def _decoded(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Unwrap what mobile SDKs wrap: 64-bit integers, which JSON numbers cannot hold."""
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("@type")
    if isinstance(kind, str) and kind in WRAPPED:
        text = value.get("value")
        if not isinstance(text, str) or not _INTEGER.fullmatch(text) or value.keys() != {"@type", "value"}:
            raise Malformed("A 64-bit integer must be wrapped as {@type, value} with its digits as a string.")
        return int(text)
    return {key: _decoded(item) for key, item in value.items()}


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _bounded_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError("integer too long")
    return int(digits)


def _finite_float(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError("number out of range")
    return value
