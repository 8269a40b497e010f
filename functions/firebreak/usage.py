"""What a user may see of their own bucket."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from firebreak.bucket.ledger import Ledger
from firebreak.settings.settings import Settings
from firebreak.settings.tiers import User, daily_limit
from firebreak.store.times import DAY_US, SECOND_US, from_us


def show(user: User, *, knobs: Settings, percent: int, ledger: Ledger) -> dict[str, Any]:
    """The `usage` callable's result; one read of the bucket and one query of the last calls."""
    limit = daily_limit(knobs, tier=user.tier, anonymous=user.anonymous, percent=percent)
    seen = ledger.overview(user.key, limit=limit, percent=percent)
    return {
        "remaining": max(0, seen.level.tokens),
        "limit": seen.limit,
        "refillPerSecond": seen.limit * SECOND_US / DAY_US,
        "fullAt": _text(from_us(seen.full_at_us)),
        "lifetime": dict(seen.lifetime),
        "recent": [_call(call) for call in seen.recent],
    }


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    created = call.get("createdAt")
    return {
        "status": call.get("status"),
        "model": call.get("model"),
        "estimated": call.get("estimated"),
        "charged": call.get("actual", call.get("estimated")),
        "createdAt": _text(created) if isinstance(created, datetime) else None,
    }


def _text(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")
