"""Whether this server was told to end."""

import signal


def terminating() -> bool:
    """True once the server got SIGTERM: gunicorn's worker notes it behind its signal handler, and tells no thread."""
    worker = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return getattr(worker, "alive", True) is False
