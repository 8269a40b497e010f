"""The bucket's documents, as values and in Firestore: one RPC a method, each commit atomic and under a precondition.

No locks: `reserve` and `settle` are each one commit that is safe to resend, because the call's document decides which
of two copies counts. The numbered rules are those of docs/bucket.md.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

from google.cloud import firestore

from firebreak.bucket.arithmetic import Level, full_at_us
from firebreak.settings.tiers import tightened
from firebreak.store import commit
from firebreak.store.documents import Corrupt
from firebreak.store.times import DAY_US, from_us, to_us

BUCKETS = "token_buckets"
CALLS = "calls"
KEPT_US = 30 * DAY_US


class Status(StrEnum):
    """Of a call: charged at its estimate, charged at its usage, or never to run."""

    HELD = "held"
    SETTLED = "settled"
    VOID = "void"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A bucket as read: `updated` is the document's update_time, None where there is no document."""

    level: Level | None
    version: int | None
    override: int | None
    updated: datetime | None

    def limit(self, default: int, *, percent: int) -> int:
        """Tokens a day: `default`, unless the bucket has its own; of that `percent` hold while limits are tightened."""
        return default if self.override is None else tightened(self.override, percent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a read of a bucket's document gave, and the server's time of it."""

    bucket: Bucket
    at_us: int
    lifetime: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDocument:
    """A call as read; `updated` is the document's update_time."""

    status: str
    holder: str
    estimated: int
    actual: int | None
    updated: datetime


def read_bucket(data: Mapping[str, Any] | None, *, updated: datetime | None, read: datetime) -> Read:
    """A bucket from its document's fields, None where there is no document; fractional tokens are rounded down.

    Raises:
        Corrupt: its level, time or override is not one.
    """
    fields = data or {}
    bucket = Bucket(
        level=None if data is None else read_level(fields),
        version=_version(fields),
        override=_override(fields),
        updated=updated,
    )
    return Read(bucket=bucket, at_us=to_us(read), lifetime=_mapping(fields.get("lifetime")))


def read_call(data: Mapping[str, Any], *, updated: datetime) -> CallDocument:
    """A call from its document's fields.

    Raises:
        Corrupt: its counts are none.
    """
    actual = data.get("actual")
    if not _is_whole(data.get("estimated", 0)) or not (actual is None or _is_whole(actual)):
        raise Corrupt("estimated or actual is not a whole number")
    return CallDocument(
        status=str(data.get("status")),
        holder=str(data.get("holder")),
        estimated=int(data.get("estimated", 0)),
        actual=None if actual is None else int(actual),
        updated=updated,
    )


def read_level(data: Mapping[str, Any]) -> Level:
    """A level from its fields; fractional tokens are rounded down.

    Raises:
        Corrupt: it is none.
    """
    tokens, updated = data.get("tokens"), data.get("updatedAt")
    if isinstance(tokens, bool) or not isinstance(tokens, int | float) or not math.isfinite(tokens):
        raise Corrupt("tokens is not a number")
    if not isinstance(updated, datetime):
        raise Corrupt("updatedAt is not a timestamp")
    return Level(tokens=math.floor(tokens), updated_us=to_us(updated))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _version(data: Mapping[str, Any]) -> int | None:
    version = data.get("version")
    return version if isinstance(version, int) and not isinstance(version, bool) else None


def _override(data: Mapping[str, Any]) -> int | None:
    override = data.get("override")
    if override is None:
        return None
    if isinstance(override, bool) or not isinstance(override, int) or override < 0:
        raise Corrupt("override is not a whole number of at least 0")
    return override


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


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
        snapshot = commit.get(self._bucket, timeout_s=timeout_s)
        return read_bucket(snapshot.to_dict(), updated=snapshot.update_time, read=snapshot.read_time)

    def call(self, request_id: str, *, timeout_s: float) -> CallDocument | None:
        """Read one call, None where there is no such document."""
        snapshot = commit.get(self._call(request_id), timeout_s=timeout_s)
        data = snapshot.to_dict()
        return None if data is None else read_call(data, updated=snapshot.update_time)

    def recent(self, count: int, *, timeout_s: float) -> list[dict[str, Any]]:
        """The last calls, newest first, as stored."""
        calls = self._bucket.collection(CALLS).order_by("createdAt", direction=firestore.Query.DESCENDING)
        return [s.to_dict() or {} for s in commit.run(calls.limit(count), timeout_s=timeout_s)]

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
        call: dict[str, commit.Scalar] = {
            "status": Status.HELD,
            "holder": holder,
            "estimated": estimated,
            "model": model,
            "createdAt": from_us(now_us),
            "expireAt": from_us(now_us + KEPT_US),
        }
        commit.create(batch, self._call(request_id), call)
        fields: dict[str, commit.Scalar] = {
            "tokens": level.tokens,
            "updatedAt": from_us(level.updated_us),
            "version": version,
            **_expiry(bucket, level, limit),
        }
        if bucket.updated is None:
            commit.create(batch, self._bucket, fields)
        else:
            commit.update(batch, self._bucket, fields, unchanged=bucket.updated)
        return _commit(batch, timeout_s)

    def void(self, request_id: str, *, holder: str, now_us: int, timeout_s: float) -> None:
        """Create the call as one that will never run, so that no late copy of a reserve can (rule 5)."""
        batch = self._client.batch()
        fields: dict[str, commit.Scalar] = {
            "status": Status.VOID,
            "holder": holder,
            "estimated": 0,
            "createdAt": from_us(now_us),
            "expireAt": from_us(now_us + KEPT_US),
        }
        commit.create(batch, self._call(request_id), fields)
        _commit(batch, timeout_s)

    def settle(
        self, request_id: str, *, held_at: datetime, actual: int, increments: Mapping[str, int], timeout_s: float
    ) -> Commit:
        """Settle the call under the time it was held at, and add to the bucket (rule 6); no increments: call alone."""
        batch = self._settled(request_id, held_at, actual)
        if increments:
            commit.update(batch, self._bucket, {}, increments=increments)
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
        fields: dict[str, commit.Scalar] = {
            "tokens": level.tokens,
            "updatedAt": from_us(level.updated_us),
            **_expiry(bucket, level, limit),
        }
        commit.update(batch, self._bucket, fields, increments=increments, unchanged=bucket.updated)
        _commit(batch, timeout_s, increments)

    def _settled(self, request_id: str, held_at: datetime, actual: int) -> firestore.WriteBatch:
        batch = self._client.batch()
        fields: dict[str, commit.Scalar] = {"status": Status.SETTLED, "actual": actual}
        commit.update(batch, self._call(request_id), fields, unchanged=held_at)
        return batch

    def _call(self, request_id: str) -> firestore.DocumentReference:
        call: firestore.DocumentReference = self._bucket.collection(CALLS).document(request_id)
        return call


def _expiry(bucket: Bucket, level: Level, limit: int) -> dict[str, commit.Scalar]:
    """When the bucket may go; never while it has a limit of its own, which would go with it."""
    if bucket.override is not None:
        return {}
    return {"expireAt": from_us(full_at_us(level, limit=limit) + KEPT_US)}


def _commit(batch: firestore.WriteBatch, timeout_s: float, increments: Mapping[str, int] | None = None) -> Commit:
    results = commit.send(batch, timeout_s=timeout_s)
    # Transform results come in the order of the field paths.
    sums = [value.integer_value for value in results[-1].transform_results]
    return Commit(updated=results[-1].update_time, sums=dict(zip(sorted(increments or ()), sums, strict=True)))
