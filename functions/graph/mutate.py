"""The `mutate` callable: a list of operations, applied whole or not at all.

The graph's own document carries a version, and every commit moves it on from the one that was read. So what was read
is still so when the commit is applied, two callers cannot interleave, and a commit that is sent twice counts once. It
costs one read, and one write with each commit.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from google.cloud import firestore

from firebreak.errors import InvalidField, Refused
from firebreak.metering.batch import FLUSH_AT
from firebreak.metering.meter import current
from firebreak.store import commit
from firebreak.store.outcome import NOT_APPLIED, PERMANENT, STORE_ERRORS, Unreadable, out_of_time, unavailable
from firebreak.store.tries import Clock, Tries
from graph.documents import UNREACHABLE, Content, Key, Kind, content, document, edge, graph_of, same
from graph.draft import Draft
from graph.operations import Operation, parse

READ_S = 5.0
COMMIT_S = 10.0
# A page's deletes and the version fit into one commit.
PAGE = 400

type Write = Callable[[firestore.WriteBatch], None]


class Mutation:
    """One request's hold on a graph; `writer` is a random value that tells its last commit from all others."""

    def __init__(self, client: firestore.Client, user_key: str, *, writer: str) -> None:
        self._client = client
        self._graph = graph_of(user_key, client)
        self._writer = writer
        self._queue: dict[Key, Write] = {}
        self._asked: set[tuple[str, str]] = set()
        # Edges deleted since `begin`: one between two pages' nodes is read with each, after a flush too.
        self._deleted: set[str] = set()
        self._begun = False
        self._updated: datetime | None = None
        self._version = 0
        self.size = 0
        """Nodes and edges of the graph, with what is queued."""
        self.in_doubt = False
        """Whether a last commit was sent that may or may not have been applied."""

    def begin(self) -> bool:
        """Read the graph's version, and forget what is queued; true if it was a last commit of ours that made it."""
        snapshot = commit.get(self._graph, timeout_s=READ_S)
        data = snapshot.to_dict() or {}
        self._clear()
        self._deleted.clear()
        self._updated = snapshot.update_time
        self._version, self.size = _count(data.get("version")), _count(data.get("size"))
        return data.get("writer") == self._writer

    def read(self, keys: Iterable[Key]) -> dict[Key, Content | None]:
        """Read documents, in one request; None for one that is not there."""
        found: dict[Key, Content | None] = dict.fromkeys(keys)
        if not found:
            return found
        wanted = [document(self._graph, key) for key in found]
        for snapshot in commit.get_all(self._client, wanted, timeout_s=READ_S):
            key = Key(Kind(snapshot.reference.parent.id), snapshot.id)
            found[key] = content(key.kind, snapshot.to_dict() or {}) if snapshot.exists else None
        return found

    def page(self, end: str, node_id: str, *, after: str, limit: int) -> list[str]:
        """Ids of the next edges that have the node at this end.

        A query sees nothing of what is only queued: who queues deletes and asks again is given the same edges, for
        ever. So asked again, it commits first.
        """
        if (end, node_id) in self._asked:
            self.flush()
        self._asked.add((end, node_id))
        edges = self._graph.collection(Kind.EDGE.value).where(filter=firestore.FieldFilter(end, "==", node_id))
        edges = edges.select(["__name__"]).order_by("__name__").limit(limit)
        if after:
            edges = edges.start_after({"__name__": after})
        return [snapshot.id for snapshot in commit.run(edges, timeout_s=READ_S)]

    def room(self) -> int:
        """How many edges can still be read and deleted; one at least before any is: then the meter itself refuses."""
        reads, writes = current().reads.remaining, self._writes_left()
        room = min(PAGE if left is None else left for left in (PAGE, reads, writes))
        return max(room, 0 if self._begun else 1)

    def affords(self, changes: int) -> bool:
        """Whether so many changes can still be written; true before any is: then the meter itself refuses."""
        left = self._writes_left()
        return left is None or changes <= left or not self._begun

    def delete_edge(self, id_: str) -> None:
        """Queue the deletion of an edge that is there; once, however often it is asked for."""
        if id_ in self._deleted:
            return
        self._deleted.add(id_)
        self._add(edge(id_), lambda batch: batch.delete(document(self._graph, edge(id_))), grows=-1)

    def flush(self, *, writer: str = "") -> None:
        """Commit what is queued, as one.

        Raises:
            FailedPrecondition, and others of NOT_APPLIED: somebody else has changed the graph since `begin`.
        """
        if self._queue:
            self._commit(writer)

    def finish(self, changes: Mapping[Key, Content | None], before: Mapping[Key, Content | None]) -> None:
        """Commit changes, as one, with what is queued; where there is neither, nothing is written."""
        if len(self._queue) + len(changes) >= FLUSH_AT:
            self.flush()
        for key, after in changes.items():
            self._change(key, before.get(key), after)
        try:
            self.flush(writer=self._writer)
        except STORE_ERRORS as failed:
            self.in_doubt = self.in_doubt or not isinstance(failed, NOT_APPLIED)
            raise

    def _change(self, key: Key, before: Content | None, after: Content | None) -> None:
        place = document(self._graph, key)
        if after is None:
            self._add(key, lambda batch: batch.delete(place), grows=-1)
        elif before is None:
            self._add(key, lambda batch: batch.create(place, dict(after)), grows=1)
        else:
            changed = {name: value for name, value in after.items() if not same({name: value}, _only(before, name))}
            removed = dict.fromkeys(before.keys() - after.keys(), firestore.DELETE_FIELD)
            self._add(key, lambda batch: batch.update(place, changed | removed), grows=0)

    def _add(self, key: Key, write: Write, *, grows: int) -> None:
        if key in self._queue:
            return
        if len(self._queue) + 1 >= FLUSH_AT:
            self.flush()
        self._queue[key] = write
        self._begun = True
        self.size += grows

    def _commit(self, writer: str) -> None:
        batch = self._client.batch()
        version = {"version": self._version + 1, "writer": writer, "size": max(0, self.size)}
        if self._updated is None:
            batch.create(self._graph, version)
        else:
            unchanged = self._client.write_option(last_update_time=self._updated)
            batch.update(self._graph, version, option=unchanged)
        for write in self._queue.values():
            write(batch)
        self._updated = commit.send(batch, timeout_s=COMMIT_S)[0].update_time
        self._version += 1
        self._clear()

    def _clear(self) -> None:
        self._queue.clear()
        self._asked.clear()

    def _writes_left(self) -> int | None:
        left = current().writes.remaining
        # Two commits at most: what is queued, and what comes to it, each with the version.
        return None if left is None else left - len(self._queue) - 2


def _only(fields: Content, name: str) -> Content:
    return {name: fields[name]} if name in fields else {}


def _count(value: Any) -> int:  # noqa: ANN401 - whatever is stored
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


ENDS = ("from", "to")


def sweep(draft: Draft, mutation: Mutation) -> bool:
    """Queue the deletion of every stored edge of the draft's deleted nodes, but for those the draft decides on.

    Each full page is committed before the next is read. False: the request's meters leave no room for another page.
    """
    return all(_swept(draft, mutation, end, node_id) for node_id in draft.swept for end in ENDS)


def _swept(draft: Draft, mutation: Mutation, end: str, node_id: str) -> bool:
    after = ""
    while limit := mutation.room():
        page = mutation.page(end, node_id, after=after, limit=limit)
        for id_ in page:
            if edge(id_) not in draft.after:
                mutation.delete_edge(id_)
        if len(page) < limit:
            return True
        after = page[-1]
    return False


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
