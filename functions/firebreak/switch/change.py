"""Changing the switch: one commit, which leaves a record of what was changed, by whom and why."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from google.api_core.exceptions import Aborted, AlreadyExists, DeadlineExceeded, FailedPrecondition
from google.cloud import firestore

from firebreak.store import commit
from firebreak.store.documents import Corrupt
from firebreak.store.outcome import STORE_ERRORS, Unreadable
from firebreak.store.times import DAY_US, from_us
from firebreak.store.tries import Clock, OutOfTries, Tries, repeat
from firebreak.switch import documents
from firebreak.switch.edit import Change, Loosen, Reset, Tighten, Trip
from firebreak.switch.state import TEXT_CHARACTERS, State, fields_of

__all__ = ["LOST", "Change", "Loosen", "Reset", "Tighten", "Trip", "apply", "read"]

CHANGES = "changes"
LOG = "log"
KEPT_US = 365 * DAY_US

# Answers that prove that a precondition of the commit did not hold.
LOST = (FailedPrecondition, AlreadyExists, Aborted)
UNKNOWN = "nobody can tell whether the switch was changed"


type Also = Callable[[firestore.WriteBatch], None]


def read(client: firestore.Client, *, timeout_s: float) -> State:
    """The switch as it is now, what is over included.

    Raises:
        Corrupt: it holds something no switch can hold.
        Unreadable, GoogleAPICallError: the store cannot be read.
    """
    return documents.read(client, timeout_s=timeout_s).state


def apply(
    client: firestore.Client,
    changes: Sequence[Change],
    *,
    also: Also | None = None,
    timeout_s: float,
    clock: Clock | None = None,
) -> State:
    """Make the changes, in order, and what `also` adds to the commit, all together or not at all, once.

    A lost reply is resolved by looking for the record of the change. `also` is called for each attempt. What is over is
    dropped from the switch on the way. Returns the switch after it.

    Raises:
        FailedPrecondition, AlreadyExists, Aborted: somebody else was faster, and nothing was changed; without `also`
            only after trying until the time was up. With it: read anew what you go by, and call again.
        Corrupt, Unreadable: the switch cannot be read, and nothing was changed.
        GoogleAPICallError: no answer; it may be changed or not, and its record tells.
    """
    return _Commit(client, changes, also).run(Tries(timeout_s, clock or Clock()))


class _Commit:
    """One invocation of `apply`: all its attempts are under one id, so that at most one is ever applied."""

    def __init__(self, client: firestore.Client, changes: Sequence[Change], also: Also | None) -> None:
        if not changes:
            raise ValueError("changes must not be empty: their records tell whether the commit was applied")
        self._client = client
        self._changes = changes
        self._also = also
        self._id = secrets.token_hex(10)
        self._sent = False

    def run(self, tries: Tries) -> State:
        final = (Corrupt, Unreadable, *(LOST if self._also else ()))
        try:
            return repeat(lambda: self._attempt(tries), tries, final=final)
        except OutOfTries as end:
            error = end.error
        assert error is not None  # noqa: S101 - each attempt gives a state or raises
        return self._resolved(error, tries)

    def _resolved(self, error: Exception, tries: Tries) -> State:
        """What came of the last try: it too may have lost to a twin, which arrived meanwhile."""
        for _ in tries:
            try:
                if not self._sent or not self._is_applied(tries.rpc_s):
                    break
                return read(self._client, timeout_s=tries.rpc_s)
            except STORE_ERRORS:
                continue
        else:
            if isinstance(error, LOST):
                raise DeadlineExceeded(UNKNOWN) from error  # type: ignore[no-untyped-call]  # Google's
        raise error

    def _attempt(self, tries: Tries) -> State:
        # Whatever the error was: a resend may have lost to its own twin.
        if self._sent and self._is_applied(tries.rpc_s):
            return read(self._client, timeout_s=tries.rpc_s)
        before = documents.read(self._client, timeout_s=tries.rpc_s)
        batch = self._client.batch()
        after = self._add_changes(batch, before)
        documents.write(self._client, batch, after, unchanged=before.updated)
        if self._also is not None:
            self._also(batch)
        self._sent = True
        commit.send(batch, timeout_s=tries.rpc_s)
        return after

    def _add_changes(self, batch: firestore.WriteBatch, reading: documents.SwitchReading) -> State:
        before = reading.state
        after = replace(before.current(reading.at_us), version=before.version + 1)
        for number, change in enumerate(self._changes):
            after = change.on(after, reading.at_us)
            batch.create(self._record(number), _record(change, before, after, reading.at_us))
            before = after
        return after

    def _is_applied(self, timeout_s: float) -> bool:
        return bool(commit.get(self._record(0), timeout_s=timeout_s).exists)

    def _record(self, number: int) -> firestore.DocumentReference:
        log = self._client.collection(documents.OPS).document(CHANGES).collection(LOG)
        record: firestore.DocumentReference = log.document(f"{self._id}-{number}")
        return record


def _record(change: Change, before: State, after: State, at_us: int) -> dict[str, Any]:
    asked = asdict(change) | {"reason": change.reason[:TEXT_CHARACTERS], "by": change.by[:TEXT_CHARACTERS]}
    until_us = asked.pop("until_us", None)
    asked["until"] = None if until_us is None else from_us(until_us)
    return {name: value for name, value in asked.items() if value is not None} | {
        "what": change.what,
        "before": fields_of(before),
        "after": fields_of(after),
        "at": from_us(at_us),
        "expireAt": from_us(at_us + KEPT_US),
    }
