"""Time limits on a client's connection: for silence, for what it sends in all, and for the end."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Condition, Thread
from time import monotonic

# A client that stops sending or reading holds a thread and its socket; this is how long it may.
SILENCE_S = 20.0
# How long a connection stays open for a client that is still sending, and how much is thrown away: the most that
# MAX_BODY_BYTES can be.
LINGER_S = 0.3
LINGER_BYTES = 10_000_000
PIECE = 65_536


class _Watch:
    """Hangs up on clients that are still sending at their deadline: each byte in time would reset a socket's own."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._deadlines: dict[socket.socket, float] = {}
        self._running = False

    def add(self, connection: socket.socket, deadline: float) -> None:
        with self._changed:
            if not self._running:
                Thread(target=self._run, daemon=True, name="firebreak-patience").start()
                self._running = True
            self._deadlines[connection] = deadline
            self._changed.notify()

    def remove(self, connection: socket.socket) -> None:
        with self._changed:
            self._deadlines.pop(connection, None)

    def _run(self) -> None:
        while True:
            with self._changed:
                now = monotonic()
                for connection in [each for each, at in self._deadlines.items() if at <= now]:
                    del self._deadlines[connection]
                    # The reader sees the end of the body; the answer can still be sent.
                    with suppress(OSError):
                        connection.shutdown(socket.SHUT_RD)
                nearest = min(self._deadlines.values(), default=None)
                self._changed.wait(None if nearest is None else max(0.0, nearest - now))


_watch = _Watch()


@contextmanager
def at_most(seconds: float, connection: socket.socket | None) -> Iterator[None]:
    """Within the block, what the client sends ends after `seconds`, however slowly it sends."""
    if connection is None:
        yield
        return
    _watch.add(connection, monotonic() + seconds)
    try:
        yield
    finally:
        _watch.remove(connection)


def hang_up(connection: socket.socket) -> None:
    """End a connection whose answer is sent, and throw away what arrives meanwhile, unparsed and within bounds.

    Closing it with bytes unread would reset it, and a client that is still sending would lose the answer. The server
    would wait here as well, but in the thread that accepts everyone else.
    """
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
        left, deadline = LINGER_BYTES, monotonic() + LINGER_S
        while left > 0 and (wait_s := deadline - monotonic()) > 0:
            connection.settimeout(wait_s)
            piece = connection.recv(PIECE)
            if not piece:
                break
            left -= len(piece)
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RD)
