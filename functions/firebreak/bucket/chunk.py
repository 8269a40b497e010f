"""How much to lease at a time, from levels that refill by the hour: no clock, no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass

from firebreak.bucket.arithmetic import HOUR_US, Level, refill

# Beyond what is needed a lease takes at most this part of what is there, so that leases shrink as the limit nears.
PART = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
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


def amount(tokens: int, want: Want) -> int:
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
