"""A document's fields, read and changed at their paths: masks and transforms."""

from collections.abc import Iterable
from typing import Any

from tests.twin import values
from tests.twin.clock import timestamp
from tests.twin.errors import invalid
from tests.twin.paths import NAME, Path, field_path
from tests.twin.values import Bare

LEAST, MOST = -(2**63), 2**63 - 1


def at(fields: Any, path: Path) -> Any | None:
    """The value at a path, None where there is none."""
    for step in path[:-1]:
        # Looking at a step that is missing would make it.
        if step not in fields or values.kind(fields[step]) != "map_value":
            return None
        fields = fields[step].map_value.fields
    return fields.get(path[-1])


def put(fields: Any, path: Path, value: Any) -> None:
    """Set the value at a path; what is no map on the way becomes one."""
    for step in path[:-1]:
        if values.kind(fields[step]) != "map_value":
            fields[step].map_value.SetInParent()
        fields = fields[step].map_value.fields
    fields[path[-1]].CopyFrom(value)


def remove(fields: Any, path: Path) -> None:
    """Remove the value at a path, if there is one."""
    for step in path[:-1]:
        if step not in fields or values.kind(fields[step]) != "map_value":
            return
        fields = fields[step].map_value.fields
    fields.pop(path[-1], None)


def overlay(fields: Any, written: Any, mask: Iterable[Path]) -> None:
    """Take over what is written at the mask's paths; where nothing is, nothing stays."""
    for path in mask:
        value = at(written, path)
        if value is None:
            remove(fields, path)
        else:
            put(fields, path, value)


def project(fields: Any, mask: Iterable[Path], into: Any) -> None:
    """Copy what stands at the mask's paths."""
    for path in mask:
        value = None if path == NAME else at(fields, path)
        if value is not None:
            put(into, path, value)


def check_transform(transform: Any) -> None:
    """Refuse a transform that cannot be done.

    Raises:
        InvalidArgument: it has no operation, or one without the operand it needs.
    """
    which = transform.WhichOneof("transform_type")
    if which is None:
        raise invalid("Operation type must be specified for field transformation.")
    operand = getattr(transform, which)
    if which in {"increment", "maximum", "minimum"} and not values.is_number(operand):
        raise invalid("Input must be int64 or double.")
    if which in {"append_missing_elements", "remove_all_from_array"}:
        for each in operand.values:
            values.stored_value(each)


def transformed(fields: Any, transform: Any, *, commit_us: int) -> Any:
    """Do one transform to the fields; returns its result."""
    path, which = field_path(transform.field_path), transform.WhichOneof("transform_type")
    operand, before = getattr(transform, which), at(fields, path)
    if which == "set_to_server_value":
        # The emulator's has whole milliseconds.
        after = result = Bare(timestamp_value=timestamp(commit_us - commit_us % 1_000))
    elif which in {"append_missing_elements", "remove_all_from_array"}:
        change = _union if which == "append_missing_elements" else _without
        after, result = change(before, operand.values), Bare(null_value=0)
    else:
        after = result = _ARITHMETIC[which](before, operand) if _is_number(before) else operand
    # A copy: what stands in the document may change again.
    told = Bare()
    told.CopyFrom(result)
    put(fields, path, after)
    return told


def _is_number(value: Any | None) -> bool:
    return value is not None and values.is_number(value)


def _sum(value: Any, by: Any) -> Any:
    if "double_value" in {values.kind(value), values.kind(by)}:
        return Bare(double_value=float(values.number(value)) + float(values.number(by)))
    return Bare(integer_value=min(MOST, max(LEAST, value.integer_value + by.integer_value)))


def _maximum(value: Any, other: Any) -> Any:
    if values.is_nan(value) or values.is_nan(other):
        return value if values.is_nan(value) else other
    return other if values.number(other) > values.number(value) else value


def _minimum(value: Any, other: Any) -> Any:
    if values.is_nan(value) or values.is_nan(other):
        return value if values.is_nan(value) else other
    return other if values.number(other) < values.number(value) else value


_ARITHMETIC = {"increment": _sum, "maximum": _maximum, "minimum": _minimum}


def _union(value: Any | None, elements: Iterable[Any]) -> Any:
    array = _array(value)
    there = {values.key(each) for each in array.array_value.values}
    for each in elements:
        if values.key(each) not in there:
            there.add(values.key(each))
            array.array_value.values.add().CopyFrom(each)
    return array


def _without(value: Any | None, elements: Iterable[Any]) -> Any:
    gone = {values.key(each) for each in elements}
    array = Bare(array_value={})
    array.array_value.values.extend(each for each in _array(value).array_value.values if values.key(each) not in gone)
    return array


def _array(value: Any | None) -> Any:
    """The array that it is, copied, or an empty one."""
    array = Bare(array_value={})
    if value is not None and values.kind(value) == "array_value":
        array.CopyFrom(value)
    return array
