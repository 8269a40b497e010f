"""What an instance has leased and not used yet: tokens that each lapse at their time."""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from threading import Lock

from firebreak.bucket.chunk import next_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Lot:
    """Tokens of one lease, good until `lapses_s` on the monotonic clock, wherever they go until then."""

    tokens: int
    lapses_s: float


type Lots = tuple[Lot, ...]

# How long tokens that were leased may be handed out.
LEASE_S = 300.0


class Credit:
    """Leased tokens for one purpose, shared by all threads; those that lapse first are used first."""

    __slots__ = ("_leased_s", "_lock", "_lots", "_monotonic", "_size")

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = Lock()
        self._lots: Lots = ()
        self._size = 0
        self._leased_s = -math.inf

    @property
    def tokens(self) -> int:
        """What there is."""
        with self._lock:
            return self._alive()

    def take(self, tokens: int) -> Lots | None:
        """Take so many tokens, or none."""
        with self._lock:
            return self._take(tokens) if self._alive() >= tokens else None

    def put(self, lots: Iterable[Lot]) -> None:
        """Take back what was not used after all."""
        with self._lock:
            self._put(lots)

    def leased(self, lot: Lot, *, use: int) -> Lots:
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

    def _put(self, lots: Iterable[Lot]) -> None:
        # One lot for each lease, however often parts of it come back.
        tokens: Counter[float] = Counter()
        for lot in (*self._lots, *lots):
            tokens[lot.lapses_s] += lot.tokens
        self._lots = tuple(Lot(tokens=tokens[lapses_s], lapses_s=lapses_s) for lapses_s in sorted(tokens))

    def _take(self, tokens: int) -> Lots:
        taken, self._lots = split(self._lots, tokens)
        return taken


def split(lots: Lots, tokens: int) -> tuple[Lots, Lots]:
    """The lots that make up so many tokens, from the first on, and the rest."""
    for number, lot in enumerate(lots):
        if lot.tokens > tokens:
            rest = (replace(lot, tokens=lot.tokens - tokens), *lots[number + 1 :])
            return (*lots[:number], replace(lot, tokens=tokens)) if tokens else lots[:number], rest
        tokens -= lot.tokens
    return lots, ()
