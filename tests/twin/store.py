"""The store itself: what each RPC does to documents in memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

from google.api_core.exceptions import Aborted
from google.cloud.firestore_v1.types import (
    BatchGetDocumentsResponse,
    BeginTransactionResponse,
    CommitResponse,
    Document,
    ListCollectionIdsResponse,
    ListDocumentsResponse,
    RunAggregationQueryResponse,
    RunQueryResponse,
)

from tests.twin import commits, fields, queries
from tests.twin.clock import timestamp
from tests.twin.documents import Documents
from tests.twin.errors import NotCovered, invalid, refused
from tests.twin.paths import document_name, field_path, is_root

PAGE = 300
_AFTER = "after "


@dataclass(slots=True)
class Transaction:
    """What a transaction has read, by name, with the update times it saw."""

    writes: bool
    seen: dict[str, int] = field(default_factory=dict)


class Twin:
    """Firestore in memory, at the times that `now_us` tells: microseconds since the epoch, never back."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._documents = Documents()
        self._transactions: dict[bytes, Transaction] = {}
        self._begun = 0
        self._last_us = 0
        self._lock = RLock()

    def answer(self, method: str, request: Any) -> Any:
        """Do what an RPC asks, at once and as a whole; returns its bare response, a list of them for a stream."""
        with self._lock:
            return _WORK[method](self, request)

    def expire(self, policies: Mapping[str, str]) -> list[str]:
        """Delete what TTL policies, a field by collection group, let go by now; returns the names."""
        with self._lock:
            names = self._documents.expired(policies, self._now_us())
            for name in names:
                self._documents.put(name, None)
            return names

    def _commit(self, request: Any) -> Any:
        transaction = self._end(request.transaction) if request.transaction else None
        if transaction is not None:
            self._check(transaction, request)
        if not request.writes:
            return CommitResponse.pb()()
        # Later than all that was read and written, so that every time is that of one commit.
        us = max(self._now_us(), self._last_us + 1)
        response = commits.commit(self._documents, request.writes, us)
        self._last_us = us
        return response

    def _end(self, transaction_id: bytes) -> Transaction:
        transaction = self._transactions.pop(transaction_id, None)
        if transaction is None:
            raise invalid("Transaction is invalid or closed.")
        return transaction

    def _check(self, transaction: Transaction, request: Any) -> None:
        if request.writes and not transaction.writes:
            raise invalid("Cannot modify entities in a read-only transaction.")
        if transaction.writes and any(self._version(name) != us for name, us in transaction.seen.items()):
            raise refused(Aborted, "Too much contention on these documents. Please try again.")

    def _version(self, name: str) -> int:
        stored = self._documents.get(name)
        return 0 if stored is None else stored.updated_us

    def _read_time(self) -> Any:
        self._last_us = max(self._now_us(), self._last_us)
        return timestamp(self._last_us)

    def _seen(self, request: Any, names: Sequence[str]) -> None:
        """Note in the request's transaction, if it has one, what is read."""
        if request.WhichOneof("consistency_selector") not in {None, "transaction"}:
            raise NotCovered("a read in the past, or one that begins a transaction")
        if request.transaction:
            transaction = self._transactions.get(request.transaction)
            if transaction is None:
                raise invalid("Transaction is invalid or closed.")
            for name in names:
                transaction.seen.setdefault(name, self._version(name))

    def _batch_get_documents(self, request: Any) -> list[Any]:
        # Each is answered once, however often it was asked for.
        names = list(dict.fromkeys(request.documents))
        for name in names:
            document_name(name)
        self._seen(request, names)
        mask, read_time = _mask(request), self._read_time()
        return [self._got(name, mask, read_time) for name in names]

    def _got(self, name: str, mask: Sequence[Any] | None, read_time: Any) -> Any:
        stored = self._documents.get(name)
        if stored is None:
            return BatchGetDocumentsResponse.pb()(missing=name, read_time=read_time)
        return BatchGetDocumentsResponse.pb()(found=_masked(stored.document, mask), read_time=read_time)

    def _run_query(self, request: Any) -> list[Any]:
        _check_parent(request.parent)
        hits = queries.found(self._documents, request.parent, request.structured_query)
        self._seen(request, [hit.name for hit in hits])
        response, read_time = RunQueryResponse.pb(), self._read_time()
        shown = [queries.selected(hit, request.structured_query) for hit in hits]
        responses = [response(document=document, read_time=read_time) for document in shown]
        responses = responses or [response(read_time=read_time)]
        responses[-1].done = True
        return responses

    def _run_aggregation_query(self, request: Any) -> list[Any]:
        _check_parent(request.parent)
        self._seen(request, [])
        results = queries.aggregated(self._documents, request.parent, request.structured_aggregation_query)
        response = RunAggregationQueryResponse.pb()(read_time=self._read_time())
        for alias, value in results.items():
            response.result.aggregate_fields[alias].CopyFrom(value)
        return [response]

    def _list_documents(self, request: Any) -> Any:
        _check_parent(request.parent)
        self._seen(request, [])
        collection = f"{request.parent}/{request.collection_id}"
        if not request.collection_id or request.order_by:
            raise NotCovered("a list over all collections, or in another order than that of names")
        there = {stored.document.name: stored.document for stored in self._documents.collection(collection)}
        missing = self._documents.missing(collection) if request.show_missing else set()
        names, token = _page(sorted(there.keys() | missing, key=document_name), request)
        shown = [_masked(there[name], _mask(request)) if name in there else Document.pb()(name=name) for name in names]
        return ListDocumentsResponse.pb()(documents=shown, next_page_token=token)

    def _list_collection_ids(self, request: Any) -> Any:
        _check_parent(request.parent)
        names, token = _page(self._documents.collection_ids(request.parent), request)
        return ListCollectionIdsResponse.pb()(collection_ids=names, next_page_token=token)

    def _begin_transaction(self, request: Any) -> Any:
        self._begun += 1
        transaction_id = self._begun.to_bytes(8)
        self._transactions[transaction_id] = Transaction(writes=not request.options.HasField("read_only"))
        return BeginTransactionResponse.pb()(transaction=transaction_id)

    def _rollback(self, request: Any) -> None:
        self._transactions.pop(request.transaction, None)


_WORK: Mapping[str, Callable[[Twin, Any], Any]] = {
    "Commit": Twin._commit,
    "BatchGetDocuments": Twin._batch_get_documents,
    "RunQuery": Twin._run_query,
    "RunAggregationQuery": Twin._run_aggregation_query,
    "ListDocuments": Twin._list_documents,
    "ListCollectionIds": Twin._list_collection_ids,
    "BeginTransaction": Twin._begin_transaction,
    "Rollback": Twin._rollback,
}


def _check_parent(name: str) -> None:
    if not is_root(tuple(name.split("/"))):
        document_name(name)


def _mask(request: Any) -> list[Any] | None:
    return [field_path(path) for path in request.mask.field_paths] if request.HasField("mask") else None


def _masked(document: Any, mask: Sequence[Any] | None) -> Any:
    if mask is None:
        return document
    shown = Document.pb()(name=document.name, create_time=document.create_time, update_time=document.update_time)
    fields.project(document.fields, mask, shown.fields)
    return shown


def _page(names: Sequence[str], request: Any) -> tuple[Sequence[str], str]:
    """The names of one page, and the token of the next: where this one ends."""
    if request.page_size < 0:
        raise invalid("Page size must be nonnegative.")
    if not request.page_token.startswith(_AFTER if request.page_token else ""):
        raise invalid("invalid page token")
    after = request.page_token.removeprefix(_AFTER).split("/")
    rest = [name for name in names if not request.page_token or name.split("/") > after]
    shown = rest[: request.page_size or PAGE]
    return shown, _AFTER + shown[-1] if len(shown) < len(rest) else ""
