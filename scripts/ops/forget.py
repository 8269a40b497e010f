"""Forgetting a user: all that is kept of them goes, in pages, but for a bare level until it would be full again.

Without that level, whoever signs up anew with the same uid would start with a full bucket. Each page is a commit of its
own and deleting is safe to repeat, so that what was interrupted is simply run again.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from google.cloud import firestore
from google.cloud.firestore_v1.field_path import FieldPath

from firebreak.bucket.documents import CALLS, Status
from firebreak.limits import requests as hourly
from firebreak.store.outcome import NOT_APPLIED, PERMANENT
from firebreak.store.times import DAY_US, SECOND_US, from_us, to_us
from firebreak.store.tries import Clock, Tries
from graph.documents import graph_of
from scripts.ops.change import CHANGE_S, Change, Record, make
from scripts.ops.document import Seen, next_version, see, update
from scripts.ops.failure import NotDone
from scripts.ops.limits import Limits
from scripts.ops.pages import Snapshot, pages
from scripts.ops.rpc import RPC_S, patiently

LEVEL = frozenset({"tokens", "updatedAt", "version", "override", "expireAt"})
# No function runs for that long: a call held since will not be settled by itself.
RUNNING_US = 3600 * SECOND_US

type Progress = Callable[[str, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What is gone, by collection; the level that stays, if any; and the calls that may yet be settled."""

    deleted: Mapping[str, int]
    kept: Mapping[str, Any] | None
    running: int


class Forgetting:
    """One run over one user; `limits` are those of a bucket as read, `progress` is told of each page."""

    def __init__(
        self, client: firestore.Client, user_key: str, *, limits: Callable[[Seen], Limits], progress: Progress
    ) -> None:
        self._client = client
        self._user_key = user_key
        self._limits = limits
        self._progress = progress
        self._deleted: Counter[str] = Counter()

    def run(self, record: Record, clock: Clock | None = None) -> Forgotten:
        """Delete: the calls before the bucket (rule 9 of docs/bucket.md), the first commit with the record.

        Raises:
            NotDone: the level cannot be read, or the user goes on calling.
        """
        seen = see(self._client, self._user_key)
        # Before anything is gone: what could not be kept at the end is for the operator to mend.
        _bare(seen, self._limits(seen), running=0)
        self._begin(seen, record)
        self._sweep(seen)
        self._clear_under(seen.reference, but=CALLS)
        graph = graph_of(self._user_key, self._client)
        self._clear_under(graph)
        if patiently(lambda: graph.get(timeout=RPC_S)).exists:
            self._delete(graph.parent.id, [graph])
        for _ in Tries(CHANGE_S, clock or Clock()):
            # Whatever comes after this reading, a call or its settling, changes the bucket and fails the commit.
            seen = see(self._client, self._user_key)
            running = self._sweep(seen)
            change = _bare(seen, self._limits(seen), running=running)
            if change is None or self._commit(change):
                kept = change.after if change else seen.data
                if change and not kept:
                    self._count(seen.reference.parent.id, 1)
                return Forgotten(deleted=self._deleted, kept=kept or None, running=running)
        raise NotDone("the user goes on calling: disable them in Firebase Auth, wait an hour, and run it again")

    def _begin(self, seen: Seen, record: Record) -> None:
        """The first commit: the hourly requests and the record, so that nothing is gone that no record tells of."""
        requests = self._client.collection(hourly.COLLECTION).document(self._user_key)
        known = patiently(lambda: requests.get(timeout=RPC_S)).exists
        first = Change(at_us=seen.at_us, before={}, after={}, stage=lambda batch: batch.delete(requests))
        make(self._client, record, lambda: first)
        if known:
            self._count(hourly.COLLECTION, 1)

    def _sweep(self, seen: Seen) -> int:
        """Delete all calls but those that may be running, whose settling must find them; how many these are."""
        running = 0
        for page in pages(seen.reference.collection(CALLS).select(["status", "createdAt"])):
            over = [call.reference for call in page if not _may_run(call, seen.at_us)]
            running += len(page) - len(over)
            self._delete(CALLS, over)
        return running

    def _clear_under(self, document: firestore.DocumentReference, *, but: str | None = None) -> None:
        """Delete what is under a document, whatever it is, but one collection."""
        for collection in patiently(lambda: list(document.collections(timeout=RPC_S))):
            for page in pages(collection.select([])) if collection.id != but else ():
                self._delete(collection.id, [found.reference for found in page])

    def _delete(self, kind: str, references: Sequence[firestore.DocumentReference]) -> None:
        if not references:
            return
        batch = self._client.batch()
        for reference in references:
            batch.delete(reference)
        patiently(lambda: batch.commit(timeout=RPC_S))
        self._count(kind, len(references))

    def _count(self, kind: str, documents: int) -> None:
        self._deleted[kind] += documents
        self._progress(kind, self._deleted[kind])

    def _commit(self, change: Change) -> bool:
        batch = self._client.batch()
        change.stage(batch)
        try:
            batch.commit(retry=None, timeout=RPC_S)
        except PERMANENT:
            raise
        except NOT_APPLIED:
            return False
        return True


def _may_run(call: Snapshot, now_us: int) -> bool:
    fields = call.to_dict() or {}
    created = fields.get("createdAt")
    held = fields.get("status") == Status.HELD
    return held and isinstance(created, datetime) and now_us - to_us(created) < RUNNING_US


def _bare(seen: Seen, limits: Limits, *, running: int) -> Change | None:
    """Leave the level alone in the bucket, or nothing if it is full and no call is held; None: so it is already."""
    before = seen.parsed().bucket
    if seen.data is None or before.level is None:
        return None
    full_us = limits.full_at_us(before.level)
    if full_us is not None and full_us <= seen.at_us and not running:
        unchanged = firestore.Client.write_option(last_update_time=seen.updated)
        return Change(
            at_us=seen.at_us, before={}, after={}, stage=lambda batch: batch.delete(seen.reference, option=unchanged)
        )
    kept = {name: value for name, value in seen.data.items() if name in LEVEL - {"expireAt"}}
    if full_us is not None:
        # Where a call may yet be settled, no earlier than a day idle; a blocked user's stays.
        kept["expireAt"] = from_us(max(full_us, seen.at_us + DAY_US if running else 0))
    if kept == seen.data:
        return None
    doomed = {FieldPath(name).to_api_repr(): firestore.DELETE_FIELD for name in seen.data.keys() - kept.keys()}
    kept["version"] = next_version(before)
    stage = partial(update, seen.reference, {**kept, **doomed}, seen.updated)
    return Change(at_us=seen.at_us, before={}, after=kept, stage=stage)
