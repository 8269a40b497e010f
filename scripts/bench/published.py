"""What the other contenders write: a bucket and a call as the published pattern has them, with the same fields."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from google.cloud import firestore

from scripts.bench.firebreak_ledger import ACTUAL, COUNTERS
from scripts.bench.shape import COST

DAY_S = 86_400
KEPT = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A call that was reserved: the documents to settle."""

    bucket: firestore.DocumentReference
    call: firestore.DocumentReference


def new(client: firestore.Client, user: str) -> Open:
    """References of a new call of `user`."""
    bucket = client.collection("token_buckets").document(user)
    return Open(bucket=bucket, call=bucket.collection("calls").document(uuid.uuid4().hex))


def held(now: datetime) -> dict[str, Any]:
    """A call's document when it is reserved."""
    return {
        "status": "held",
        "holder": uuid.uuid4().hex,
        "estimated": COST,
        "model": "bench",
        "createdAt": now,
        "expireAt": now + KEPT,
    }


def bucket(tokens: int, version: int, now: datetime) -> dict[str, Any]:
    """A bucket's document."""
    return {"tokens": tokens, "updatedAt": now, "version": version, "expireAt": now + KEPT}


def settled() -> dict[str, Any]:
    """What settling changes in a call."""
    return {"status": "settled", "actual": ACTUAL}


def refund() -> dict[str, Any]:
    """What settling changes in a bucket, as increments."""
    lifetime = {name: firestore.Increment(by) for name, by in COUNTERS.items()}
    return {"tokens": firestore.Increment(COST - ACTUAL), "version": firestore.Increment(1), "lifetime": lifetime}


def refilled(tokens: int, updated: datetime, now: datetime, limit: int) -> int:
    """The level as of now, with `limit` tokens a day."""
    return min(limit, tokens + int((now - updated).total_seconds() * limit / DAY_S))


def utcnow() -> datetime:
    return datetime.now(UTC)
