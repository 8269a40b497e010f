"""Settle: book what a held call really cost, once, after the model answered.

The numbered rules are those of docs/bucket.md; each has a test that fails without it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from google.api_core.exceptions import NotFound

from firebreak.bucket import arithmetic
from firebreak.bucket.arithmetic import Level
from firebreak.bucket.documents import Bucket, Documents, Status
from firebreak.bucket.memory import Memory
from firebreak.bucket.reserve import Hold
from firebreak.events import Event, Severity, emit, pseudonym
from firebreak.store.times import to_us
from firebreak.store.tries import Clock, OutOfTries, Tries, repeat

SETTLE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What became of a settle: `remaining` tokens, None where that is not known; `booked` False: it stays held."""

    booked: bool
    remaining: int | None


UNBOOKED = Settled(booked=False, remaining=None)


class Settlement:
    """One invocation of settle: `actual` is frozen, and the same commit is sent until an answer is known (rule 6)."""

    def __init__(
        self,
        documents: Documents,
        hold: Hold,
        *,
        actual: int,
        counters: Mapping[str, int],
        memory: Memory,
        clock: Clock,
    ) -> None:
        self._documents = documents
        self._hold = hold
        self._held_at = hold.held_at
        self._actual = actual
        self._increments = {f"lifetime.{name}": by for name, by in counters.items()} | {"version": 1}
        self._memory = memory
        self._clock = clock
        self._sent = False
        self._bucket_gone = False

    def run(self) -> Settled:
        """Send until booked, or out of time; see `Ledger.settle`."""
        tries = Tries(SETTLE_S, self._clock)
        try:
            return repeat(lambda: self._attempt(tries), tries, final=())
        except OutOfTries as end:
            return self._unbooked(end.error)

    def _attempt(self, tries: Tries) -> Settled:
        if self._sent and self._is_done(tries.rpc_s):
            return Settled(booked=True, remaining=None)
        self._sent = True
        try:
            return self._commit(tries)
        except NotFound:
            # The bucket alone can be missing: the call was seen.
            self._bucket_gone = True
            raise

    def _unbooked(self, error: Exception | None) -> Settled:
        emit(
            Event.SETTLE_FAILED,
            severity=Severity.ERROR,
            user=pseudonym(self._hold.user_key),
            request_id=self._hold.request_id,
            estimated=self._hold.estimated,
            actual=self._actual,
            error=type(error).__name__,
        )
        return UNBOOKED

    def _is_done(self, timeout_s: float) -> bool:
        """Look: a call that is no longer held was settled, by an earlier copy of this commit or by somebody else."""
        call = self._documents.call(self._hold.request_id, timeout_s=timeout_s)
        if call is None or call.status != Status.HELD:
            return True
        self._held_at = call.updated
        return False

    def _commit(self, tries: Tries) -> Settled:
        if self._actual > self._hold.estimated:
            return self._commit_debt(tries)
        if self._bucket_gone:
            return self._commit_alone(tries)
        refund = self._hold.estimated - self._actual
        before = self._memory.known.settling(self._documents.name)
        commit = self._documents.settle(
            self._hold.request_id,
            held_at=self._held_at,
            actual=self._actual,
            increments=self._increments | {"tokens": refund},
            timeout_s=tries.rpc_s,
        )
        self._memory.time.note(to_us(commit.updated))
        self._memory.known.settled(self._documents.name, before, commit, refund=refund)
        return Settled(booked=True, remaining=max(0, commit.sums["tokens"]))

    def _commit_alone(self, tries: Tries) -> Settled:
        self._documents.settle(
            self._hold.request_id,
            held_at=self._held_at,
            actual=self._actual,
            increments={},
            timeout_s=tries.rpc_s,
        )
        return Settled(booked=True, remaining=None)

    def _commit_debt(self, tries: Tries) -> Settled:
        read = self._documents.bucket(timeout_s=tries.rpc_s)
        bucket = read.bucket
        if bucket.level is None or bucket.updated is None:
            return self._commit_alone(tries)
        level = self._owed(bucket, bucket.level, read.at_us)
        self._memory.known.settling(self._documents.name)
        self._documents.settle_debt(
            self._hold.request_id,
            held_at=self._held_at,
            actual=self._actual,
            bucket=bucket,
            level=level,
            limit=self._hold.limit,
            increments=self._increments,
            timeout_s=tries.rpc_s,
        )
        return Settled(booked=True, remaining=max(0, level.tokens))

    def _owed(self, bucket: Bucket, level: Level, now_us: int) -> Level:
        """The level as of now less what the call cost above its estimate (rule 7): may be negative."""
        limit = bucket.limit(self._hold.limit, percent=self._hold.percent)
        # Whoever was blocked meanwhile owes all the same, and is refilled again once that ends.
        full = arithmetic.refill(level, limit=limit, now_us=now_us) if limit else level
        debt = self._actual - self._hold.estimated
        return Level(tokens=full.tokens - debt, updated_us=full.updated_us)
