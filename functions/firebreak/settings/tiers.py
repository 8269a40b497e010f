"""A signed-in user, and what they have: tokens a day, requests an hour, threads, and a share of the pool."""

from dataclasses import dataclass
from typing import Literal

from firebreak.settings.settings import Settings

ANONYMOUS = "anonymous"
DEFAULT = "default"


def daily_limit(knobs: Settings, *, tier: object, anonymous: bool, percent: int = 100) -> int:
    """Tokens a day, tightened to `percent`; `tier` is the custom claim, whatever it holds.

    A bucket's own override wins over this, and is tightened alike.
    """
    if isinstance(tier, str) and tier in knobs.tiers:
        limit = knobs.tiers[tier]
    else:
        limit = knobs.anonymous_daily_tokens if anonymous else knobs.max_daily_tokens
    return tightened(limit, percent)


def requests_per_hour(knobs: Settings, kind: Literal["read", "write"], *, tier: object, anonymous: bool) -> int:
    """Requests of this kind an hour."""
    limits = knobs.read_requests_per_hour if kind == "read" else knobs.write_requests_per_hour
    return limits.get(tier_name(knobs, tier=tier, anonymous=anonymous), limits[DEFAULT])


def threads(knobs: Settings) -> int:
    """Threads of one instance that one user may hold at once."""
    return max(1, knobs.threads * knobs.user_threads_percent // 100)


def tier_name(knobs: Settings, *, tier: object, anonymous: bool) -> str:
    """The name under which a user is found in the knobs by tier, and that of their share of the pool."""
    if isinstance(tier, str) and tier in knobs.tiers:
        return tier
    return ANONYMOUS if anonymous else DEFAULT


def tightened(limit: int, percent: int) -> int:
    """`percent` of a limit, but never so little that it would block whom the limit does not."""
    return min(limit, max(1, limit * percent // 100))


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A signed-in user, as the verified ID token says.

    A uid is unique only within its tenant (Identity Platform). Name documents by `key`, never by `uid`.
    """

    uid: str
    tenant: str | None
    key: str
    anonymous: bool
    tier: object
