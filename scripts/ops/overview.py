"""One user as an operator sees them: what is left as of now, what is held, and the requests of this hour."""

from collections.abc import Iterator, Mapping
from typing import Any

from google.cloud import firestore
from rich.table import Table

from firebreak.bucket import arithmetic
from firebreak.bucket.documents import CALLS, Status
from firebreak.limits import lease
from firebreak.limits import requests as hourly
from firebreak.limits.lease import LevelDocument
from firebreak.settings.settings import Settings
from firebreak.store.documents import Corrupt
from firebreak.store.times import HOUR_US
from scripts.ops import text
from scripts.ops.document import Seen
from scripts.ops.limits import Limits
from scripts.ops.rpc import RPC_S, patiently

HELD = 100

type Json = dict[str, Any]


def bucket(seen: Seen, allowed: Limits) -> Json | None:
    """The bucket, refilled until it was read; None: there is none, and a first call finds a full one.

    Raises:
        NotDone: it is damaged.
    """
    read = seen.parsed()
    level = read.bucket.level
    if seen.data is None or level is None:
        return None
    full_us = allowed.full_at_us(level)
    return {
        "tokens": allowed.refill(level, now_us=seen.at_us).tokens,
        "fullAt": None if full_us is None else text.stamp(max(full_us, seen.at_us)),
        "override": read.bucket.override,
        "stored": {"tokens": level.tokens, "updatedAt": text.stamp(level.updated_us), "version": read.bucket.version},
        "expireAt": text.stamp(seen.data.get("expireAt")),
        "lifetime": dict(read.lifetime),
    }


def held(seen: Seen) -> Json:
    """The user's calls that are not settled, up to HELD of them."""
    calls = seen.reference.collection(CALLS).where(filter=firestore.FieldFilter("status", "==", Status.HELD.value))
    found = [call.to_dict() or {} for call in patiently(lambda: list(calls.limit(HELD).get(timeout=RPC_S)))]
    estimated = [tokens for call in found if isinstance(tokens := call.get("estimated"), int)]
    return {"calls": len(found), "tokens": sum(estimated), "truncated": len(found) == HELD}


def requests(client: firestore.Client, user_key: str, knobs: Settings | None) -> Json:
    """Requests left of this hour, by kind, as of now and by the largest limit; those that never called have none."""
    document = LevelDocument(client, hourly.COLLECTION, user_key)
    [(_, found, at_us)] = patiently(lambda: list(lease.read([document], timeout_s=RPC_S)))
    if isinstance(found, Corrupt) or knobs is None:
        return {}
    limits = {"read": max(knobs.read_requests_per_hour.values()), "write": max(knobs.write_requests_per_hour.values())}
    return {
        kind: arithmetic.refill(found.levels[kind], limit=limit, now_us=at_us, period_us=HOUR_US).tokens
        for kind, limit in limits.items()
        if kind in found.levels and limit
    }


def table(data: Mapping[str, Any]) -> Table:
    """All of it, for a person."""
    return text.lines(data["uid"], _lines(data))


def _lines(data: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    limit, seen, calls = data["limit"], data["bucket"], data["held"]
    if data["tenant"] is not None:
        yield "tenant", data["tenant"]
    yield "in the logs", data["pseudonym"]
    most = f"{'at most ' if limit['least'] < limit['most'] else ''}{limit['most']:,} tokens a day"
    yield "limit", f"{most if limit['most'] else 'blocked'}, by {limit['by']}"
    if limit["percent"] != 100:
        yield "", f"that is {limit['percent']} % of it: the limits are tightened"
    if seen is None:
        yield "left", "all of it: there is no bucket yet"
    else:
        full = "full" if seen["tokens"] >= limit["most"] else f"full at {seen['fullAt']}"
        yield "left", f"{seen['tokens']:,} tokens{f', {full}' if limit['most'] else ''}"
        yield "expires", seen["expireAt"] or "never"
    yield "held", f"{calls['calls']}{' or more' if calls['truncated'] else ''} calls, {calls['tokens']:,} tokens"
    yield "requests left", data["requests"] or "all of them"
    yield "in all", (seen and seen["lifetime"]) or "nothing"
