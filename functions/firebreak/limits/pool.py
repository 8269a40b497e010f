"""The app's tokens of an hour, for all users together, in a fixed number of shards; each tier has a share of its own.

A draw comes out of the tier's own share first, then out of what no share reserves; never out of another share. It costs
nothing but memory while what the instance has leased lasts. What is drawn and not given back, in any window W, is at
most `tokens_per_hour * (1 + (W + LEASE_S) / hour)`.
"""

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

from google.cloud import firestore

from firebreak.errors import PoolEmpty
from firebreak.events import Event, Severity, emit
from firebreak.limits import credit
from firebreak.limits.credit import LEASE_S, Grant, Grants, Holding, LeasedTokens, LeaseRequest, split
from firebreak.limits.lease import LeasePolicy, LevelDocument, Source, look
from firebreak.settings.knobs import MOST_TOKENS
from firebreak.store.clock import ServerClock
from firebreak.store.documents import Corrupt, document_id
from firebreak.store.outcome import Unreadable, unavailable
from firebreak.store.times import HOUR_US, SECOND_US
from firebreak.store.tries import Clock, OutOfTries, Tries, repeat

COMMON = "common"
SHARDS = 16
HOUR_S = HOUR_US // SECOND_US
# What no shard covers alone comes from several, from each at least this part of it.
PARTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Tokens an hour by level of each shard, its own level first; `second`: what a whole shard gains in a second."""

    limits: Sequence[Mapping[str, int]]
    second: int

    @property
    def most(self) -> int:
        """More than this no draw can ever be."""
        return sum(sum(limits.values()) for limits in self.limits)

    def least(self, need: int) -> int:
        """The fewest tokens to lease of a shard.

        With less than a second's gain it would change more than once a second; and a few leases are to do, unless that
        is more than so few shards can hold.
        """
        return max(self.second, min(need // PARTS, self.most // SHARDS // 2))

    def plan(self, held: Mapping[int, Holding], need: int) -> dict[int, int]:
        """How much to lease of which of these shards; nothing if they do not cover it."""
        tokens = {number: holding.tokens for number, holding in held.items()}
        return credit.spread(tokens, need=need, least=self.least(need))

    def ready_s(self, held: Mapping[int, Holding], need: int) -> int:
        """Seconds until these shards will cover it, if nobody else takes."""

        def ready(later_s: int) -> bool:
            by_us = later_s * SECOND_US
            then = {number: credit.later(h, self.limits[number], by_us=by_us) for number, h in held.items()}
            return bool(self.plan(then, need))

        return bisect.bisect_left(range(HOUR_S), True, lo=1, key=ready)


def divide(tokens_per_hour: int, percents: Mapping[str, int]) -> dict[str, Share]:
    """All shares by name, and the one of those who have none: what no share reserves is for all."""
    sizes = [tokens_per_hour // SHARDS + (number < tokens_per_hour % SHARDS) for number in range(SHARDS)]
    second = -(-sizes[0] // HOUR_S)
    return {
        name: Share(limits=[_limits(size, name, percents) for size in sizes], second=second)
        for name in (*percents, COMMON)
    }


def _limits(size: int, share: str, percents: Mapping[str, int]) -> dict[str, int]:
    reserved = {name: size * percent // 100 for name, percent in percents.items()}
    own = {document_id(share): reserved[share]} if share in reserved else {}
    limits = own | {COMMON: size - sum(reserved.values())}
    return {name: limit for name, limit in limits.items() if limit}


COLLECTION = "pool"
# A lease is to last so long: then a hundred instances change each shard's document about once a second at most.
GOAL_S = 10.0
TAKE_S = 2.2
# Others write a shard all the time: what is known is soon behind, and a read is cheaper than a commit in vain.
TERMS = LeasePolicy(kept_us=None, trusted_s=1.0, pause_s=10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Tokens that one call took from the pool; what it does not spend is given back once."""

    share: str
    lots: Grants


@dataclass(frozen=True, slots=True, kw_only=True)
class _ShareState:
    """A share, and what this instance has leased of it."""

    share: Share
    credit: LeasedTokens
    leasing: Lock = field(default_factory=Lock)


class Pool:
    """Admits draws. One instance serves all threads; with 0 tokens an hour there is no pool, and it admits all."""

    def __init__(
        self,
        client: firestore.Client,
        *,
        tokens_per_hour: int,
        shares: Mapping[str, int],
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or Clock()
        self._unlimited = tokens_per_hour == 0
        time = ServerClock(self._clock.monotonic)
        documents = [LevelDocument(client, COLLECTION, str(number)) for number in range(SHARDS)]
        self._shards = [Source(document, terms=TERMS, time=time, clock=self._clock) for document in documents]
        self._purses = {
            name: _ShareState(share=share, credit=LeasedTokens(self._clock.monotonic))
            for name, share in divide(tokens_per_hour, shares).items()
        }

    def take(self, share: str, tokens: int) -> Draw:
        """Draw tokens, at least 1, for a user of a tier; one without a share draws from what is common alone.

        Raises:
            PoolEmpty: not now; without a retry-after: never.
            StoreUnavailable: no answer; what was leased meanwhile is there for the next draw.
        """
        name = share if share in self._purses else COMMON
        if self._unlimited:
            return Draw(share=name, lots=())
        purse = self._purses[name]
        return Draw(share=name, lots=purse.credit.take(tokens) or self._leased(purse, tokens))

    def give_back(self, draw: Draw, tokens: int) -> None:
        """Return tokens of a draw that were provably not spent, for this instance's next draws, until they lapse."""
        spent = sum(lot.tokens for lot in draw.lots) - tokens
        _, back = split(draw.lots, max(0, spent))
        self._purses[draw.share].credit.put(back)

    def _leased(self, purse: _ShareState, tokens: int) -> Grants:
        if tokens > purse.share.most:
            raise PoolEmpty("The request is more than the app's tokens of an hour.")
        self._refuse(purse, tokens)
        tries = Tries(TAKE_S, self._clock)
        # One thread leases for a share, and the others wait for what it brings; other shares do not wait.
        if not purse.leasing.acquire(timeout=tries.left_s):
            raise unavailable(TimeoutError(), step="pool")
        try:
            return self._lease(purse, tokens, tries)
        finally:
            purse.leasing.release()

    def _lease(self, purse: _ShareState, tokens: int, tries: Tries) -> Grants:
        try:
            # One corrupt shard does not end it: the others may cover the draw.
            return repeat(
                lambda: purse.credit.take(tokens) or self._attempt(purse, tokens, tries), tries, final=(Unreadable,)
            )
        except OutOfTries as end:
            raise unavailable(end.error, step="pool") from end.error

    def _attempt(self, purse: _ShareState, tokens: int, tries: Tries) -> Grants | None:
        """Lease by what is remembered; if that does not do, after a look at one shard more, then at all."""
        for looks in (0, 1, SHARDS):
            need = max(1, tokens - purse.credit.tokens)
            self._look(self._unsure(purse.share, need)[:looks], tries)
            plan = purse.share.plan(self._held(purse.share), need)
            if len(plan) > 1 and not all(self._shards[number].fresh for number in plan):
                # Of several only as they are now: else a draw that is refused in the end might have taken some.
                continue
            for number, part in plan.items():
                self._lease_of(number, purse, part, purse.share.least(need), tries)
            lots = purse.credit.take(tokens)
            if lots:
                return lots
        self._refuse(purse, tokens)
        return None

    def _lease_of(self, number: int, purse: _ShareState, need: int, least: int, tries: Tries) -> None:
        want = LeaseRequest(need=need, size=purse.credit.next_size(goal_s=GOAL_S, most=MOST_TOKENS), least=least)
        lapses_s = self._clock.monotonic() + LEASE_S
        tokens = self._shards[number].lease(purse.share.limits[number], want, tries)
        if tokens:
            purse.credit.leased(Grant(tokens=tokens, lapses_s=lapses_s), use=0)

    def _unsure(self, share: Share, need: int) -> list[int]:
        """The shards that a look may show to hold something."""
        held = self._held(share)
        least = share.least(need)
        return [n for n in self._order() if n not in held or (held[n].tokens >= least and not self._shards[n].fresh)]

    def _look(self, numbers: Sequence[int], tries: Tries) -> None:
        if not numbers:
            return
        look([self._shards[number] for number in numbers], timeout_s=tries.rpc_s)
        for number in numbers:
            if self._shards[number].broken:
                emit(Event.STORE, severity=Severity.ERROR, step="pool", error="Corrupt", shard=number)

    def _refuse(self, purse: _ShareState, tokens: int) -> None:
        """Refuse from memory, if what is known proves that the pool does not cover it."""
        held, need = self._held(purse.share), max(1, tokens - purse.credit.tokens)
        if len(held) < SHARDS or purse.share.plan(held, need):
            return
        if any(shard.broken for shard in self._shards):
            raise unavailable(Corrupt(), step="pool")
        raise PoolEmpty(retry_after_s=purse.share.ready_s(held, need))

    def _held(self, share: Share) -> dict[int, Holding]:
        """What is known of the shards, in a random order, so that instances spread over them."""
        held = {number: self._shards[number].holding(share.limits[number]) for number in self._order()}
        return {number: holding for number, holding in held.items() if holding is not None}

    def _order(self) -> list[int]:
        return sorted(range(SHARDS), key=lambda _: self._clock.uniform(0, 1))
