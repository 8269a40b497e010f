"""The clock of provisioning: it also knows the time of day, which goes on while the machine sleeps."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from firebreak.store import tries


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock(tries.Clock):
    """As that of the functions, and `wall`, in seconds since the epoch."""

    wall: Callable[[], float] = time.time

    def since(self, moment: tuple[float, float]) -> float:
        """Seconds since a moment of `now`, by the clock that says more: one stops with the machine, one may be set."""
        return max(now - then for now, then in zip(self.now(), moment, strict=True))

    def now(self) -> tuple[float, float]:
        """This moment, on both clocks."""
        return self.monotonic(), self.wall()
