"""The threads of one instance, and how many of them one user may hold at once: others wait for what one user holds."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from firebreak.errors import Contention

RETRY_AFTER_S = 2


class Slot:
    """A request's place; it holds none until `take`."""

    def __init__(self, slots: "Slots") -> None:
        self._slots = slots

    def take(self, user_key: str, *, most: int) -> None:
        """Hold one of the `most` threads that this user may hold at once.

        Raises:
            Contention: the user holds them all.
        """
        self._slots.take(self, user_key, most=most)


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
            # Atomic, and without the lock: a stream that nobody closed ends in the garbage collector, on any thread.
            self._held.pop(slot, None)

    def take(self, slot: Slot, user_key: str, *, most: int) -> None:
        """See `Slot.take`."""
        with self._taking:
            if list(self._held.values()).count(user_key) >= most:
                raise Contention(retry_after_s=RETRY_AFTER_S)
            self._held[slot] = user_key

    def __len__(self) -> int:
        return len(self._held)


SLOTS = Slots()
