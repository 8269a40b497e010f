"""How many tokens a day a user may have, as far as the settings tell without the user's sign-in."""

from collections.abc import Callable
from dataclasses import dataclass

from firebreak.bucket import arithmetic
from firebreak.bucket.arithmetic import Level
from firebreak.settings.settings import Settings, load
from firebreak.settings.tiers import tightened
from scripts.local.dotenv import read, wrong
from scripts.local.layout import ROOT
from scripts.ops.failure import NotDone

FUNCTIONS = ROOT / "functions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Every limit that may be a user's (0 blocks), who says so, and the percent that is left of it."""

    tokens: frozenset[int]
    by: str
    percent: int = 100

    def as_json(self) -> dict[str, int | str]:
        """As `user show` tells it."""
        return {"least": self.least, "most": self.most, "by": self.by, "percent": self.percent}

    @property
    def least(self) -> int:
        """The smallest, as it holds now."""
        return tightened(min(self.tokens), self.percent)

    @property
    def most(self) -> int:
        """The largest, as it holds now."""
        return tightened(max(self.tokens), self.percent)

    def refill(self, level: Level, *, now_us: int) -> Level:
        """The level as of now, by the largest."""
        return arithmetic.refill(level, limit=self.most, now_us=now_us) if self.most else level

    def full_at_us(self, level: Level) -> int | None:
        """When the bucket is full whichever it is, tightened or not; None: never, the user is blocked."""
        possible = {limit for full in self.tokens for limit in (full, tightened(full, self.percent)) if limit}
        # A debt is paid by the smallest the slowest, all else is filled by the largest the latest.
        return max((arithmetic.full_at_us(level, limit=limit) for limit in possible), default=None)


def settings(project: str) -> Settings:
    """The settings of the functions, as `functions/.env` has them.

    Raises:
        NotDone: they are wrong.
    """
    found = read(FUNCTIONS, project)
    if faults := wrong(FUNCTIONS, found):
        raise NotDone(f"functions/.env: {'; '.join(faults)}")
    return load({**found.values, "GCLOUD_PROJECT": found.project}, connects=False)


def settings_if_right(project: str, say: Callable[[str], None]) -> Settings | None:
    """The same; None if they are wrong, and then that is said."""
    try:
        return settings(project)
    except NotDone as error:
        say(f"not all can be told: {error}")
        return None


def by_settings(knobs: Settings, *, percent: int) -> Limits:
    """All that the settings could give, to whom they know."""
    tokens = {knobs.max_daily_tokens, knobs.anonymous_daily_tokens, *knobs.tiers.values()}
    return Limits(tokens=frozenset(tokens), by="functions/.env", percent=percent)
