"""The one way from the SDK's objects to the wire: the RPCs that can be counted and bounded, and no other."""

from collections.abc import Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NoReturn, TypedDict, Unpack

from google.api_core import gapic_v1
from google.cloud.firestore_v1.services.firestore import FirestoreClient
from google.cloud.firestore_v1.types import (
    BatchGetDocumentsRequest,
    BatchGetDocumentsResponse,
    BeginTransactionRequest,
    BeginTransactionResponse,
    CommitRequest,
    CommitResponse,
    Document,
    ListCollectionIdsRequest,
    ListDocumentsRequest,
    RollbackRequest,
    RunAggregationQueryRequest,
    RunQueryRequest,
)

from firebreak.metering import queries
from firebreak.metering.batch import EmptyBatch, Queued
from firebreak.metering.meter import ReadMeter, WriteMeter, current, unsupported
from firebreak.metering.queries import Answers, QueryResults, aggregate
from firebreak.store.outcome import NOT_APPLIED

UNARY_S = 10.0
STREAM_S = 30.0

DEFAULT = gapic_v1.method.DEFAULT

type Metadata = Sequence[tuple[str, str | bytes]]


class Options(TypedDict, total=False):
    """What the SDK's objects pass on from their callers."""

    retry: object | None
    timeout: float | object


class Transport:
    """All that the SDK asks of a transport: whether a query is to run again after an error. It is not."""

    run_query = run_aggregation_query = SimpleNamespace(_retry=SimpleNamespace(_predicate=lambda _error: False))

    def __getattr__(self, name: str) -> NoReturn:
        unsupported(name)


class Api:
    """What the SDK's objects have for `client._firestore_api`: counts what is billed, where it can before it is sent.

    A call is one attempt, under a timeout: each attempt is billed, and those of the client library would go uncounted.
    """

    def __init__(self, wire: FirestoreClient, *, guard: bool) -> None:
        self._wire = wire
        self._guard = guard
        self._transport = Transport()

    def __getattr__(self, name: str) -> NoReturn:
        unsupported(name)

    def reads(self) -> ReadMeter:
        """The meter of reads here and now.

        Raises:
            NoMeter: no request is under way.
        """
        meters = current()
        return meters.guard_reads if self._guard else meters.reads

    def writes(self) -> WriteMeter:
        """The meter of writes here and now.

        Raises:
            NoMeter: no request is under way.
        """
        meters = current()
        return meters.guard_writes if self._guard else meters.writes

    def batch_get_documents(
        self, request: BatchGetDocumentsRequest | dict[str, Any], *, metadata: Metadata = (), **options: Unpack[Options]
    ) -> Iterable[BatchGetDocumentsResponse]:
        """One read for each document asked for, there or not; at least one."""
        once = _once(STREAM_S, **options)
        self.reads().take(len(_field(request, "documents")) or 1)
        return self._wire.batch_get_documents(request, metadata=metadata, **once)

    def run_query(
        self, request: RunQueryRequest | dict[str, Any], *, metadata: Metadata = (), **options: Unpack[Options]
    ) -> QueryResults:
        """One read for each document that comes or is skipped; at least one."""
        once = _once(STREAM_S, **options)
        query = _unexplained(RunQueryRequest(request))
        return QueryResults(self.reads(), query, lambda bound: self._wire.run_query(bound, metadata=metadata, **once))

    def run_aggregation_query(
        self,
        request: RunAggregationQueryRequest | dict[str, Any],
        *,
        metadata: Metadata = (),
        **options: Unpack[Options],
    ) -> Answers:
        """One read for each thousand index entries; at least one."""
        once = _once(STREAM_S, **options)
        query = _unexplained(RunAggregationQueryRequest(request))
        run = self._wire.run_aggregation_query
        return aggregate(self.reads(), query, lambda bound: run(bound, metadata=metadata, **once))

    def list_documents(
        self, request: ListDocumentsRequest | dict[str, Any], *, metadata: Metadata = (), **options: Unpack[Options]
    ) -> Iterator[Document]:
        """One read for each document, those that are missing but have children too; at least one a page."""
        once = _once(UNARY_S, **options)
        fetch = self._wire.list_documents
        return queries.documents(
            self.reads(), ListDocumentsRequest(request), lambda page: next(fetch(page, metadata=metadata, **once).pages)
        )

    def list_collection_ids(
        self, request: ListCollectionIdsRequest | dict[str, Any], *, metadata: Metadata = (), **options: Unpack[Options]
    ) -> Iterator[str]:
        """One read a page."""
        once = _once(UNARY_S, **options)
        fetch = self._wire.list_collection_ids
        return queries.collection_ids(
            self.reads(),
            ListCollectionIdsRequest(request),
            lambda page: next(fetch(page, metadata=metadata, **once).pages),
        )

    def commit(
        self, request: CommitRequest | dict[str, Any], *, metadata: Metadata = (), **options: Unpack[Options]
    ) -> CommitResponse:
        """One write for each; given back only if the answer proves that they were not applied.

        Raises:
            EmptyBatch: there is none, and no transaction that could do without.
        """
        once = _once(UNARY_S, **options)
        meter, writes = self.writes(), _field(request, "writes")
        count = len(writes)
        if not count and not _field(request, "transaction"):
            raise EmptyBatch("a batch needs a write before it is committed")
        uncounted = count - (writes.claim(meter) if isinstance(writes, Queued) else 0)
        meter.check()
        if uncounted:
            meter.take(uncounted)
        try:
            return self._wire.commit(request, metadata=metadata, **once)
        except NOT_APPLIED:
            meter.give_back(count)
            raise

    def begin_transaction(
        self, request: BeginTransactionRequest | dict[str, Any], *, metadata: Metadata = (), **options: Unpack[Options]
    ) -> BeginTransactionResponse:
        """Costs nothing; refused, as all is, once the request has exceeded a meter."""
        self.reads().check()
        return self._wire.begin_transaction(request, metadata=metadata, **_once(UNARY_S, **options))

    def rollback(
        self, request: RollbackRequest | dict[str, Any], *, metadata: Metadata = (), **options: Unpack[Options]
    ) -> None:
        """Costs nothing, and is never refused: what it unlocks, others wait for."""
        self._wire.rollback(request, metadata=metadata, **_once(UNARY_S, **options))


def _once(
    default_s: float, *, retry: object | None = DEFAULT, timeout: float | object | None = DEFAULT
) -> dict[str, Any]:
    if retry is not None and retry is not DEFAULT:
        unsupported("retry")
    return {"retry": None, "timeout": default_s if timeout is None or timeout is DEFAULT else timeout}


def _field(request: Any, name: str) -> Any:  # noqa: ANN401 - of a dict, as the SDK's objects make it, or of a message
    return request.get(name) if isinstance(request, dict) else getattr(request, name)


def _unexplained[R: (RunQueryRequest, RunAggregationQueryRequest)](request: R) -> R:
    if type(request).pb(request).HasField("explain_options"):
        unsupported("explain")
    return request
