"""Reserve: charge an upper bound and hold the call in one commit, before the model is called.

The numbered rules are those of docs/bucket.md; each has a test that fails without it.
"""

import secrets
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from google.api_core.exceptions import AlreadyExists

from firebreak.bucket import arithmetic
from firebreak.bucket.arithmetic import Level, Short
from firebreak.bucket.documents import Bucket, CallDocument, Documents, Status
from firebreak.bucket.memory import KnownBucket, Memory
from firebreak.errors import Blocked, BucketEmpty, Duplicate, Refused, StoreUnavailable, TooLarge
from firebreak.events import Event, Severity, emit
from firebreak.store.documents import Corrupt
from firebreak.store.outcome import NOT_APPLIED, RETRY_AFTER_STORE_S, STORE_ERRORS, Unreadable, out_of_time
from firebreak.store.times import to_us
from firebreak.store.tries import Clock, OutOfTries, Tries, repeat


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a call wants: `estimate` is an upper bound on its tokens, `limit` the user's tokens a day.

    `percent` of a limit that the bucket has for itself hold; `limit` is tightened already.
    """

    estimate: int
    limit: int
    model: str
    percent: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A call that was admitted and charged at `estimated`: it may run, and is to be settled once."""

    user_key: str
    request_id: str
    estimated: int
    limit: int
    held_at: datetime
    percent: int = 100


# A whole reserve, and the one write of a reserve that must be given up: together under 3 s.
RESERVE_S = 2.2
VOID_S = 0.6


class Reservation:
    """One invocation of reserve: all its attempts have one holder (rule 4)."""

    def __init__(
        self, documents: Documents, user_key: str, request_id: str, ask: Ask, *, memory: Memory, clock: Clock
    ) -> None:
        self._documents = documents
        self._user_key = user_key
        self._request_id = request_id
        self._ask = ask
        self._memory = memory
        self._clock = clock
        self._tried = False
        self._seen: Bucket | None = None
        # Bucket states, by update_time, from which an attempt without an answer may still be applied (rule 5).
        self._live: set[datetime | None] = set()
        self._now_us = 0

    @cached_property
    def _holder(self) -> str:
        return secrets.token_hex(16)

    def run(self) -> Hold:
        """Attempt until admitted or refused; see `Ledger.reserve`."""
        tries = Tries(RESERVE_S, self._clock)
        try:
            return repeat(lambda: self._attempt(tries), tries)
        except OutOfTries as end:
            return self._give_up(out_of_time(end.error, step="reserve"), cause=end.error)

    def check(self) -> None:
        """Refuse as `run` would, from what is known or one read; see `Ledger.check`."""
        tries = Tries(RESERVE_S, self._clock)
        try:
            bucket, _ = self._known() or (self._read(tries), None)
            call = self._documents.call(self._request_id, timeout_s=tries.rpc_s)
        except (*STORE_ERRORS, Corrupt, Unreadable) as error:
            raise out_of_time(error, step="reserve") from error
        if call is not None:
            self._claim(call)
        self._take(bucket)

    def look(self) -> None:
        """Refuse as `run` would now, and hold nothing; a read that this makes, `run` spares.

        Raises:
            BucketEmpty, TooLarge, Blocked, Duplicate, StoreUnavailable: as `Ledger.reserve`.
        """
        if self._known() is not None:
            return
        tries = Tries(RESERVE_S, self._clock)
        try:
            self._seen = self._read(tries)
            try:
                self._take(self._seen)
            except Refused:
                call = self._documents.call(self._request_id, timeout_s=tries.rpc_s)
                if call is not None:
                    self._claim(call)
                raise
        except (*STORE_ERRORS, Corrupt, Unreadable) as error:
            raise out_of_time(error, step="reserve") from error

    def _attempt(self, tries: Tries) -> Hold:
        known = None if self._tried else self._known()
        bucket, entry = known or (self._seen or self._read(tries), None)
        self._seen = None
        if self._tried:
            # Rule 4: the bucket is read before the call. An attempt is dead only if the bucket had moved on by then.
            call = self._documents.call(self._request_id, timeout_s=tries.rpc_s)
            if call is not None:
                return self._claim(call)
            self._live &= {bucket.updated}
        self._now_us = self._memory.time.now_us() or self._now_us
        try:
            level, limit = self._take(bucket)
        except Refused as refusal:
            if not self._tried:
                # A client that lost the reply of an admitted call is to learn of that, not that the bucket is empty.
                call = self._documents.call(self._request_id, timeout_s=tries.rpc_s)
                if call is not None:
                    return self._claim(call)
            return self._give_up(refusal, cause=None)
        return self._commit(bucket, entry, level, limit, tries.rpc_s)

    def _known(self) -> tuple[Bucket, KnownBucket] | None:
        """The bucket as it is known, if that will do: to admit it needs to be exact, to refuse also young (rule 8).

        Raises:
            Refused: it does, and does not cover the call; nothing was tried yet, so that nothing can be live.
        """
        entry = self._memory.known.get(self._documents.name)
        now_us = self._memory.time.now_us()
        if entry is None or now_us is None:
            return None
        self._now_us = now_us
        try:
            self._take(entry.bucket)
        except Refused:
            if self._memory.known.may_refuse(entry):
                raise
            return None
        return entry.bucket, entry

    def _read(self, tries: Tries) -> Bucket:
        read = self._documents.bucket(timeout_s=tries.rpc_s)
        self._memory.time.note(read.at_us)
        self._memory.known.put(self._documents.name, read.bucket)
        self._now_us = read.at_us
        return read.bucket

    def _take(self, bucket: Bucket) -> tuple[Level, int]:
        limit = bucket.limit(self._ask.limit, percent=self._ask.percent)
        if limit == 0:
            raise Blocked(limit=0)
        before = bucket.level or Level(tokens=limit, updated_us=self._now_us)
        if self._ask.estimate > limit:
            level = arithmetic.refill(before, limit=limit, now_us=self._now_us)
            raise TooLarge(estimate=self._ask.estimate, limit=limit, remaining=max(0, level.tokens))
        decision = arithmetic.take(before, cost=self._ask.estimate, limit=limit, now_us=self._now_us)
        if isinstance(decision, Short):
            remaining = max(0, decision.level.tokens)
            raise BucketEmpty(retry_after_s=decision.retry_after_s, remaining=remaining, limit=limit)
        return decision.level, limit

    def _commit(self, bucket: Bucket, entry: KnownBucket | None, level: Level, limit: int, timeout_s: float) -> Hold:
        self._tried = True
        # Rule 3: a chain of versions that starts anew must not fit another's.
        version = secrets.randbits(48) if bucket.version is None else bucket.version + 1
        try:
            commit = self._documents.reserve(
                self._request_id,
                holder=self._holder,
                estimated=self._ask.estimate,
                model=self._ask.model,
                bucket=bucket,
                level=level,
                limit=limit,
                version=version,
                now_us=self._now_us,
                timeout_s=timeout_s,
            )
        except STORE_ERRORS as failed:
            if not isinstance(failed, NOT_APPLIED):
                self._live.add(bucket.updated)
            self._memory.known.doubt(self._documents.name, entry)
            raise
        self._memory.time.note(to_us(commit.updated))
        after = replace(bucket, level=level, version=version, updated=commit.updated)
        self._memory.known.put(self._documents.name, after)
        return self._held(commit.updated, self._ask.estimate, limit)

    def _claim(self, call: CallDocument) -> Hold:
        """Ours, and admitted after all, or somebody else's, and never to run."""
        if call.status == Status.HELD and call.holder == self._holder:
            return self._held(call.updated, call.estimated, self._ask.limit)
        charged = {Status.HELD.value: call.estimated, Status.SETTLED.value: call.actual or 0}.get(call.status, 0)
        raise Duplicate(status=call.status, charged=charged)

    def _held(self, held_at: datetime, estimated: int, limit: int) -> Hold:
        return Hold(
            user_key=self._user_key,
            request_id=self._request_id,
            estimated=estimated,
            limit=limit,
            held_at=held_at,
            percent=self._ask.percent,
        )

    def _give_up(self, refusal: Refused, *, cause: Exception | None) -> Hold:
        """Refuse; but never with a live attempt, which could be applied after the refusal (rule 5)."""
        if not self._live:
            raise refusal from cause
        tries = Tries(VOID_S, self._clock)
        for _ in tries:
            try:
                self._documents.void(self._request_id, holder=self._holder, now_us=self._now_us, timeout_s=tries.rpc_s)
            except AlreadyExists:
                call = self._look_again(tries)
                if call is not None:
                    return self._claim(call)
            except STORE_ERRORS as failed:
                cause = failed
            else:
                raise refusal from cause
        emit(Event.RESERVE_UNRESOLVED, severity=Severity.ERROR, request_id=self._request_id)
        raise StoreUnavailable(retry_after_s=RETRY_AFTER_STORE_S) from cause

    def _look_again(self, tries: Tries) -> CallDocument | None:
        try:
            return self._documents.call(self._request_id, timeout_s=tries.rpc_s)
        except (*STORE_ERRORS, Corrupt):
            return None
