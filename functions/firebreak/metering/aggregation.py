"""An aggregation, whose price its count tells: one read for each thousand index entries."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from google.cloud.firestore_v1.types import RunAggregationQueryRequest, RunAggregationQueryResponse

from firebreak.metering.bounds import bound
from firebreak.metering.counter import ReadMeter
from firebreak.metering.hold import Hold
from firebreak.metering.unsupported import Unsupported

ENTRIES = 1_000
MOST = 5
COUNT = "firebreak_entries"

type Answers = Iterator[RunAggregationQueryResponse]


def aggregate(
    meter: ReadMeter,
    request: RunAggregationQueryRequest,
    send: Callable[[RunAggregationQueryRequest], Iterable[RunAggregationQueryResponse]],
) -> Answers:
    """Run the aggregation over no more entries than the meter allows, and count what it was billed for.

    Raises:
        MeterExceeded: there may be more entries than that.
        Unsupported: it has neither a count nor room for one.
    """
    query = RunAggregationQueryRequest.pb(request).structured_aggregation_query
    alias = _counted(query)
    hold = Hold(meter)
    with hold.lock:
        bounded = bound(query.structured_query, hold, per_read=ENTRIES)
        try:
            answers = list(send(request))
        except BaseException as error:
            hold.fail(error)
            raise
        count = _taken(answers, alias)
        if count is None:
            hold.keep()
            return iter(answers)
        hold.spend(billed(bounded.offset + count))
        hold.end()
        if bounded.cut and count == bounded.limit:
            raise meter.exceed()
    return iter(answers)


def billed(entries: int) -> int:
    """Reads that Firestore bills for aggregating over so many index entries; none is billed as one."""
    return max(1, -(-entries // ENTRIES))


def _counted(query: Any) -> str:  # noqa: ANN401 - a bare StructuredAggregationQuery
    """The alias under which the answer will have a count of the entries: the query's own, or `COUNT`, added."""
    unnamed = 0
    for each in query.aggregations:
        # The server names those without an alias in their order.
        unnamed += not each.alias
        if each.HasField("count") and not each.count.HasField("up_to"):
            return each.alias or f"field_{unnamed}"
    if len(query.aggregations) >= MOST:
        raise Unsupported(f"{MOST} aggregations without a count are not metered: let one of them be count()")
    query.aggregations.add(alias=COUNT).count.SetInParent()
    return COUNT


def _taken(answers: list[RunAggregationQueryResponse], alias: str) -> int | None:
    """The count that the answers hold under `alias`, without which they go on if it was added here."""
    count = None
    for answer in answers:
        fields = RunAggregationQueryResponse.pb(answer).result.aggregate_fields
        if alias in fields:
            count = int(fields[alias].integer_value)
            if alias == COUNT:
                del fields[alias]
    return count
