"""Documents, read and committed in one RPC each, which the client never sends twice.

A commit's writes are bare protobufs: building them through the SDK's wrappers takes as long as the store does. Both
private names are what its own builders use; everything else stays the SDK's.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from google.api_core.exceptions import FailedPrecondition, NotFound
from google.cloud import firestore
from google.cloud.firestore_v1.types import Write, WriteResult
from google.protobuf.timestamp_pb2 import Timestamp

from firebreak.store.outcome import Unreadable

type Snapshot = firestore.DocumentSnapshot[Any]
type Scalar = str | int | datetime
type Value = Scalar | Mapping[str, Value]

_Bare = Write.pb()


def get(document: firestore.DocumentReference, *, timeout_s: float) -> Snapshot:
    """Read one document, there or not.

    Raises:
        Unreadable: there is no database to read from.
        STORE_ERRORS: no answer.
    """
    with _readable():
        return document.get(retry=None, timeout=timeout_s)


def get_all(
    client: firestore.Client, documents: list[firestore.DocumentReference], *, timeout_s: float
) -> list[Snapshot]:
    """Read documents, in any order; raises as `get`."""
    with _readable():
        return list(client.get_all(documents, retry=None, timeout=timeout_s))


def run(query: firestore.Query, *, timeout_s: float) -> list[Snapshot]:
    """Read what a query finds; raises as `get`."""
    with _readable():
        # No retry=None: the SDK breaks on it where an answer breaks off. Metered, nothing is sent again anyway.
        return list(query.get(timeout=timeout_s))


def send(batch: firestore.WriteBatch, *, timeout_s: float) -> list[WriteResult]:
    """Commit once: the client would resend on UNAVAILABLE, and whoever resends must look at the documents first.

    Raises:
        STORE_ERRORS: those of NOT_APPLIED prove that this copy was not applied; after any other it may have been.
    """
    results: list[WriteResult] = batch.commit(retry=None, timeout=timeout_s)
    return results


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (NotFound, FailedPrecondition) as error:
        raise Unreadable from error


def create(batch: firestore.WriteBatch, document: firestore.DocumentReference, fields: Mapping[str, Value]) -> None:
    """Create the document; the commit fails if there is one."""
    write = _write(document, fields)
    write.current_document.exists = False
    batch._add_write_pbs([Write.wrap(write)])  # noqa: SLF001 - see above


def update(
    batch: firestore.WriteBatch,
    document: firestore.DocumentReference,
    fields: Mapping[str, Value],
    *,
    increments: Mapping[str, int] | None = None,
    unchanged: datetime | None = None,
    paths: Iterable[str] | None = None,
) -> None:
    """Change fields and add to others; the commit fails if there is no document, or one changed since `unchanged`.

    `paths` names what changes where it is not whole fields: what lies beside it in a map stays.
    """
    write = _write(document, fields)
    # Without a mask, even an empty one, the fields would replace all others.
    write.update_mask.SetInParent()
    write.update_mask.field_paths.extend(fields if paths is None else paths)
    # In the order of their paths, as the SDK sends them: their sums come back in this order.
    for path, by in sorted((increments or {}).items()):
        write.update_transforms.add(field_path=path).increment.integer_value = by
    if unchanged is None:
        write.current_document.exists = True
    else:
        write.current_document.update_time.CopyFrom(_exactly(unchanged))
    batch._add_write_pbs([Write.wrap(write)])  # noqa: SLF001 - see above


def _exactly(stamp: datetime) -> Timestamp:
    """To the nanosecond where the stamp has them: a precondition that was rounded would never hold."""
    as_read: Callable[[], Timestamp] | None = getattr(stamp, "timestamp_pb", None)
    if as_read is not None:
        return as_read()
    whole = Timestamp()
    whole.FromDatetime(stamp)
    return whole


def _write(document: firestore.DocumentReference, fields: Mapping[str, Value]) -> Any:  # noqa: ANN401 - a bare Write
    write = _Bare()
    write.update.name = document._document_path  # noqa: SLF001 - see above
    _set(write.update.fields, fields)
    return write


def _set(values: Any, fields: Mapping[str, Value]) -> None:  # noqa: ANN401 - a bare map of Values
    for name, value in fields.items():
        if isinstance(value, str):
            values[name].string_value = value
        elif isinstance(value, int):
            values[name].integer_value = value
        elif isinstance(value, datetime):
            values[name].timestamp_value.FromDatetime(value)
        else:
            _set(values[name].map_value.fields, value)
