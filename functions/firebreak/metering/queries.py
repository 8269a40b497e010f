"""Queries, aggregations and pages: bounded before they are sent, and counted as their documents come."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any

from google.cloud.firestore_v1.types import (
    Document,
    ListCollectionIdsRequest,
    ListCollectionIdsResponse,
    ListDocumentsRequest,
    ListDocumentsResponse,
    RunAggregationQueryRequest,
    RunAggregationQueryResponse,
    RunQueryRequest,
    RunQueryResponse,
)

from firebreak.metering.meter import ReadMeter, Unsupported, unsupported
from firebreak.store.outcome import NOT_READ


class ReadHold:
    """Whoever sends the request takes `lock` first, and keeps it while the size is being found out."""

    def __init__(self, meter: ReadMeter) -> None:
        self.meter = meter
        self.lock = Lock()
        self.left: int | None = 0
        """What is set aside and not read yet; None if the meter has no limit."""
        self.read = 0

    def open(self, most: int | None, *, least: int = 1) -> int | None:
        """Set aside `most` reads, or what is left but at least `least`; returns how many, None without a limit.

        Raises:
            MeterExceeded: less is left.
        """
        return self.meter.hold(self, most, least=least)

    def spend(self, count: int) -> None:
        """Count what was read.

        Raises:
            MeterExceeded: more than was set aside, which no server that minds the request's limit reads.
        """
        self.read += count
        if self.left is None:
            self.meter.take(count)
        elif count <= self.left:
            self.left -= count
        else:
            self.left = 0
            raise self.meter.exceed()

    def end(self) -> None:
        """The answer is whole: what was not read is given back. The least that is billed is one read."""
        if not self.read:
            self.spend(1)
        self.meter.close(self, self.left or 0)

    def fail(self, error: BaseException) -> None:
        """The answer broke off: unless that proves that nothing was read, all that was set aside stays counted."""
        if isinstance(error, NOT_READ) and not self.read:
            self.end()
        else:
            self.keep()

    def keep(self) -> None:
        """All that was set aside stays counted."""
        self.meter.close(self, 0)

    def settle(self) -> None:
        """Wait until whoever has asked the server has its answer."""
        with self.lock:
            pass


MOST_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """How a query goes out: `offset` results skipped, at most `limit` sent; `cut` if it had asked for more."""

    offset: int
    limit: int | None
    cut: bool


def bound(query: Any, hold: ReadHold, *, per_read: int = 1) -> Bound:  # noqa: ANN401 - a bare StructuredQuery
    """Set aside what `query` can read at most, and limit it to that; `per_read` results are billed as one read.

    Raises:
        MeterExceeded: nothing is left, or no more than it skips.
        Unsupported: a vector search.
    """
    if query.HasField("find_nearest"):
        unsupported("find_nearest")
    asked = query.limit.value if query.HasField("limit") else None
    offset = query.offset
    least = _reads(offset + (1 if asked is None else min(asked, 1)), per_read)
    granted = hold.open(None if asked is None else _reads(offset + asked, per_read), least=least)
    if granted is None:
        return Bound(offset=offset, limit=asked, cut=False)
    limit = min(granted * per_read - offset, MOST_LIMIT)
    if asked is not None and asked <= limit:
        return Bound(offset=offset, limit=asked, cut=False)
    query.limit.value = limit
    return Bound(offset=offset, limit=limit, cut=True)


def _reads(results: int, per_read: int) -> int:
    return max(1, -(-results // per_read))


type Send = Callable[[RunQueryRequest], Any]


class QueryResults(ReadHold):
    """Iterates over the responses; if what it has set aside is wanted elsewhere, it reads on ahead of its consumer.

    Left before its end, the rpc is cancelled with the last reference to this, and all that was set aside stays counted:
    nobody can tell what the server had read by then.
    """

    def __init__(self, meter: ReadMeter, request: RunQueryRequest, send: Send) -> None:
        super().__init__(meter)
        self._ahead: deque[RunQueryResponse] = deque()
        self._ended: BaseException | None = None
        with self.lock:
            self._bound = bound(RunQueryRequest.pb(request).structured_query, self)
            try:
                self._responses = send(request)
            except BaseException as error:
                self.fail(error)
                raise
            if self._bound.offset:
                self.spend(self._bound.offset)

    def __iter__(self) -> Iterator[RunQueryResponse]:
        return self

    def __next__(self) -> RunQueryResponse:
        with self.lock:
            if self._ahead:
                return self._ahead.popleft()
            if self._ended is not None:
                raise self._ended
            return self._receive()

    def settle(self) -> None:
        """Read to the end, or wait until whoever is reading has."""
        with self.lock:
            while self._ended is None:
                try:
                    self._ahead.append(self._receive())
                except Exception:  # noqa: BLE001 - the consumer's: it is raised where that comes to it
                    return

    def _receive(self) -> RunQueryResponse:
        try:
            self.meter.check()
            self._stop_at_bound()
            response: RunQueryResponse = next(self._responses)
            if RunQueryResponse.pb(response).HasField("document"):
                self.spend(1)
        except StopIteration as end:
            self._ended = end
            self.end()
            raise
        except BaseException as error:
            self._responses.cancel()
            self.fail(error)
            raise
        return response

    def _stop_at_bound(self) -> None:
        if self._bound.cut and not self.left:
            raise self.meter.exceed()

    def fail(self, error: BaseException) -> None:
        self._ended = error
        super().fail(error)


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
    hold = ReadHold(meter)
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


# Documents of one page where the caller does not say.
PAGE = 300


def documents(
    meter: ReadMeter, request: ListDocumentsRequest, send: Callable[[ListDocumentsRequest], ListDocumentsResponse]
) -> Iterator[Document]:
    """The documents of all pages; no page is larger than what the meter allows."""
    size = request.page_size or PAGE
    while True:
        page = _page(meter, request, size, send)
        yield from page.documents
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def collection_ids(
    meter: ReadMeter,
    request: ListCollectionIdsRequest,
    send: Callable[[ListCollectionIdsRequest], ListCollectionIdsResponse],
) -> Iterator[str]:
    """The ids of all pages, each of which is billed as one read."""
    while True:
        meter.take()
        page = send(request)
        yield from page.collection_ids
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def _page(
    meter: ReadMeter,
    request: ListDocumentsRequest,
    size: int,
    send: Callable[[ListDocumentsRequest], ListDocumentsResponse],
) -> ListDocumentsResponse:
    hold = ReadHold(meter)
    with hold.lock:
        request.page_size = hold.open(size) or size
        try:
            page = send(request)
        except BaseException as error:
            hold.fail(error)
            raise
        if page.documents:
            hold.spend(len(page.documents))
        hold.end()
    return page
