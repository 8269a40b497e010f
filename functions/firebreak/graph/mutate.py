"""The `mutate` callable: a list of operations on the caller's own graph, done all together or not at all.

The one thing that may be done before the rest is to delete the edges of nodes that the list deletes: those that do not
fit into one commit go first, page by page, and the nodes last, so that no edge ever lacks an end.
"""

import secrets
from collections.abc import Callable
from typing import Any

from google.cloud import firestore

from firebreak.bucket.answers import PERMANENT, STORE_ERRORS, Unreadable, out_of_time, unavailable
from firebreak.bucket.tries import Clock, Tries
from firebreak.errors import InvalidField, Refused
from firebreak.graph.documents import UNREACHABLE
from firebreak.graph.draft import Draft
from firebreak.graph.mutation import Mutation
from firebreak.graph.operations import Operation, parse
from firebreak.graph.sweep import sweep
from firebreak.metering.meter import current

# The time in which a call that has lost a race, or an answer, begins anew.
RETRY_S = 5.0
# What a user can pile up is bounded, too: storage costs every month.
MOST_DOCUMENTS = 100_000


def run(
    data: object,
    *,
    user_key: str,
    client: firestore.Client,
    clock: Clock | None = None,
    new_id: Callable[[], str] = lambda: secrets.token_hex(10),
    most_documents: int = MOST_DOCUMENTS,
) -> dict[str, Any]:
    """Apply `data.operations`; the request's meters must be open.

    The result has `complete` and, if that is true, the `id` of each operation in `results`. If it is false the meters
    left no room for all edges of the nodes to be deleted: many are, nothing else is done, and the same list, sent
    again, goes on from there.

    Raises:
        InvalidField: an operation is not valid, or does not fit what is there; the message names its index and field.
        Contention: other calls of this user won each time; the list was not applied.
        StoreUnavailable: no answer; the list may have been applied, or may yet be. Sent again it is not applied twice.
        MeterExceeded: the request may not read or write as much as the list mentions.
    """
    operations = parse(data, new_id)
    mutation = Mutation(client, user_key, writer=secrets.token_hex(16))
    error: Exception | None = None
    for number in Tries(RETRY_S, clock or Clock()):
        if number and not _affordable(operations):
            break
        try:
            return _attempt(operations, mutation, most_documents)
        except InvalidField as misfit:
            if not mutation.in_doubt:
                raise
            # It may be our own doing that it does not fit any more.
            error = misfit
            break
        except (Unreadable, *STORE_ERRORS) as failed:
            error = failed
            if isinstance(failed, (Unreadable, *PERMANENT)):
                break
    raise _refusal(error, mutation) from error


def _attempt(operations: list[Operation], mutation: Mutation, most_documents: int) -> dict[str, Any]:
    if mutation.begin():
        return _done(operations)
    draft = Draft(before=mutation.read(_mentioned(operations)))
    for operation in operations:
        operation.apply(draft)
    changes = draft.changes()
    grows = sum((after is not None) - (draft.before.get(key) is not None) for key, after in changes.items())
    if grows > 0 and mutation.size + grows > most_documents:
        raise InvalidField(f"operations: a graph holds at most {most_documents} nodes and edges")
    if sweep(draft, mutation) and mutation.affords(len(changes)):
        mutation.finish(changes, draft.before)
        return _done(operations)
    mutation.flush()
    return {"complete": False, "results": []}


def _mentioned(operations: list[Operation]) -> dict[Any, None]:
    return dict.fromkeys(key for operation in operations for key in operation.mentions)


def _affordable(operations: list[Operation]) -> bool:
    left = current().reads.remaining
    return left is None or 1 + len(_mentioned(operations)) <= left


def _done(operations: list[Operation]) -> dict[str, Any]:
    return {"complete": True, "results": [{"id": operation.id} for operation in operations]}


def _refusal(error: Exception | None, mutation: Mutation) -> Refused:
    tell = unavailable if mutation.in_doubt else out_of_time
    return tell(error, step="mutate", text=UNREACHABLE)
