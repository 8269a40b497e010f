"""The network connection under one request, so that another thread can hang up while the request waits on it."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Lock, local
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx2

_current = local()
# What httpcore reports when a connection stands; the second replaces the first where there is TLS.
_STANDS = ("connection.connect_tcp.complete", "connection.start_tls.complete")


class Connection:
    """A connection that is not there yet, stands, or was hung up."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._stream: Any = None
        self._closed = False

    def stands(self, stream: Any) -> None:  # noqa: ANN401 - httpcore's network stream
        """Remember what to hang up; do so at once if that was asked for while connecting."""
        with self._lock:
            self._stream = stream
            closed = self._closed
        if closed:
            _shut(stream)

    def close(self) -> None:
        """Hang up. A thread that waits on the connection gets an error at once; one that is done notices nothing."""
        with self._lock:
            stream, self._closed = self._stream, True
        if stream is not None:
            _shut(stream)


def _shut(stream: Any) -> None:  # noqa: ANN401
    sock = stream.get_extra_info("socket")
    if sock is not None:
        # Closing a descriptor does not wake a thread that reads from it; a shutdown does.
        with suppress(OSError):
            socket.socket.shutdown(sock, socket.SHUT_RDWR)


@contextmanager
def connecting(connection: Connection) -> Iterator[None]:
    """Let `connection` be the one that requests of this thread open."""
    _current.connection = connection
    try:
        yield
    finally:
        del _current.connection


def client_args() -> dict[str, Any]:
    """Arguments for the HTTP client that make it tell of its connections: each request opens its own."""
    import httpx2

    return {"limits": httpx2.Limits(max_keepalive_connections=0), "event_hooks": {"request": [_watch]}}


def _watch(request: "httpx2.Request") -> None:
    connection: Connection | None = getattr(_current, "connection", None)
    if connection is None:
        return

    def trace(event: str, info: Mapping[str, Any]) -> None:
        if event in _STANDS:
            connection.stands(info["return_value"])

    request.extensions = {**request.extensions, "trace": trace}
