"""What the gapic client is to the metered one, on the store in memory; and the network between the two."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from google.cloud.firestore_v1.services.firestore.pagers import ListCollectionIdsPager, ListDocumentsPager
from google.cloud.firestore_v1.types import (
    BatchGetDocumentsRequest,
    BatchGetDocumentsResponse,
    BeginTransactionRequest,
    BeginTransactionResponse,
    CommitRequest,
    CommitResponse,
    ListCollectionIdsRequest,
    ListCollectionIdsResponse,
    ListDocumentsRequest,
    ListDocumentsResponse,
    RollbackRequest,
    RunAggregationQueryRequest,
    RunAggregationQueryResponse,
    RunQueryRequest,
    RunQueryResponse,
)

from firebreak.metering.api import Transport
from tests.twin.errors import NotCovered
from tests.twin.store import Twin


@dataclass(frozen=True, slots=True, kw_only=True)
class Rpc:
    """One call on its way: `apply` does at the store what it asks, whenever and however often it is called."""

    method: str
    request: Any
    timeout_s: float | None
    apply: Callable[[], Any]


type Network = Callable[[Rpc], Any]
"""Asked for every call, answers in place of the store: it calls `rpc.apply` and returns what that returns.

So it can fail a call before or after it is applied, delay it, apply it twice, or keep `apply` for later.
"""


def reliable(rpc: Rpc) -> Any:
    """The network that loses nothing."""
    return rpc.apply()


class Stream:
    """The responses of one streaming call."""

    def __init__(self, responses: Iterator[Any]) -> None:
        self._responses = responses

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._responses)

    def cancel(self) -> None:
        self._responses = iter(())


class Wire:
    """The gapic client's methods, of one client of the store."""

    def __init__(self, twin: Twin, network: Network) -> None:
        self._twin = twin
        self._network = network
        # What the SDK's own client asks for; the metered one has its own.
        self._transport = Transport()

    def __getattr__(self, name: str) -> NoReturn:
        raise NotCovered(name)

    def commit(self, request: Any, **options: Any) -> Any:
        return self._one("Commit", request, options)

    def batch_get_documents(self, request: Any, **options: Any) -> Stream:
        return self._stream("BatchGetDocuments", request, options)

    def run_query(self, request: Any, **options: Any) -> Stream:
        return self._stream("RunQuery", request, options)

    def run_aggregation_query(self, request: Any, **options: Any) -> Stream:
        return self._stream("RunAggregationQuery", request, options)

    def list_documents(self, request: Any, **options: Any) -> Any:
        return self._pages("ListDocuments", ListDocumentsPager, request, options)

    def list_collection_ids(self, request: Any, **options: Any) -> Any:
        return self._pages("ListCollectionIds", ListCollectionIdsPager, request, options)

    def begin_transaction(self, request: Any, **options: Any) -> Any:
        return self._one("BeginTransaction", request, options)

    def rollback(self, request: Any, **options: Any) -> None:
        self._send("Rollback", request, options)

    def _one(self, method: str, request: Any, options: Mapping[str, Any]) -> Any:
        return _TYPES[method].answer.wrap(self._send(method, request, options))

    def _stream(self, method: str, request: Any, options: Mapping[str, Any]) -> Stream:
        return Stream(map(_TYPES[method].answer.wrap, self._send(method, request, options)))

    def _pages(self, method: str, pager: Any, request: Any, options: Mapping[str, Any]) -> Any:
        def page(request: Any, **_: object) -> Any:
            return self._one(method, request, options)

        first = _TYPES[method].request(request)
        return pager(method=page, request=first, response=page(first))

    def _send(self, method: str, request: Any, options: Mapping[str, Any]) -> Any:
        kind = _TYPES[method].request
        # A copy: the caller may change its own before a late one is applied.
        asked = kind.pb(kind(request))
        timeout = options.get("timeout")
        timeout_s = timeout if isinstance(timeout, int | float) else None
        return self._network(
            Rpc(method=method, request=asked, timeout_s=timeout_s, apply=lambda: self._twin.answer(method, asked))
        )


class Types(NamedTuple):
    """What an RPC sends and gets."""

    request: Any
    answer: Any


_TYPES: Mapping[str, Types] = {
    "Commit": Types(CommitRequest, CommitResponse),
    "BatchGetDocuments": Types(BatchGetDocumentsRequest, BatchGetDocumentsResponse),
    "RunQuery": Types(RunQueryRequest, RunQueryResponse),
    "RunAggregationQuery": Types(RunAggregationQueryRequest, RunAggregationQueryResponse),
    "ListDocuments": Types(ListDocumentsRequest, ListDocumentsResponse),
    "ListCollectionIds": Types(ListCollectionIdsRequest, ListCollectionIdsResponse),
    "BeginTransaction": Types(BeginTransactionRequest, BeginTransactionResponse),
    "Rollback": Types(RollbackRequest, None),
}
