"""Fields of the graph's requests: what each may hold; an error names the field's place in the request."""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from firebreak.errors import InvalidField

LABEL_BYTES = 200
PROPERTIES_BYTES = 4_096
PROPERTIES_DEPTH = 5
NAME_BYTES = 100
COORDINATE_MOST = 1e9
INT64 = range(-(2**63), 2**63)
ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
# Firestore keeps names between double underscores to itself, of documents and of fields.
RESERVED = re.compile(r"__.*__", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The fields of one object of a request; `place` is where it stands there, empty for the request itself."""

    place: str
    values: Mapping[str, object]

    def at(self, name: str) -> str:
        """The place of a field, as errors name it."""
        return f"{self.place}.{name}" if self.place else name

    def get[T](self, name: str, parse: Callable[[object, str], T]) -> T | None:
        """A field that may be left out, or be null."""
        value = self.values.get(name)
        return None if value is None else parse(value, self.at(name))

    def need[T](self, name: str, parse: Callable[[object, str], T]) -> T:
        """A field that must be there."""
        if self.values.get(name) is None:
            raise InvalidField(f"{self.at(name)}: must be given")
        return parse(self.values[name], self.at(name))


def fields(value: object, place: str, names: frozenset[str]) -> Fields:
    """An object with no other fields than these.

    Raises:
        InvalidField: it is none; as all of this module do.
    """
    if not isinstance(value, dict):
        raise InvalidField(f"{place or 'data'}: must be an object")
    opened = Fields(place=place, values=value)
    unknown = sorted(str(name)[:40] for name in value.keys() - names)
    if unknown:
        raise InvalidField(f"{opened.at(unknown[0])}: unknown field")
    return opened


def items(value: object, place: str, *, most: int) -> list[object]:
    """A list that is neither empty nor too long."""
    if not isinstance(value, list) or not 1 <= len(value) <= most:
        raise InvalidField(f"{place}: must be a list of 1 to {most}")
    return value


def is_identifier(value: object) -> TypeGuard[str]:
    """Whether a node or an edge can have this id."""
    return isinstance(value, str) and ID.fullmatch(value) is not None and not RESERVED.fullmatch(value)


def identifier(value: object, place: str) -> str:
    """The id of a node or an edge."""
    if not is_identifier(value):
        raise InvalidField(
            f"{place}: must be 1-64 letters, digits, _ or -, and must not start and end with a double underscore"
        )
    return value


def label(value: object, place: str) -> str:
    """A short text."""
    if not isinstance(value, str) or len(_utf8(value, place)) > LABEL_BYTES:
        raise InvalidField(f"{place}: must be a text of at most {LABEL_BYTES} bytes")
    return value


def position(value: object, place: str) -> dict[str, float]:
    """A point of the plane."""
    point = fields(value, place, frozenset({"x", "y"}))
    return {"x": point.need("x", _coordinate), "y": point.need("y", _coordinate)}


def whole(value: object, place: str, *, lowest: int, highest: int) -> int:
    """A whole number; 3.0 is one, as mobile SDKs send it."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise InvalidField(f"{place}: must be a whole number from {lowest} to {highest}")
    return value


def properties(value: object, place: str) -> dict[str, Any]:
    """A map of JSON values that Firestore can hold as it is."""
    if not isinstance(value, dict):
        raise InvalidField(f"{place}: must be an object")
    _storable(value, place, PROPERTIES_DEPTH)
    if len(json.dumps(value, ensure_ascii=False).encode()) > PROPERTIES_BYTES:
        raise InvalidField(f"{place}: must be at most {PROPERTIES_BYTES} bytes as JSON")
    return value


def _coordinate(value: object, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= COORDINATE_MOST:
        raise InvalidField(f"{place}: must be a number from {-COORDINATE_MOST:.0f} to {COORDINATE_MOST:.0f}")
    return float(value)


def _storable(value: object, place: str, depth: int) -> None:
    """Check one value, and those in it; the place stays that of the whole: names inside can be long."""
    if not isinstance(value, dict | list):
        _scalar(value, place)
    elif not depth:
        raise InvalidField(f"{place}: must not be nested deeper than {PROPERTIES_DEPTH}")
    elif isinstance(value, dict):
        for name, inner in value.items():
            _name(name, place)
            _storable(inner, place, depth - 1)
    else:
        for inner in value:
            if isinstance(inner, list):
                raise InvalidField(f"{place}: must hold no list directly in a list, which Firestore has not")
            _storable(inner, place, depth - 1)


def _scalar(value: object, place: str) -> None:
    match value:
        case None | bool():
            return
        case str():
            _utf8(value, place)
        case int() if value not in INT64:
            raise InvalidField(f"{place}: must hold no whole number beyond 64 bits")
        case float() if not math.isfinite(value):
            raise InvalidField(f"{place}: must hold finite numbers only")
        case int() | float():
            return
        case _:
            raise InvalidField(f"{place}: must hold JSON values only")


def _name(name: object, place: str) -> None:
    if not isinstance(name, str) or not 1 <= len(_utf8(name, place)) <= NAME_BYTES or RESERVED.fullmatch(name):
        raise InvalidField(
            f"{place}: names in it must be 1-{NAME_BYTES} bytes, and must not start and end with a double underscore"
        )


def _utf8(text: str, place: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidField(f"{place}: must be valid Unicode, without lone surrogates") from error
