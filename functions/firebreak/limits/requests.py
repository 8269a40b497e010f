"""Hourly requests of each user, read and write apart: exact over all instances, at a fraction of a write each.

An instance leases requests in chunks, one commit a chunk. What it admits was taken from the user's level before, so
that all instances together never admit more than the levels gave; and as a lease lives LEASE_S, at most
`limit * (1 + (W + LEASE_S) / hour)` requests are admitted in any window W.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Literal

from google.cloud import firestore

from firebreak.bucket import arithmetic
from firebreak.bucket.arithmetic import Short
from firebreak.errors import RequestsUsedUp
from firebreak.limits.credit import LEASE_S, Grant, Grants, LeasedTokens, LeaseRequest
from firebreak.limits.lease import LeasePolicy, LevelDocument, Source
from firebreak.store.clock import ServerClock
from firebreak.store.outcome import out_of_time, unavailable
from firebreak.store.times import DAY_US, HOUR_US
from firebreak.store.tries import Clock, OutOfTries, Tries, repeat

type Kind = Literal["read", "write"]

COLLECTION = "request_buckets"
MOST = 32
# What a user who comes back after a while is leased: a few calls cost one write, and what is not used lapses.
FIRST = 8
# Users an instance remembers, 2 KB each; the one not seen for longest goes first, with what is leased for it.
USERS = 10_000
TAKE_S = 2.2
# Levels are full an hour after the last lease: a document may go, and nobody gains by it.
TERMS = LeasePolicy(kept_us=DAY_US, trusted_s=600.0, pause_s=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _User:
    source: Source
    credits: Mapping[Kind, LeasedTokens]
    leasing: Lock = field(default_factory=Lock)


class Rate:
    """Admits requests. One instance serves all threads."""

    def __init__(self, client: firestore.Client, clock: Clock | None = None) -> None:
        self._client = client
        self._clock = clock or Clock()
        self._time = ServerClock(self._clock.monotonic)
        self._lock = Lock()
        self._users: OrderedDict[str, _User] = OrderedDict()

    def take(self, user_key: str, kind: Kind, limit: int) -> None:
        """Admit one request of a user who has `limit` of this kind an hour.

        Raises:
            RequestsUsedUp: not now; without a retry-after: never. Nothing was written.
            Contention: other instances won each time; nothing was admitted.
            StoreUnavailable: no answer; a chunk of requests may be gone.
        """
        if limit < 1:
            raise RequestsUsedUp(kind=kind, remaining=0, limit=0)
        user = self._user(user_key)
        if user.credits[kind].take(1):
            return
        self._refuse(user, kind, limit)
        tries = Tries(TAKE_S, self._clock)
        # One thread leases for a user, and the others wait for what it brings; other users do not wait.
        if not user.leasing.acquire(timeout=tries.left_s):
            raise unavailable(TimeoutError(), step="rate")
        try:
            if not user.credits[kind].take(1):
                self._lease(user, kind, limit, tries)
        finally:
            user.leasing.release()

    def _lease(self, user: _User, kind: Kind, limit: int, tries: Tries) -> None:
        self._refuse(user, kind, limit)
        credit = user.credits[kind]
        want = LeaseRequest(need=1, size=max(FIRST, credit.next_size(goal_s=LEASE_S, most=MOST)))

        def attempt() -> Grants | None:
            lapses_s = self._clock.monotonic() + LEASE_S
            requests = user.source.lease({kind: limit}, want, tries)
            if requests:
                return credit.leased(Grant(tokens=requests, lapses_s=lapses_s), use=1)
            self._refuse(user, kind, limit)
            return None

        try:
            repeat(attempt, tries)
        except OutOfTries as end:
            raise out_of_time(end.error, step="rate") from end.error

    def _refuse(self, user: _User, kind: Kind, limit: int) -> None:
        """Refuse from memory, if what is known proves that there is no request left."""
        held = user.source.holding({kind: limit})
        level = held and held.levels.get(kind)
        if not held or not level:
            return
        decision = arithmetic.take(level, cost=1, limit=limit, now_us=held.at_us, period_us=HOUR_US)
        if isinstance(decision, Short):
            raise RequestsUsedUp(kind=kind, retry_after_s=decision.retry_after_s, remaining=0, limit=limit)

    def _user(self, name: str) -> _User:
        with self._lock:
            user = self._users.get(name)
            if user is None:
                user = self._users[name] = self._new(name)
                if len(self._users) > USERS:
                    self._users.popitem(last=False)
            self._users.move_to_end(name)
            return user

    def _new(self, name: str) -> _User:
        source = Source(LevelDocument(self._client, COLLECTION, name), terms=TERMS, time=self._time, clock=self._clock)
        monotonic = self._clock.monotonic
        return _User(source=source, credits={"read": LeasedTokens(monotonic), "write": LeasedTokens(monotonic)})
