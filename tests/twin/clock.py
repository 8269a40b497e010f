"""Virtual time: one clock for the store and for the code under test, moved by hand and by sleeping."""

from threading import Lock
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from firebreak.store.tries import Clock

START_US = 1_767_225_600_000_000  # 2026-01-01


class Virtual:
    """Microseconds since the epoch, and monotonic seconds."""

    def __init__(self, now_us: int = START_US) -> None:
        self._now_us = now_us
        self._lock = Lock()

    def now_us(self) -> int:
        return self._now_us

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment."""
        return (self._now_us - START_US) / 1_000_000 + 1_000

    def move(self, seconds: float) -> None:
        """Let time pass, at least to the next microsecond."""
        with self._lock:
            self._now_us += max(1, round(seconds * 1_000_000))

    @property
    def clock(self) -> Clock:
        """For the code under test: its pauses take no real time, and are the longest."""
        return Clock(monotonic=self.monotonic, sleep=self.move, uniform=lambda _, most: most)


def timestamp(us: int) -> Any:
    """Microseconds since the epoch as the wire has them."""
    seconds, rest_us = divmod(us, 1_000_000)
    return Timestamp(seconds=seconds, nanos=rest_us * 1_000)


def micros(stamp: Any) -> int:
    """The wire's time in microseconds since the epoch; what is finer is cut off."""
    return int(stamp.seconds * 1_000_000 + stamp.nanos // 1_000)
