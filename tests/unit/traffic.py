"""A simulation of many instances on one pool: the real decisions, with time, chance and the network played.

What `pool.py` and `lease.py` do between two replies is done here by the same pure code. Each RPC takes a while, in
which others go on, and a commit counts only if nobody else's came first.
"""

import heapq
import random
from collections import deque
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count

from firebreak.bucket.arithmetic import Level
from firebreak.limits import credit
from firebreak.limits.credit import LEASE_S, Grant, Grants, Holding, LeasedTokens, LeaseRequest, split
from firebreak.limits.lease import REFUSE_S
from firebreak.limits.pool import GOAL_S, SHARDS, TAKE_S, TERMS, Share, divide
from firebreak.settings.knobs import MOST_TOKENS
from firebreak.store.times import SECOND_US

RPC_S = (0.005, 0.025)
WINDOW_S = 10.0

type Process[T] = Generator[float, None, T]
"""Yields how long it waits."""


@dataclass(slots=True)
class Document:
    """One shard in the store, and when it was read and changed."""

    levels: dict[str, Level] = field(default_factory=dict)
    version: int = 0
    commits: list[float] = field(default_factory=list)
    vain: list[float] = field(default_factory=list)
    reads: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    levels: Mapping[str, Level]
    version: int
    at_s: float
    resumes_s: float


class World:
    """The store, the clock, and what goes on."""

    def __init__(self, *, tokens_per_hour: int, shares: Mapping[str, int], seed: int, full: bool) -> None:
        self.now_s = 0.0
        self.chance = random.Random(seed)
        self.shares = divide(tokens_per_hour, shares)
        self.documents = [Document() for _ in range(SHARDS)]
        self.admitted = self.refused = 0
        self._queue: list[tuple[float, int, Process[None]]] = []
        self._number = count()
        if not full:
            names = {name for share in self.shares.values() for name in share.limits[0]}
            for document in self.documents:
                document.levels = dict.fromkeys(names, Level(tokens=0, updated_us=0))

    def start(self, process: Process[None]) -> None:
        self._wake(0.0, process)

    def run(self, until_s: float) -> None:
        while self._queue and self._queue[0][0] <= until_s:
            self.now_s, _, process = heapq.heappop(self._queue)
            for wait_s in process:
                self._wake(wait_s, process)
                break

    def rpc(self) -> Process[None]:
        yield self.chance.uniform(*RPC_S)

    def _wake(self, wait_s: float, process: Process[None]) -> None:
        heapq.heappush(self._queue, (self.now_s + wait_s, next(self._number), process))


class Instance:
    """One instance, as one share sees it: `Pool` and `Source`, step by step."""

    def __init__(self, world: World, share: str) -> None:
        self.world = world
        self.share: Share = world.shares[share]
        self.credit = LeasedTokens(lambda: world.now_s)
        self.known: dict[int, Known] = {}
        self.leasing = False

    def take(self, tokens: int) -> Process[Grants | None]:
        lots = self.credit.take(tokens)
        if lots or self._proves_empty(tokens):
            return lots
        end_s = self.world.now_s + TAKE_S
        while self.leasing:
            yield 0.01
        self.leasing = True
        try:
            while self.world.now_s < end_s:
                lots = self.credit.take(tokens) or (yield from self._attempt(tokens))
                if lots or self._proves_empty(tokens):
                    return lots
                yield self.world.chance.uniform(0, 0.1)
            return None
        finally:
            self.leasing = False

    def _attempt(self, tokens: int) -> Process[Grants | None]:
        for looks in (0, 1, SHARDS):
            need = max(1, tokens - self.credit.tokens)
            yield from self._look(self._unsure(need)[:looks])
            plan = self.share.plan(self._held(), need)
            if len(plan) > 1 and not all(map(self._fresh, plan)):
                continue
            for number, part in plan.items():
                size = self.credit.next_size(goal_s=GOAL_S, most=MOST_TOKENS)
                lapses_s = self.world.now_s + LEASE_S
                want = LeaseRequest(need=part, size=size, least=self.share.least(need))
                leased = yield from self._lease(number, want)
                if leased is None:
                    return None
                if leased:
                    self.credit.leased(Grant(tokens=leased, lapses_s=lapses_s), use=0)
            lots = self.credit.take(tokens)
            if lots:
                return lots
        return None

    def _lease(self, number: int, want: LeaseRequest) -> Process[int | None]:
        """None: somebody else's commit came first."""
        if not self._fresh(number):
            yield from self._look([number])
        known, document = self.known[number], self.world.documents[number]
        held = credit.holding(known.levels, self.share.limits[number], at_us=round(self.world.now_s * SECOND_US))
        tokens = credit.amount(held.tokens, want)
        if not tokens:
            return 0
        yield from self.world.rpc()
        if document.version != known.version:
            document.vain.append(self.world.now_s)
            del self.known[number]
            return None
        document.levels |= credit.drawn(held.levels, tokens)
        document.version += 1
        document.commits.append(self.world.now_s)
        self._see(number)
        return tokens

    def _look(self, numbers: list[int]) -> Process[None]:
        if numbers:
            yield from self.world.rpc()
        for number in numbers:
            self.world.documents[number].reads.append(self.world.now_s)
            self._see(number)

    def _see(self, number: int) -> None:
        document, now_s = self.world.documents[number], self.world.now_s
        resumes_s = now_s + self.world.chance.uniform(0, TERMS.pause_s)
        self.known[number] = Known(
            levels=dict(document.levels), version=document.version, at_s=now_s, resumes_s=resumes_s
        )

    def _fresh(self, number: int) -> bool:
        return number in self.known and self.world.now_s - self.known[number].at_s <= TERMS.trusted_s

    def _held(self) -> dict[int, Holding]:
        now_s = self.world.now_s
        numbers = self.world.chance.sample(range(SHARDS), SHARDS)
        return {
            number: credit.holding(
                known.levels,
                self.share.limits[number],
                at_us=round((known.at_s if now_s < known.resumes_s else now_s) * SECOND_US),
            )
            for number in numbers
            if (known := self.known.get(number)) is not None and now_s - known.at_s <= REFUSE_S
        }

    def _unsure(self, need: int) -> list[int]:
        held, least = self._held(), self.share.least(need)
        numbers = self.world.chance.sample(range(SHARDS), SHARDS)
        return [n for n in numbers if n not in held or (held[n].tokens >= least and not self._fresh(n))]

    def _proves_empty(self, tokens: int) -> bool:
        held, need = self._held(), max(1, tokens - self.credit.tokens)
        return len(held) == SHARDS and not self.share.plan(held, need)


def caller(
    instance: Instance, *, estimates: tuple[int, int], spent: float, lasts_s: float, retry_s: float
) -> Process[None]:
    """One thread's calls: each draws its estimate, lasts, and gives back what it did not spend."""
    chance, world = instance.world.chance, instance.world
    while True:
        yield chance.expovariate(1.0)
        estimate = chance.randint(*estimates)
        lots = yield from instance.take(estimate)
        if not lots:
            world.refused += 1
            yield chance.uniform(0, 2 * retry_s)
            continue
        world.admitted += 1
        yield chance.expovariate(1 / lasts_s)
        _, back = split(lots, round(estimate * spent))
        instance.credit.put(back)


def busiest(times: Iterable[float], *, since_s: float = 0.0) -> float:
    """The most a second in any window."""
    window: deque[float] = deque()
    most = 0
    for time_s in times:
        if time_s < since_s:
            continue
        window.append(time_s)
        while window[0] <= time_s - WINDOW_S:
            window.popleft()
        most = max(most, len(window))
    return most / WINDOW_S
