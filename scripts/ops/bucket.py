"""A user's bucket as an operator changes it: by the ledger's own rules, so that it can run meanwhile.

Every change adds 1 to `version` (rule 3 of docs/bucket.md), and one that rests on what was read commits under it.
"""

import secrets
from functools import partial
from typing import Any

from google.cloud import firestore

from firebreak.bucket.arithmetic import Level
from firebreak.bucket.documents import KEPT_US
from firebreak.store.times import from_us
from scripts.ops.change import Change
from scripts.ops.document import Seen, next_version, update
from scripts.ops.failure import NotDone
from scripts.ops.limits import Limits


def grant(seen: Seen, tokens: int, limits: Limits) -> Change:
    """Add tokens to the level, as far as the limit has room; by an increment, so that no other writer is in the way.

    Raises:
        NotDone: there is no bucket, it is blocked, or it has no room.
    """
    bucket = seen.parsed().bucket
    if bucket.level is None:
        raise NotDone("there is no bucket: a user starts with a full one, so that there is nothing to add to")
    _check_not_blocked(limits)
    room = limits.most - limits.refill(bucket.level, now_us=seen.at_us).tokens
    if tokens > room:
        raise NotDone(f"there is room for {room:,}: what is above the limit of {limits.most:,} is cut by the next call")
    fields: dict[str, Any] = {"tokens": firestore.Increment(tokens), "version": firestore.Increment(1)}
    unchanged = None
    if bucket.version is None:
        fields["version"], unchanged = next_version(bucket), seen.updated
    return Change(
        at_us=seen.at_us,
        before={"tokens": bucket.level.tokens},
        after={"granted": tokens},
        stage=partial(update, seen.reference, fields, unchanged),
    )


def reset(seen: Seen, limits: Limits) -> Change | None:
    """Fill the bucket; None if it is full. The next call cuts what is above the user's limit.

    Raises:
        NotDone: it is blocked.
    """
    if seen.data is None:
        return None
    _check_not_blocked(limits)
    bucket = seen.mended()
    level = _level(seen)
    if level is not None and limits.refill(level, now_us=seen.at_us).tokens >= limits.most:
        return None
    # Refill time never runs backwards.
    full_us = max(seen.at_us, level.updated_us if level else 0)
    fields: dict[str, Any] = {"tokens": limits.most, "updatedAt": from_us(full_us), "version": next_version(bucket)}
    if bucket.override is None:
        fields["expireAt"] = from_us(full_us + KEPT_US)
    return Change(
        at_us=seen.at_us,
        before={"tokens": level.tokens if level else "damaged"},
        after={"tokens": limits.most},
        stage=partial(update, seen.reference, fields, seen.updated),
    )


def limit(seen: Seen, tokens: int) -> Change | None:
    """Set the override, in a full new bucket if there is none; None if it is set already.

    A bucket with an override does not expire: with it would go the block.
    """
    before = None if seen.data is None else seen.data.get("override")
    after = {"override": tokens}
    if seen.data is None:
        fields = {"tokens": tokens, "updatedAt": from_us(seen.at_us), "version": secrets.randbits(48), **after}
        return Change(
            at_us=seen.at_us,
            before={"override": None},
            after=after,
            stage=lambda batch: batch.create(seen.reference, fields),
        )
    if before == tokens and not isinstance(before, bool) and "expireAt" not in seen.data:
        return None
    fields = {**after, "version": next_version(seen.mended(override=None)), "expireAt": firestore.DELETE_FIELD}
    return Change(
        at_us=seen.at_us,
        before={"override": before},
        after=after,
        stage=partial(update, seen.reference, fields, seen.updated),
    )


def unlimit(seen: Seen, limits: Limits | None) -> Change | None:
    """Take the override away, so that the settings' limit counts again; None if there is none.

    The bucket expires again, if it is known when it will be full; else from its next call on.
    """
    if seen.data is None or seen.data.get("override") is None:
        return None
    bucket = seen.parsed(override=None).bucket
    assert bucket.level is not None
    fields: dict[str, Any] = {"override": firestore.DELETE_FIELD, "version": next_version(bucket)}
    full_us = limits.full_at_us(bucket.level) if limits else None
    if full_us is not None:
        fields["expireAt"] = from_us(max(full_us, seen.at_us) + KEPT_US)
    return Change(
        at_us=seen.at_us,
        before={"override": seen.data["override"]},
        after={"override": None},
        stage=partial(update, seen.reference, fields, seen.updated),
    )


def _check_not_blocked(limits: Limits) -> None:
    if not limits.most:
        raise NotDone("the user is blocked (a limit of 0): `user limit UID --none` first")


def _level(seen: Seen) -> Level | None:
    """The level, None where it is none: then nothing of it is kept."""
    try:
        return seen.parsed(override=None).bucket.level
    except NotDone:
        return None
