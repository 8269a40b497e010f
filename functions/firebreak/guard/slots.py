"""The threads of one instance, and how many of them one user may hold at once: others wait for what one user holds."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from time import monotonic, sleep

from firebreak.errors import Contention

RETRY_AFTER_S = 2
# How often a request that waits for a thread of its user looks for one.
LOOK_S = 0.01


class Slot:
    """A request's place; it holds none until `take`."""

    def __init__(self, slots: "Slots") -> None:
        self._slots = slots

    def take(self, user_key: str, *, most: int, wait_s: float = 0.0) -> None:
        """Hold one of the `most` threads that this user may hold at once, if need be after `wait_s`.

        Raises:
            Contention: the user holds them all.
        """
        end = monotonic() + wait_s
        while not self._slots.take(self, user_key, most=most):
            if monotonic() >= end:
                raise Contention(retry_after_s=RETRY_AFTER_S)
            sleep(LOOK_S)

    def leave(self) -> None:
        """Hold none from here on."""
        self._slots.leave(self)


class Slots:
    """Who holds the threads of this instance, shared by all of them."""

    def __init__(self) -> None:
        self._taking = Lock()
        self._held: dict[Slot, str] = {}

    @contextmanager
    def lease(self) -> Iterator[Slot]:
        """A place for one request, free again at the end of the block, however it ends."""
        slot = Slot(self)
        try:
            yield slot
        finally:
            self.leave(slot)

    def take(self, slot: Slot, user_key: str, *, most: int) -> bool:
        """Give the slot one of the user's threads; False: they are all held."""
        with self._taking:
            free = list(self._held.values()).count(user_key) < most
            if free:
                self._held[slot] = user_key
            return free

    def leave(self, slot: Slot) -> None:
        """See `Slot.leave`."""
        # Atomic, and without the lock: a stream that nobody closed ends in the garbage collector, on any thread.
        self._held.pop(slot, None)

    def __len__(self) -> int:
        return len(self._held)


SLOTS = Slots()
