"""The bucket's documents in Firestore: each method is one RPC, each commit is atomic and under a precondition.

No locks: `reserve` and `settle` are each one commit that is safe to resend, because the call's document decides which
of two copies counts. The numbered rules are those of docs/bucket.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from google.api_core.exceptions import FailedPrecondition, NotFound
from google.cloud import firestore

from firebreak.bucket import writes
from firebreak.bucket.answers import Unreadable
from firebreak.bucket.arithmetic import Level, full_at_us
from firebreak.bucket.record import (
    BUCKETS,
    CALLS,
    KEPT_US,
    Bucket,
    Call,
    Read,
    Status,
    from_us,
    read_bucket,
    read_call,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What a commit answered: its update_time, and the sums that its increments left, by field."""

    updated: datetime
    sums: Mapping[str, int]


class Documents:
    """One user's bucket and calls. Every method is one RPC, bounded by `timeout_s` and never resent by the client."""

    def __init__(self, client: firestore.Client, user_key: str) -> None:
        self._client = client
        self.name = user_key
        """The bucket's document id."""

    @cached_property
    def _bucket(self) -> firestore.DocumentReference:
        # Made on first use: a refusal from memory needs the name alone.
        bucket: firestore.DocumentReference = self._client.collection(BUCKETS).document(self.name)
        return bucket

    def bucket(self, *, timeout_s: float) -> Read:
        """Read the bucket.

        Raises:
            Corrupt: its level, time or override is not one.
            Unreadable: there is no database to read from.
        """
        try:
            snapshot = self._bucket.get(retry=None, timeout=timeout_s)
        except (NotFound, FailedPrecondition) as error:
            raise Unreadable from error
        return read_bucket(snapshot.to_dict(), updated=snapshot.update_time, read=snapshot.read_time)

    def call(self, request_id: str, *, timeout_s: float) -> Call | None:
        """Read one call, None where there is no such document."""
        snapshot = self._call(request_id).get(retry=None, timeout=timeout_s)
        data = snapshot.to_dict()
        return None if data is None else read_call(data, updated=snapshot.update_time)

    def recent(self, count: int, *, timeout_s: float) -> list[dict[str, Any]]:
        """The last calls, newest first, as stored."""
        calls = self._bucket.collection(CALLS).order_by("createdAt", direction=firestore.Query.DESCENDING)
        # No retry=None: the SDK breaks on it where an answer breaks off. Metered, nothing is sent again anyway.
        return [s.to_dict() or {} for s in calls.limit(count).get(timeout=timeout_s)]

    def reserve(
        self,
        request_id: str,
        *,
        holder: str,
        estimated: int,
        model: str,
        bucket: Bucket,
        level: Level,
        limit: int,
        version: int,
        now_us: int,
        timeout_s: float,
    ) -> Commit:
        """Create the call and move the bucket from the state it was read in, as one commit, call first (rule 1)."""
        batch = self._client.batch()
        call: dict[str, writes.Scalar] = {
            "status": Status.HELD,
            "holder": holder,
            "estimated": estimated,
            "model": model,
            "createdAt": from_us(now_us),
            "expireAt": from_us(now_us + KEPT_US),
        }
        writes.create(batch, self._call(request_id), call)
        fields: dict[str, writes.Scalar] = {
            "tokens": level.tokens,
            "updatedAt": from_us(level.updated_us),
            "version": version,
            **_expiry(bucket, level, limit),
        }
        if bucket.updated is None:
            writes.create(batch, self._bucket, fields)
        else:
            writes.update(batch, self._bucket, fields, unchanged=bucket.updated)
        return _commit(batch, timeout_s)

    def void(self, request_id: str, *, holder: str, now_us: int, timeout_s: float) -> None:
        """Create the call as one that will never run, so that no late copy of a reserve can (rule 5)."""
        batch = self._client.batch()
        fields: dict[str, writes.Scalar] = {
            "status": Status.VOID,
            "holder": holder,
            "estimated": 0,
            "createdAt": from_us(now_us),
            "expireAt": from_us(now_us + KEPT_US),
        }
        writes.create(batch, self._call(request_id), fields)
        _commit(batch, timeout_s)

    def settle(
        self, request_id: str, *, held_at: datetime, actual: int, increments: Mapping[str, int], timeout_s: float
    ) -> Commit:
        """Settle the call under the time it was held at, and add to the bucket (rule 6); no increments: call alone."""
        batch = self._settled(request_id, held_at, actual)
        if increments:
            writes.update(batch, self._bucket, {}, increments=increments)
        return _commit(batch, timeout_s, increments)

    def settle_debt(
        self,
        request_id: str,
        *,
        held_at: datetime,
        actual: int,
        bucket: Bucket,
        level: Level,
        limit: int,
        increments: Mapping[str, int],
        timeout_s: float,
    ) -> None:
        """As `settle`, but with the level as of now, on condition that the bucket has not changed since (rule 7)."""
        batch = self._settled(request_id, held_at, actual)
        fields: dict[str, writes.Scalar] = {
            "tokens": level.tokens,
            "updatedAt": from_us(level.updated_us),
            **_expiry(bucket, level, limit),
        }
        writes.update(batch, self._bucket, fields, increments=increments, unchanged=bucket.updated)
        _commit(batch, timeout_s, increments)

    def _settled(self, request_id: str, held_at: datetime, actual: int) -> firestore.WriteBatch:
        batch = self._client.batch()
        fields: dict[str, writes.Scalar] = {"status": Status.SETTLED, "actual": actual}
        writes.update(batch, self._call(request_id), fields, unchanged=held_at)
        return batch

    def _call(self, request_id: str) -> firestore.DocumentReference:
        call: firestore.DocumentReference = self._bucket.collection(CALLS).document(request_id)
        return call


def _expiry(bucket: Bucket, level: Level, limit: int) -> dict[str, writes.Scalar]:
    """When the bucket may go; never while it has a limit of its own, which would go with it."""
    if bucket.override is not None:
        return {}
    return {"expireAt": from_us(full_at_us(level, limit=limit) + KEPT_US)}


def _commit(batch: firestore.WriteBatch, timeout_s: float, increments: Mapping[str, int] | None = None) -> Commit:
    # retry=None: the client would resend on UNAVAILABLE, and our own look at the documents must come in between.
    results = batch.commit(retry=None, timeout=timeout_s)
    # Transform results come in the order of the field paths.
    sums = [value.integer_value for value in results[-1].transform_results]
    return Commit(updated=results[-1].update_time, sums=dict(zip(sorted(increments or ()), sums, strict=True)))
