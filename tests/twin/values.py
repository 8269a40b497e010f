"""A document's values: which there are, and their order over all types."""

import math
from collections.abc import Mapping
from typing import Any

from google.cloud.firestore_v1.types import Value

from tests.twin.errors import invalid
from tests.twin.paths import check_field, document_name

type Key = tuple[Any, ...]

MOST_DEPTH = 20
MOST_BYTES = 1_048_487
FIRST_S, LAST_S = -62_135_596_800, 253_402_300_799

Bare: Any = Value.pb()


def kind(value: Any) -> str:
    """The name of the type that is set, "" for none."""
    return value.WhichOneof("value_type") or ""


def is_number(value: Any) -> bool:
    return kind(value) in {"integer_value", "double_value"}


def number(value: Any) -> int | float:
    """What a number's value is."""
    found: int | float = getattr(value, kind(value))
    return found


def is_null(value: Any) -> bool:
    return kind(value) == "null_value"


def is_nan(value: Any) -> bool:
    return kind(value) == "double_value" and math.isnan(value.double_value)


def stored(fields: Any, *, depth: int = 0) -> None:
    """Make the fields, or a map's, what is stored of them: whole microseconds.

    Raises:
        InvalidArgument: they cannot be stored.
    """
    for name, value in fields.items():
        check_field(name)
        stored_value(value, depth=depth)


def stored_value(value: Any, *, depth: int = 0) -> None:
    """As `stored`, for one value."""
    which = kind(value)
    if which == "map_value":
        if depth >= MOST_DEPTH:
            raise invalid("Property contains an invalid nested entity.")
        stored(value.map_value.fields, depth=depth + 1)
    elif which == "array_value":
        for each in value.array_value.values:
            if kind(each) == "array_value":
                raise invalid("Cannot convert an array value in an array value.")
            stored_value(each, depth=depth)
    elif not which:
        raise invalid("Cannot convert firestore.v1.Value with type unset.")
    elif which in _CHECKS:
        _CHECKS[which](getattr(value, which))


def _timestamp(stamp: Any) -> None:
    if not FIRST_S <= stamp.seconds <= LAST_S:
        raise invalid("Timestamp seconds exceeds limit for field.")
    if not 0 <= stamp.nanos < 1_000_000_000:
        raise invalid("Timestamp nanos exceeds limit for field.")
    stamp.nanos -= stamp.nanos % 1_000


def _geo_point(point: Any) -> None:
    if not (-90 <= point.latitude <= 90 and -180 <= point.longitude <= 180):
        raise invalid("Geo point outside permitted range.")


def _size(text: str | bytes) -> None:
    if len(text.encode() if isinstance(text, str) else text) > MOST_BYTES:
        raise invalid(f"The value of a property is longer than {MOST_BYTES} bytes.")


_CHECKS: Mapping[str, Any] = {
    "timestamp_value": _timestamp,
    "geo_point_value": _geo_point,
    "string_value": _size,
    "bytes_value": _size,
    "reference_value": document_name,
}


def rank(value: Any) -> int:
    """The place of its type in the order of types."""
    return _ORDER[kind(value)][0]


def key(value: Any) -> Key:
    """Sorts values of all types as the store does; equal for values that it takes for equal, such as 1 and 1.0."""
    which = kind(value)
    place, inner = _ORDER[which]
    return (place, *inner(getattr(value, which)))


def _map(value: Any) -> Key:
    return tuple((name, key(value.fields[name])) for name in sorted(value.fields))


_ORDER: Mapping[str, tuple[int, Any]] = {
    "null_value": (0, lambda _: ()),
    "boolean_value": (1, lambda truth: (truth,)),
    "integer_value": (2, lambda whole: (1, whole)),
    "double_value": (2, lambda double: (0,) if math.isnan(double) else (1, double)),
    "timestamp_value": (3, lambda stamp: (stamp.seconds, stamp.nanos)),
    "string_value": (4, lambda text: (text,)),
    "bytes_value": (5, lambda raw: (raw,)),
    "reference_value": (6, lambda name: (tuple(name.split("/")),)),
    "geo_point_value": (7, lambda point: (point.latitude, point.longitude)),
    "array_value": (8, lambda array: tuple(key(each) for each in array.values)),
    "map_value": (9, _map),
}
