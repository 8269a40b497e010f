"""The connection under one request: another thread can hang up, and its answer is taken before the SDK parses it."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Lock, local
from typing import TYPE_CHECKING, Any

from firebreak.gemini.answer import bounded

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
        self._begun = False
        self._response: httpx2.Response | None = None

    def stands(self, stream: Any) -> None:  # noqa: ANN401 - httpcore's network stream
        """Remember what to hang up; do so at once if that was asked for while connecting."""
        with self._lock:
            self._stream = stream
            closed = self._closed
        if closed:
            _shut(stream)

    def begin(self) -> None:
        """Let one request through.

        Raises:
            RuntimeError: there was one already, and another would be billed too.
        """
        if self._begun:
            raise RuntimeError("the SDK sends a second request")
        self._begun = True

    def answered(self, response: "httpx2.Response") -> None:
        """Keep the answer, of which nothing is read yet."""
        self._response = response

    @property
    def is_answered(self) -> bool:
        return self._response is not None

    @property
    def response(self) -> "httpx2.Response":
        """The answer; its reader closes it.

        Raises:
            RuntimeError: none was taken, so the SDK sends its requests another way than it did.
        """
        if self._response is None:
            raise RuntimeError("no response was taken from the SDK")
        return self._response

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
    """Arguments for the HTTP client that make it tell of its connections and answers: each request opens its own."""
    import httpx2

    hooks = {"request": [_watch], "response": [_take]}
    return {"limits": httpx2.Limits(max_keepalive_connections=0), "event_hooks": hooks}


def _watch(request: "httpx2.Request") -> None:
    connection: Connection | None = getattr(_current, "connection", None)
    if connection is None:
        return
    connection.begin()

    def trace(event: str, info: Mapping[str, Any]) -> None:
        if event in _STANDS:
            connection.stands(info["return_value"])

    request.extensions = {**request.extensions, "trace": trace}


def _take(response: "httpx2.Response") -> None:
    """Take the answer from the SDK, which would coerce it, follow redirects and parse without bounds.

    What the SDK is left with is an empty 200: it builds, signs and sends the request, and reads nothing.
    """
    import httpx2

    connection: Connection | None = getattr(_current, "connection", None)
    if connection is None:
        return
    connection.answered(
        httpx2.Response(
            response.status_code, headers=response.headers, stream=_bounded(response.stream), request=response.request
        )
    )
    response.status_code, response.headers, response.stream = 200, httpx2.Headers(), httpx2.ByteStream(b"")


def _bounded(stream: Any) -> "httpx2.SyncByteStream":  # noqa: ANN401 - the SDK's own
    """The bytes of the wire: what unpacks to nothing, or follows a packed answer, is bounded nowhere else."""
    import httpx2

    class Bounded(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            return bounded(stream)

        def close(self) -> None:
            stream.close()

    return Bounded()
