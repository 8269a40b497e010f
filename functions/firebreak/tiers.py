"""How many tokens a day a user has: by claim, by kind of sign-in, or the same for all."""

from firebreak.settings import Settings


def daily_limit(knobs: Settings, *, tier: object, anonymous: bool) -> int:
    """Tokens a day; `tier` is the custom claim, whatever it holds. A bucket's own override wins over this."""
    if isinstance(tier, str) and tier in knobs.tiers:
        return knobs.tiers[tier]
    return knobs.anonymous_daily_tokens if anonymous else knobs.max_daily_tokens
