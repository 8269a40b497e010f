"""An iterator read in a thread of its own, so that its consumer can wait with a bound, and leave."""

import contextvars
import queue
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Final

# A consumer that stops taking holds the reader back after so many items.
AHEAD = 64
CHECK_S = 0.1


class Done:
    """The iterator ended."""


DONE: Final = Done()


class Reading[T]:
    """Reads `items` ahead in the caller's context until it ends, fails or is left."""

    def __init__(self, items: Callable[[], Iterator[T]]) -> None:
        self._items = items
        self._queue: queue.Queue[T | Done | BaseException] = queue.Queue(AHEAD)
        self._left = Event()
        context = contextvars.copy_context()
        Thread(target=context.run, args=(self._read,), daemon=True, name="firebreak-reading").start()

    def take(self, *, wait_s: float) -> T | Done | None:
        """The next item; DONE at the end; None if none came in time.

        Raises:
            BaseException: whatever reading raised.
        """
        try:
            item = self._queue.get(timeout=max(0.0, wait_s))
        except queue.Empty:
            return None
        if isinstance(item, BaseException):
            raise item
        return item

    def leave(self) -> None:
        """Take no more; the reader stops at its next item, which is soon if what it reads from is closed."""
        self._left.set()

    def _read(self) -> None:
        try:
            for item in self._items():
                if not self._put(item):
                    return
            self._put(DONE)
        except BaseException as error:  # noqa: BLE001 - handed to the consumer whole
            self._put(error)

    def _put(self, item: T | Done | BaseException) -> bool:
        while not self._left.is_set():
            try:
                self._queue.put(item, timeout=CHECK_S)
            except queue.Full:
                continue
            return True
        return False
