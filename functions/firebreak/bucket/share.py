"""A tier's share of the pool, which lies in shards: what it may draw of each, and of which it is to lease."""

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from firebreak.bucket import chunk
from firebreak.bucket.arithmetic import HOUR_US, SECOND_US
from firebreak.bucket.chunk import Holding
from firebreak.bucket.record import document_id

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
        return chunk.spread(tokens, need=need, least=self.least(need))

    def ready_s(self, held: Mapping[int, Holding], need: int) -> int:
        """Seconds until these shards will cover it, if nobody else takes."""

        def ready(later_s: int) -> bool:
            by_us = later_s * SECOND_US
            then = {number: chunk.later(h, self.limits[number], by_us=by_us) for number, h in held.items()}
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
