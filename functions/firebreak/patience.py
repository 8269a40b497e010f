"""Time limits on a client's connection: one for silence, and one for the whole of what it sends."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Condition, Thread
from time import monotonic

import flask

# A client that stops sending or reading holds a thread and its socket; this is how long it may.
SILENCE_S = 20.0


class _Watch:
    """Hangs up on clients that are still sending at their deadline: each byte in time would reset a socket's own."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._deadlines: dict[socket.socket, float] = {}
        self._running = False

    def add(self, connection: socket.socket, deadline: float) -> None:
        with self._changed:
            self._deadlines[connection] = deadline
            if not self._running:
                self._running = True
                Thread(target=self._run, daemon=True, name="firebreak-patience").start()
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


def no_silence(request: flask.Request) -> None:
    """Let no client hold a thread by sending, or reading, nothing."""
    connection = _connection(request)
    if connection is not None:
        connection.settimeout(SILENCE_S)


@contextmanager
def at_most(seconds: float, request: flask.Request) -> Iterator[None]:
    """Within the block, what the client sends ends after `seconds`, however it drips."""
    connection = _connection(request)
    if connection is None:
        yield
        return
    _watch.add(connection, monotonic() + seconds)
    try:
        yield
    finally:
        _watch.remove(connection)


def _connection(request: flask.Request) -> socket.socket | None:
    """The client's socket, where the server is gunicorn."""
    connection: socket.socket | None = request.environ.get("gunicorn.socket")
    return connection
