"""Token bucket arithmetic in whole tokens and microseconds: no clock, no I/O."""

from dataclasses import dataclass

from firebreak.store.times import DAY_US, SECOND_US


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Tokens in a bucket (negative: a debt) and the time, in microseconds, up to which they have been refilled."""

    tokens: int
    updated_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The cost fits: `level` is what is left."""

    level: Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Short:
    """The cost does not fit now: `level` is what there is, `retry_after_s` when it will fit, if nobody else takes."""

    level: Level
    retry_after_s: int


def refill(level: Level, *, limit: int, now_us: int, period_us: int = DAY_US) -> Level:
    """Add what `limit` tokens a period have bought since, in whole tokens, never above `limit`.

    `updated_us` moves only by the time that bought them, rounded up to a microsecond, so that frequent calls lose
    nothing that counts, and it never moves back.
    """
    gain = limit * max(0, now_us - level.updated_us) // period_us
    if level.tokens + gain >= limit:
        return Level(tokens=limit, updated_us=max(level.updated_us, now_us))
    bought_us = time_for(gain, limit=limit, period_us=period_us)
    return Level(tokens=level.tokens + gain, updated_us=level.updated_us + bought_us)


def take(level: Level, *, cost: int, limit: int, now_us: int, period_us: int = DAY_US) -> Taken | Short:
    """Take `cost` from the refilled level if it covers it; 1 <= cost <= limit."""
    if not 1 <= cost <= limit:
        raise ValueError(f"cost must be between 1 and {limit}, not {cost}")
    full = refill(level, limit=limit, now_us=now_us, period_us=period_us)
    if full.tokens >= cost:
        return Taken(level=Level(tokens=full.tokens - cost, updated_us=full.updated_us))
    ready_us = full.updated_us + time_for(cost - full.tokens, limit=limit, period_us=period_us)
    return Short(level=full, retry_after_s=max(1, -(-(ready_us - now_us) // SECOND_US)))


def full_at_us(level: Level, *, limit: int, period_us: int = DAY_US) -> int:
    """When the bucket will hold `limit` tokens, in microseconds."""
    return level.updated_us + time_for(max(0, limit - level.tokens), limit=limit, period_us=period_us)


def time_for(tokens: int, *, limit: int, period_us: int = DAY_US) -> int:
    """Microseconds in which `limit` tokens a period buy `tokens`, rounded up."""
    return -(-tokens * period_us // limit)
