"""The shape of a callable request: its headers, checked before anything else, and its body, read after all else."""

import json
import re
from typing import Any

from flask import Request

from firebreak import strict_json
from firebreak.errors import Malformed
from firebreak.guard.incoming import Incoming

MAX_DEPTH = 64
# Two tokens of 8 KB, and as much again for what browsers and proxies add.
MAX_HEADER_BYTES = 32_768
# How long a client may take to send its body.
BODY_S = 15.0
# Small values take a hundred times their bytes in memory: a body within its size could fill an instance's.
MAX_VALUES = 20_000
WRAPPED = frozenset(f"type.googleapis.com/google.protobuf.{name}" for name in ("Int64Value", "UInt64Value"))
_INTEGER = re.compile(r"-?[0-9]{1,20}")


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
    structure = strict_json.structure(body)
    if len(structure) > MAX_VALUES:
        raise Malformed(f"The JSON must not hold more than {MAX_VALUES} values.")
    if strict_json.deeper(structure, MAX_DEPTH):
        raise Malformed(f"The JSON must not be nested deeper than {MAX_DEPTH}.")
    try:
        value = strict_json.loads(body)
        if rb"\u" in body:
            # An escaped lone surrogate parses, and breaks whatever encodes it later.
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeError as error:
        raise Malformed("The body must be valid UTF-8, without lone surrogates.") from error
    except ValueError as error:
        raise Malformed("The body must be valid JSON.") from error
    return value


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
