"""Structured queries over documents: filters, orders, cursors, offsets, limits, projections and aggregations."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from google.cloud.firestore_v1.types import Document

from tests.twin import fields, values
from tests.twin.documents import Documents
from tests.twin.errors import NotCovered, invalid
from tests.twin.paths import NAME, Path, field_path
from tests.twin.values import Bare

_Document = Document.pb()

DESCENDING = 2
MOST_IN = 30
LESS, AT_MOST, MORE, AT_LEAST, EQUAL, HAS, IN, HAS_ANY = 1, 2, 3, 4, 5, 7, 8, 9
AND, IS_NAN, IS_NULL = 1, 2, 3

type Match = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Order:
    """What results are sorted by."""

    path: Path
    descending: bool


def found(documents: Documents, parent: str, query: Any) -> list[Any]:
    """The documents that a query finds, in its order, whole.

    Raises:
        InvalidArgument: it is none.
        NotCovered: the twin does not know how.
    """
    if query.offset < 0 or query.limit.value < 0:
        raise invalid("offset or limit is negative")
    matches, orders = _filter(query.where), _orders(query)
    for cursor in (query.start_at, query.end_at):
        _check_cursor(cursor, orders)
    hits = []
    for stored in _candidates(documents, parent, query):
        keys = _keys(stored.document, orders) if matches(stored.document) else None
        if keys is not None:
            hits.append((keys, stored.document))
    for place, order in reversed(list(enumerate(orders))):
        hits.sort(key=lambda hit: hit[0][place], reverse=order.descending)
    found = [document for keys, document in hits if _between(keys, query, orders)][query.offset :]
    return found[: query.limit.value] if query.HasField("limit") else found


def selected(document: Any, query: Any) -> Any:
    """A document as the query's projection shows it."""
    if not query.HasField("select"):
        return document
    shown = _Document(name=document.name, create_time=document.create_time, update_time=document.update_time)
    fields.project(document.fields, [field_path(field.field_path) for field in query.select.fields], shown.fields)
    return shown


def aggregated(documents: Documents, parent: str, asked: Any) -> dict[str, Any]:
    """The results of an aggregation by their aliases.

    Raises:
        InvalidArgument: it is none.
    """
    if not asked.aggregations:
        raise invalid("Aggregations can not be empty.")
    paths = {path for each in asked.aggregations if (path := _summed(each)) is not None}
    # Only what has all the fields that any of them is about.
    hits = [
        hit
        for hit in found(documents, parent, asked.structured_query)
        if all(_value(hit, path) is not None for path in paths)
    ]
    results: dict[str, Any] = {}
    unnamed = 0
    for each in asked.aggregations:
        unnamed += not each.alias
        alias = each.alias or f"field_{unnamed}"
        if alias in results:
            raise invalid(f"Aggregation aliases contain duplicate alias: {alias}.")
        results[alias] = _aggregate(each, hits)
    return results


def _summed(aggregation: Any) -> Path | None:
    which = aggregation.WhichOneof("operator")
    return None if which == "count" else field_path(getattr(aggregation, which).field.field_path)


def _aggregate(aggregation: Any, hits: Sequence[Any]) -> Any:
    path = _summed(aggregation)
    if path is None:
        most = aggregation.count.up_to.value if aggregation.count.HasField("up_to") else len(hits)
        return Bare(integer_value=min(len(hits), most))
    summands = [value for hit in hits if (value := _value(hit, path)) is not None and values.is_number(value)]
    total = sum(values.number(value) for value in summands)
    if aggregation.WhichOneof("operator") == "avg":
        return Bare(double_value=total / len(summands)) if summands else Bare(null_value=0)
    return Bare(integer_value=total) if isinstance(total, int) else Bare(double_value=total)


def _candidates(documents: Documents, parent: str, query: Any) -> Iterable[Any]:
    if len(query.from_) != 1:
        raise NotCovered("a query over more or less than one collection")
    (source,) = query.from_
    if source.all_descendants:
        return documents.group(parent, source.collection_id)
    return documents.collection(f"{parent}/{source.collection_id}")


def _value(document: Any, path: Path) -> Any | None:
    return Bare(reference_value=document.name) if path == NAME else fields.at(document.fields, path)


def _filter(where: Any) -> Match:
    which = where.WhichOneof("filter_type")
    if which is None:
        return lambda _: True
    return _FILTERS[which](getattr(where, which))


def _composite(composite: Any) -> Match:
    if composite.op != AND:
        raise NotCovered("filters of which one is enough")
    parts = [_filter(each) for each in composite.filters]
    return lambda document: all(part(document) for part in parts)


def _unary(unary: Any) -> Match:
    if unary.op not in {IS_NAN, IS_NULL}:
        raise NotCovered("filters for what is not")
    is_so = values.is_nan if unary.op == IS_NAN else values.is_null
    return _at(unary.field, is_so)


def _field(condition: Any) -> Match:
    op, operand = condition.op, condition.value
    if op not in _OPERATORS:
        raise NotCovered("filters for what is not")
    if op in {IN, HAS_ANY}:
        operand = _listed(operand)
    return _at(condition.field, lambda value: _OPERATORS[op](value, operand))


def _at(field: Any, matches: Match) -> Match:
    """A document that has the field, with a value that matches."""
    path = field_path(field.field_path)

    def match(document: Any) -> bool:
        value = _value(document, path)
        return value is not None and matches(value)

    return match


def _listed(operand: Any) -> set[values.Key]:
    """What a list asks for; null and NaN it never finds."""
    listed = operand.array_value.values
    if not 1 <= len(listed) <= MOST_IN:
        raise invalid(f"the filter wants an array of 1 to {MOST_IN} values")
    for each in listed:
        values.stored_value(each)
    return {values.key(each) for each in listed if not (values.is_null(each) or values.is_nan(each))}


_FILTERS = {"composite_filter": _composite, "unary_filter": _unary, "field_filter": _field}


def _ordered(compare: Callable[[values.Key, values.Key], bool]) -> Callable[[Any, Any], bool]:
    def matches(value: Any, operand: Any) -> bool:
        # Only values of one type are less or more than each other, and NaN is neither.
        if values.rank(value) != values.rank(operand) or values.is_nan(value) != values.is_nan(operand):
            return False
        return compare(values.key(value), values.key(operand))

    return matches


def _elements(value: Any) -> set[values.Key]:
    return {values.key(each) for each in value.array_value.values} if values.kind(value) == "array_value" else set()


_OPERATORS: dict[int, Callable[[Any, Any], bool]] = {
    LESS: _ordered(lambda one, other: one < other),
    AT_MOST: _ordered(lambda one, other: one <= other),
    MORE: _ordered(lambda one, other: one > other),
    AT_LEAST: _ordered(lambda one, other: one >= other),
    EQUAL: lambda value, operand: values.key(value) == values.key(operand),
    HAS: lambda value, operand: values.key(operand) in _elements(value),
    IN: lambda value, listed: values.key(value) in listed,
    HAS_ANY: lambda value, listed: not listed.isdisjoint(_elements(value)),
}
RANGES = frozenset({LESS, AT_MOST, MORE, AT_LEAST})


def _orders(query: Any) -> list[Order]:
    """As asked; then what ranges are about, then the name, both in the last direction asked for."""
    orders = [Order(field_path(each.field.field_path), each.direction == DESCENDING) for each in query.order_by]
    descending = bool(orders) and orders[-1].descending
    for path in [*sorted(_ranged(query.where)), NAME]:
        if path not in {order.path for order in orders}:
            orders.append(Order(path, descending))
    return orders


def _ranged(where: Any) -> set[Path]:
    """The fields that ranges are about."""
    which = where.WhichOneof("filter_type")
    if which == "composite_filter":
        return {path for each in where.composite_filter.filters for path in _ranged(each)}
    if which == "field_filter" and where.field_filter.op in RANGES:
        return {field_path(where.field_filter.field.field_path)}
    return set()


def _keys(document: Any, orders: Sequence[Order]) -> list[values.Key] | None:
    """What the document is sorted by; None if it lacks some of that, and so is not found."""
    keys = []
    for order in orders:
        value = _value(document, order.path)
        if value is None:
            return None
        keys.append(values.key(value))
    return keys


def _between(keys: Sequence[values.Key], query: Any, orders: Sequence[Order]) -> bool:
    """Whether it lies between the start cursor and the end cursor."""
    if query.HasField("start_at") and _compared(keys, query.start_at, orders) < (0 if query.start_at.before else 1):
        return False
    return not (query.HasField("end_at") and _compared(keys, query.end_at, orders) > (-1 if query.end_at.before else 0))


def _compared(keys: Sequence[values.Key], cursor: Any, orders: Sequence[Order]) -> int:
    """Below 0 if it comes before the cursor; what only one of them has does not count."""
    for mine, value, order in zip(keys, cursor.values, orders, strict=False):
        other = values.key(value)
        if mine != other:
            return 1 if (mine > other) != order.descending else -1
    return 0


def _check_cursor(cursor: Any, orders: Sequence[Order]) -> None:
    if len(cursor.values) > len(orders):
        raise invalid("a cursor has too many values")
    for value in cursor.values:
        values.stored_value(value)
