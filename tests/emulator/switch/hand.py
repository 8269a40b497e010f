"""A clock that is moved by hand."""

import threading
from collections.abc import Callable

from firebreak.store.tries import Clock


class Hand:
    """Monotonic seconds; sleeping moves them on."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.asked: Callable[[], None] = lambda: None
        self._lock = threading.Lock()

    @property
    def clock(self) -> Clock:
        return Clock(monotonic=self._monotonic, sleep=self.move, uniform=lambda _, most: most)

    def move(self, seconds: float) -> None:
        with self._lock:
            self.now += seconds

    def _monotonic(self) -> float:
        self.asked()
        return self.now
