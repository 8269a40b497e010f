"""How much to lease at a time, and what an instance has leased and not used yet: no I/O."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from threading import Lock

from firebreak.bucket.arithmetic import Level, refill
from firebreak.store.times import HOUR_US

# Beyond what is needed a lease takes at most this part of what is there, so that leases shrink as the limit nears.
PART = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRequest:
    """What a lease is to bring: `need` tokens now, up to `size` to have in stock, and never fewer than `least`."""

    need: int
    size: int
    least: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """The levels of a document, refilled until `at_us`."""

    levels: Mapping[str, Level]
    at_us: int

    @property
    def tokens(self) -> int:
        """Tokens of all levels together; a debt of one is not paid by another."""
        return sum(max(0, level.tokens) for level in self.levels.values())


def holding(levels: Mapping[str, Level], limits: Mapping[str, int], *, at_us: int) -> Holding:
    """The levels that `limits` names (tokens an hour, at least 1); one that is not there yet is full."""
    refilled = {
        name: refill(levels[name], limit=limit, now_us=at_us, period_us=HOUR_US)
        if name in levels
        else Level(tokens=limit, updated_us=at_us)
        for name, limit in limits.items()
    }
    return Holding(levels=refilled, at_us=at_us)


def later(held: Holding, limits: Mapping[str, int], *, by_us: int) -> Holding:
    """The same levels later, if nobody takes."""
    return holding(held.levels, limits, at_us=held.at_us + by_us)


def next_size(size: int, *, elapsed_s: float, goal_s: float, lives_s: float, most: int) -> int:
    """The stock to lease next: twice the last lease if that lasted no longer than the goal, half if it has lapsed."""
    if elapsed_s > lives_s:
        return max(1, size // 2)
    return min(most, size * 2) if elapsed_s <= goal_s else min(most, size)


def amount(tokens: int, want: LeaseRequest) -> int:
    """What to lease of `tokens`; 0 if they do not cover what is needed."""
    floor = max(want.need, want.least)
    return 0 if tokens < floor else max(floor, min(want.size, tokens // PART))


def spread[K](tokens: Mapping[K, int], *, need: int, least: int) -> dict[K, int]:
    """What to lease from each of several documents, to come to `need`; nothing if they do not cover it.

    The first that covers it alone, else the fullest ones; one that holds fewer than `least` is left alone.
    """
    alone = next((key for key, held in tokens.items() if held >= max(need, least)), None)
    if alone is not None:
        return {alone: need}
    fullest = sorted((key for key, held in tokens.items() if held >= least), key=lambda key: -tokens[key])
    if sum(tokens[key] for key in fullest) < need:
        return {}
    parts: dict[K, int] = {}
    for key in fullest:
        parts[key] = min(tokens[key], need)
        need -= parts[key]
        if not need:
            break
    return parts


def drawn(levels: Mapping[str, Level], tokens: int) -> dict[str, Level]:
    """The levels that change when `tokens` are taken, from the first as far as it goes, then from the next."""
    changed: dict[str, Level] = {}
    for name, level in levels.items():
        part = min(max(0, level.tokens), tokens)
        if part:
            changed[name] = Level(tokens=level.tokens - part, updated_us=level.updated_us)
            tokens -= part
    return changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Tokens of one lease, good until `lapses_s` on the monotonic clock, wherever they go until then."""

    tokens: int
    lapses_s: float


type Grants = tuple[Grant, ...]

# How long tokens that were leased may be handed out.
LEASE_S = 300.0


class LeasedTokens:
    """Leased tokens for one purpose, shared by all threads; those that lapse first are used first."""

    __slots__ = ("_leased_s", "_lock", "_lots", "_monotonic", "_size")

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = Lock()
        self._lots: Grants = ()
        self._size = 0
        self._leased_s = -math.inf

    @property
    def tokens(self) -> int:
        """What there is."""
        with self._lock:
            return self._alive()

    def take(self, tokens: int) -> Grants | None:
        """Take so many tokens, or none."""
        with self._lock:
            return self._take(tokens) if self._alive() >= tokens else None

    def put(self, lots: Iterable[Grant]) -> None:
        """Take back what was not used after all."""
        with self._lock:
            self._put(lots)

    def leased(self, lot: Grant, *, use: int) -> Grants:
        """Take in what was leased just now, but for so many of its tokens, which are given out at once."""
        with self._lock:
            self._size, self._leased_s = lot.tokens, self._monotonic()
            used, rest = split((lot,), use)
            self._put(rest)
            return used

    def next_size(self, *, goal_s: float, most: int) -> int:
        """The stock that the next lease is to bring."""
        with self._lock:
            elapsed_s = self._monotonic() - self._leased_s
            return next_size(self._size, elapsed_s=elapsed_s, goal_s=goal_s, lives_s=LEASE_S, most=most)

    def _alive(self) -> int:
        now_s = self._monotonic()
        if self._lots and self._lots[0].lapses_s <= now_s:
            self._lots = tuple(lot for lot in self._lots if lot.lapses_s > now_s)
        return sum(lot.tokens for lot in self._lots)

    def _put(self, lots: Iterable[Grant]) -> None:
        # One lot for each lease, however often parts of it come back.
        tokens: Counter[float] = Counter()
        for lot in (*self._lots, *lots):
            tokens[lot.lapses_s] += lot.tokens
        self._lots = tuple(Grant(tokens=tokens[lapses_s], lapses_s=lapses_s) for lapses_s in sorted(tokens))

    def _take(self, tokens: int) -> Grants:
        taken, self._lots = split(self._lots, tokens)
        return taken


def split(lots: Grants, tokens: int) -> tuple[Grants, Grants]:
    """The lots that make up so many tokens, from the first on, and the rest."""
    for number, lot in enumerate(lots):
        if lot.tokens > tokens:
            rest = (replace(lot, tokens=lot.tokens - tokens), *lots[number + 1 :])
            return (*lots[:number], replace(lot, tokens=tokens)) if tokens else lots[:number], rest
        tokens -= lot.tokens
    return lots, ()
