"""The bucket as the rest of the backend sees it: reserve, settle, and what a user has left."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from google.cloud import firestore

from firebreak.bucket import arithmetic
from firebreak.bucket.arithmetic import Level
from firebreak.bucket.documents import Documents
from firebreak.bucket.memory import KnownUsers, Memory
from firebreak.bucket.reserve import Ask, Hold, Reservation
from firebreak.bucket.settle import Settled, Settlement
from firebreak.store.clock import ServerClock
from firebreak.store.documents import Corrupt
from firebreak.store.outcome import STORE_ERRORS, Unreadable, unavailable
from firebreak.store.tries import Clock

RECENT = 10
OVERVIEW_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """A user's bucket as of now: `level` refilled, `lifetime` and `recent` as stored."""

    level: Level
    limit: int
    full_at_us: int
    lifetime: Mapping[str, Any]
    recent: list[dict[str, Any]]


class Ledger:
    """Admits calls and books them. One instance serves all threads."""

    def __init__(self, client: firestore.Client, clock: Clock | None = None) -> None:
        self._client = client
        self._clock = clock or Clock()
        monotonic = self._clock.monotonic
        self._memory = Memory(time=ServerClock(monotonic), known=KnownUsers(monotonic))

    def reserve(self, user_key: str, request_id: str, ask: Ask) -> Hold:
        """Charge the estimate and hold the call, in one commit.

        Raises:
            BucketEmpty: the bucket does not cover it now. Nothing was written (but for rule 5).
            TooLarge, Blocked: it never will.
            Duplicate: the id was used before; this use is charged nothing and must not run.
            Contention: other calls of this user won each time; nothing was charged.
            StoreUnavailable: no answer; the call may stay held and charged, once, and must not run.
        """
        return self.reservation(user_key, request_id, ask).run()

    def check(self, user_key: str, request_id: str, ask: Ask) -> None:
        """Refuse as `reserve` would, for the price of two reads at most, and hold nothing.

        Raises:
            BucketEmpty, TooLarge, Blocked, Duplicate, StoreUnavailable: as `reserve`.
        """
        self.reservation(user_key, request_id, ask).check()

    def settle(self, hold: Hold, *, actual: int, counters: Mapping[str, int]) -> Settled:
        """Book `actual` tokens for a held call, once, however often it is sent; `counters` add to the lifetime totals.

        Never raises for the store: a call that cannot be booked stays held at its estimate, and an event says so.
        """
        documents = Documents(self._client, hold.user_key)
        return Settlement(
            documents, hold, actual=actual, counters=counters, memory=self._memory, clock=self._clock
        ).run()

    def overview(self, user_key: str, *, limit: int, percent: int = 100) -> Overview:
        """What a user has left; costs no write.

        Raises:
            StoreUnavailable: no answer.
        """
        documents = Documents(self._client, user_key)
        try:
            read = documents.bucket(timeout_s=OVERVIEW_S)
            recent = documents.recent(RECENT, timeout_s=OVERVIEW_S)
        except (*STORE_ERRORS, Corrupt, Unreadable) as error:
            raise unavailable(error, step="overview") from error
        bucket, now_us = read.bucket, read.at_us
        limit = bucket.limit(limit, percent=percent)
        level = bucket.level or Level(tokens=limit, updated_us=now_us)
        level = arithmetic.refill(level, limit=limit, now_us=now_us) if limit else Level(tokens=0, updated_us=0)
        return Overview(
            level=level,
            limit=limit,
            full_at_us=arithmetic.full_at_us(level, limit=limit) if limit else 0,
            lifetime=read.lifetime,
            recent=recent,
        )

    def reservation(self, user_key: str, request_id: str, ask: Ask) -> Reservation:
        """For who has something to do between a look at the bucket and the reserve."""
        documents = Documents(self._client, user_key)
        return Reservation(documents, user_key, request_id, ask, memory=self._memory, clock=self._clock)
