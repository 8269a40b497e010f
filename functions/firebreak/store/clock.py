"""The server's time, carried forward by a monotonic clock; no instance's wall clock is ever asked (rule 10)."""

from collections.abc import Callable
from threading import Lock

from firebreak.store.times import SECOND_US

# How long a stamp is carried forward before the server is asked again.
ANCHOR_S = 60.0


class ServerClock:
    """Knows the last stamp of the server, and when on the monotonic clock its reply was received."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = Lock()
        self._stamp_us = 0
        self._received: float | None = None

    def note(self, stamp_us: int) -> None:
        """Take in the stamp of a reply that was received now: never earlier, at its sending, or time would lead."""
        with self._lock:
            self._stamp_us, self._received = stamp_us, self._monotonic()

    def now_us(self) -> int | None:
        """The server's time in microseconds, late by a network's delay; None if no stamp is recent enough."""
        with self._lock:
            if self._received is None:
                return None
            passed = self._monotonic() - self._received
            return None if passed > ANCHOR_S else self._stamp_us + round(passed * SECOND_US)
