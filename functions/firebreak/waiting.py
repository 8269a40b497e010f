"""Waiting with a bound: for a call, or for an iterator that another thread reads; and whether the server is to end."""

import contextvars
import queue
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from threading import Event, Thread
from typing import Final


class Late(Exception):
    """The deadline passed; the call goes on in its thread and its outcome is unknown."""


def within[T](seconds: float, call: Callable[[], T]) -> T:
    """Run `call` in a thread of its own, with the caller's context, and wait at most `seconds` for it.

    Raises:
        Late: it did not end in time.
        BaseException: whatever the call itself raised.
    """
    outcome: Future[T] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            outcome.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001 - handed to the caller whole
            outcome.set_exception(error)

    Thread(target=run, daemon=True, name="firebreak-within").start()
    if not wait([outcome], timeout=seconds).done:
        raise Late
    return outcome.result()


# A consumer that stops taking holds the reader back after so many items.
AHEAD = 64
CHECK_S = 0.1


class Done:
    """The iterator ended."""


DONE: Final = Done()


class ReadAhead[T]:
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


def terminating() -> bool:
    """True once the server got SIGTERM: gunicorn's worker notes it behind its signal handler, and tells no thread."""
    worker = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return getattr(worker, "alive", True) is False
