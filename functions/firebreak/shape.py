"""The shape of a callable request: size, JSON and envelope, checked before anything is verified."""

import json
import re
from contextlib import suppress
from typing import Any

from flask import Request
from werkzeug.exceptions import HTTPException

from firebreak import strict_json
from firebreak.errors import Malformed
from firebreak.patience import at_most

MAX_DEPTH = 64
# The largest body that Cloud Run lets through.
MAX_DISCARDED = 2**25
PIECE = 65_536
# How long a client may take to send its body, and what is left of one that is refused.
BODY_S = 15.0
DISCARD_S = 5.0
# Small values take a hundred times their bytes in memory: a body within its size could fill an instance's.
MAX_VALUES = 20_000
WRAPPED = frozenset(f"type.googleapis.com/google.protobuf.{name}" for name in ("Int64Value", "UInt64Value"))
_INTEGER = re.compile(r"-?[0-9]{1,20}")


def read(request: Request, *, max_bytes: int) -> Any:  # noqa: ANN401 - any JSON value
    """The `data` of a callable request.

    Raises:
        Malformed: method, type, size or JSON is not that of a callable request; the message tells which.
    """
    if request.method != "POST":
        raise Malformed("The method must be POST.")
    if request.mimetype != "application/json":
        raise Malformed("The content type must be application/json.")
    envelope = _parse(_body(request, max_bytes))
    if not isinstance(envelope, dict) or envelope.keys() != {"data"}:
        raise Malformed("The body must be a JSON object with the one key data.")
    return _decoded(envelope["data"])


def discard(request: Request) -> None:
    """Read what is left of a refused body: closing the connection before would reset it, and lose the answer."""
    left = MAX_DISCARDED
    with suppress(HTTPException, OSError), at_most(DISCARD_S, request):
        while left > 0 and (piece := request.stream.read(PIECE)):
            left -= len(piece)


def _body(request: Request, max_bytes: int) -> bytes:
    if (request.content_length or 0) > max_bytes:
        raise Malformed(f"The body must be at most {max_bytes} bytes.")
    try:
        with at_most(BODY_S, request):
            body = request.stream.read(max_bytes + 1)
    except (HTTPException, OSError) as error:
        raise Malformed("The body ended early.") from error
    if len(body) > max_bytes:
        raise Malformed(f"The body must be at most {max_bytes} bytes.")
    return bytes(body)


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
