"""JSON from outside: its nesting is bounded before it is parsed, its numbers while it is, its text can be encoded."""

import json
import re
from typing import Any, NoReturn

COMMA = ord(",")
MAX_DIGITS = 20
# A string that never ends is taken whole too: tried again from each of its quotes, it would cost quadratic time.
_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_OTHERS = bytes(byte for byte in range(256) if byte not in b"[]{},")


def structure(body: bytes) -> bytes:
    """The brackets and commas of a JSON text: each stands for a value at most."""
    return _STRINGS.sub(b"", body).translate(None, _OTHERS)


def deeper(structure: bytes, most: int) -> bool:
    """Whether brackets are nested deeper than `most`, found without parsing: a parser recurses."""
    depth = 0
    for byte in structure:
        if byte != COMMA:
            depth += 1 if byte in b"[{" else -1
        if depth > most:
            return True
    return False


def loads(body: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Parse JSON whose numbers are finite and short.

    Raises:
        ValueError: it is not JSON, or not UTF-8, or a number is neither.
    """
    return json.loads(body.decode(), parse_constant=_no_constant, parse_int=_bounded_int, parse_float=_finite_float)


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
