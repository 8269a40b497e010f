"""A change and its record, as one commit that is made once, however often it has to be sent."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from google.api_core.exceptions import GoogleAPICallError, RetryError
from google.cloud import firestore

from firebreak.store.outcome import NOT_APPLIED, PERMANENT
from firebreak.store.times import from_us
from firebreak.store.tries import Clock, Tries
from firebreak.switch.change import CHANGES, KEPT_US, LOG
from firebreak.switch.documents import OPS
from scripts.ops.failure import NotDone
from scripts.ops.rpc import RPC_S
from scripts.ops.session import Why

CHANGE_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one commit would change: `stage` adds its writes; `before` and `after` are for the record."""

    at_us: int
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    stage: Callable[[firestore.WriteBatch], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What of every change to a user is kept for a year; `user` is the uid's pseudonym, never the uid."""

    what: str
    user: str
    why: Why


def make(
    client: firestore.Client, record: Record, attempt: Callable[[], Change | None], *, clock: Clock | None = None
) -> dict[str, Any] | None:
    """Make the change that `attempt` finds, anew each time it lost a race; its record, None if there is none to make.

    The record's id is one for all attempts and is created with the change: a reply that was lost is found by it, and no
    second copy of the commit can be applied.

    Raises:
        NotDone: other writers won each time, or no answer came; the message tells which.
    """
    entry = client.collection(OPS).document(CHANGES).collection(LOG).document(secrets.token_hex(10))
    sent, unknown = False, False
    for _ in Tries(CHANGE_S, clock or Clock()):
        try:
            if sent and (kept := entry.get(timeout=RPC_S).to_dict()):
                return dict(kept)
            change = attempt()
            if change is None:
                return None
            sent = True
            return _commit(client, entry, record, change)
        except PERMANENT:
            raise
        except (GoogleAPICallError, RetryError) as error:
            if not sent:
                raise
            # Of what was sent, this copy was not applied, or nobody knows.
            unknown = unknown or not isinstance(error, NOT_APPLIED)
    if unknown:
        raise NotDone("Firestore did not answer; the change may have been made: look before you repeat it")
    raise NotDone("others changed it at the same moment, each time; nothing was changed: try again")


def _commit(
    client: firestore.Client, entry: firestore.DocumentReference, record: Record, change: Change
) -> dict[str, Any]:
    fields = {
        "what": record.what,
        "user": record.user,
        "before": dict(change.before),
        "after": dict(change.after),
        "reason": record.why.reason,
        "by": record.why.by,
        "at": from_us(change.at_us),
        "expireAt": from_us(change.at_us + KEPT_US),
    }
    batch = client.batch()
    batch.create(entry, fields)
    change.stage(batch)
    batch.commit(retry=None, timeout=RPC_S)
    return fields
