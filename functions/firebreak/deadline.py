"""A call under a total deadline, for libraries whose own timeouts bound each read but not the whole."""

import contextvars
from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Thread


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
