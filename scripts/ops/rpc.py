"""How long an operator waits for Firestore: each RPC is sent once, and a read again while there is no answer."""

from collections.abc import Callable

from google.api_core.exceptions import DeadlineExceeded, InternalServerError, ServiceUnavailable

from firebreak.store.tries import Clock, Tries

RPC_S = 10.0
READ_S = 15.0


def patiently[T](read: Callable[[], T]) -> T:
    """The answer of a read, or of deletes without a precondition, which may be sent again."""
    error: Exception | None = None
    for _ in Tries(READ_S, Clock()):
        try:
            return read()
        except (DeadlineExceeded, InternalServerError, ServiceUnavailable) as failed:
            error = failed
    assert error is not None
    raise error
