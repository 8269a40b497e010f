"""Reads set aside for an answer whose size only the answer tells."""

from threading import Lock

from firebreak.metering.counter import ReadMeter
from firebreak.metering.proof import NOT_READ


class Hold:
    """Whoever sends the request takes `lock` first, and keeps it while the size is being found out."""

    def __init__(self, meter: ReadMeter) -> None:
        self.meter = meter
        self.lock = Lock()
        self.left: int | None = 0
        """What is set aside and not read yet; None if the meter has no limit."""
        self.read = 0

    def open(self, most: int | None, *, least: int = 1) -> int | None:
        """Set aside `most` reads, or what is left but at least `least`; returns how many, None without a limit.

        Raises:
            MeterExceeded: less is left.
        """
        return self.meter.hold(self, most, least=least)

    def spend(self, count: int) -> None:
        """Count what was read.

        Raises:
            MeterExceeded: more than was set aside, which no server that minds the request's limit reads.
        """
        self.read += count
        if self.left is None:
            self.meter.take(count)
        elif count <= self.left:
            self.left -= count
        else:
            self.left = 0
            raise self.meter.exceed()

    def end(self) -> None:
        """The answer is whole: what was not read is given back. The least that is billed is one read."""
        if not self.read:
            self.spend(1)
        self.meter.close(self, self.left or 0)

    def fail(self, error: BaseException) -> None:
        """The answer broke off: unless that proves that nothing was read, all that was set aside stays counted."""
        if isinstance(error, NOT_READ) and not self.read:
            self.end()
        else:
            self.keep()

    def keep(self) -> None:
        """All that was set aside stays counted."""
        self.meter.close(self, 0)

    def settle(self) -> None:
        """Wait until whoever has asked the server has its answer."""
        with self.lock:
            pass
