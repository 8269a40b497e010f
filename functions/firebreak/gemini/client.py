"""The client of the model: a call is one request under a total deadline, and a failure says if it may have cost.

The SDK builds and sends the request. The answer is read here, raw and bounded.
"""

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock, local
from time import monotonic
from typing import TYPE_CHECKING, Any

from firebreak.errors import ModelUnavailable
from firebreak.gemini import answer
from firebreak.gemini.answer import Chunk, NotAnAnswer, ToldError, bounded
from firebreak.gemini.failure import ERROR_BYTES, ModelFailure, broken, late, status, told
from firebreak.gemini.messages import EMPTY, counting, generation
from firebreak.gemini.request import Request
from firebreak.gemini.windows import Windows
from firebreak.waiting import Done, Late, ReadAhead, within

if TYPE_CHECKING:
    import httpx2
    from google import genai

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


# Vertex AI has other names for its versions.
VERTEX_VERSIONS = {"v1": "v1", "v1beta": "v1beta1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Developer:
    """The Gemini Developer API, with an API key."""

    api_key: str = field(repr=False)

    @property
    def address(self) -> str:
        return "https://generativelanguage.googleapis.com"

    @property
    def access(self) -> Mapping[str, Any]:
        # Pasted from a page, a key may hold what is not seen.
        if not self.api_key.isascii():
            raise ValueError("GEMINI_API_KEY must be ASCII")
        return {"vertexai": False, "api_key": self.api_key}

    def version(self, asked: str) -> str:
        return asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Vertex:
    """Vertex AI in a location, as the service account that the function runs as."""

    project: str
    location: str

    @property
    def address(self) -> str:
        host = "aiplatform.googleapis.com"
        return f"https://{host}" if self.location == "global" else f"https://{self.location}-{host}"

    @property
    def access(self) -> Mapping[str, Any]:
        return {"vertexai": True, "project": self.project, "location": self.location}

    def version(self, asked: str) -> str:
        return VERTEX_VERSIONS[asked]


class Upstream:
    """A stream of the model, read ahead; leaving it closes its connection at once."""

    def __init__(self, send: Callable[[], None], failed: Callable[[Exception], ModelFailure]) -> None:
        self._connection = Connection()
        self._failed = failed

        def read() -> Iterator[Chunk]:
            for data in answer.events(_body(self._connection, send)):
                yield answer.parse(data)

        self._reading = ReadAhead(read)

    def take(self, *, wait_s: float) -> Chunk | Done | None:
        """The next chunk; DONE at the end; None if none came in time.

        Raises:
            ModelFailure: the stream broke, or never began.
        """
        try:
            return self._reading.take(wait_s=wait_s)
        except Exception as error:
            raise self._failed(error) from error

    def leave(self) -> None:
        """Hang up, if it is still open."""
        self._reading.leave()
        self._connection.close()


class Gemini:
    """One client for all threads. `host` (host:port) is the local stack's; None is the backend's own.

    `version` of the API is v1 or v1beta, for Vertex AI too.
    """

    def __init__(self, backend: Developer | Vertex, *, host: str | None = None, version: str = "v1") -> None:
        self._backend = backend
        self._version = backend.version(version)
        # Set always, so that no environment variable can send the key elsewhere.
        self._address = f"http://{host}" if host else backend.address
        self._lock = Lock()
        self._windows = Windows(monotonic)

    def look(self, request: Request) -> None:
        """Ask nothing; a failure of which the model said how long it lasts is met from memory.

        Raises:
            ModelFailure: it would be refused.
        """
        self._look(request.model, _key(request))

    def generate(self, request: Request, *, deadline_s: float) -> Chunk:
        """Ask for one whole answer.

        Raises:
            ModelFailure: there is none.
        """
        config = generation(request, deadline_s)
        body = self._ask(
            lambda: self._client.models.generate_content(model=request.model, contents=EMPTY, config=config),
            deadline_s,
            lambda error: self._failed(error, request),
        )
        return self._read(answer.parse, body)

    def stream(self, request: Request, *, deadline_s: float) -> Upstream:
        """Ask for an answer in pieces; whoever takes them keeps the total deadline."""
        config = generation(request, deadline_s)

        def send() -> None:
            models = self._client.models
            for _ in models.generate_content_stream(model=request.model, contents=EMPTY, config=config):
                pass

        return Upstream(send, lambda error: self._failed(error, request))

    def count(self, request: Request, *, deadline_s: float) -> int:
        """Tokens of the prompt as the model counts them, with its system text; not billed, but a request.

        Raises:
            ModelFailure: there is no count.
        """
        config = counting(request, deadline_s)
        # Counting has a limit of its own: to reach it says nothing of answers.
        key = f"{request.model}:countTokens"
        self._look(request.model, key)
        body = self._ask(
            lambda: self._client.models.count_tokens(model=request.model, contents=EMPTY, config=config),
            deadline_s,
            lambda error: self._noted(failure(error), key),
        )
        return self._read(answer.counted, body)

    def _look(self, *keys: str) -> None:
        known = self._windows.look(*keys)
        if known is not None:
            raise known

    def _ask(self, send: Callable[[], object], deadline_s: float, failed: Callable[[Exception], ModelFailure]) -> bytes:
        connection = Connection()
        try:
            return within(deadline_s, lambda: b"".join(_body(connection, send)))
        except Late as error:
            connection.close()
            raise late() from error
        except Exception as error:
            raise failed(error) from error

    def _failed(self, error: Exception, request: Request) -> ModelFailure:
        # What a paid tool names, its refusal may quote: no caller can write one that stops the others.
        return self._noted(failure(error), _key(request), alone=bool(request.paid_tools))

    def _noted(self, found: ModelFailure, key: str, *, alone: bool = False) -> ModelFailure:
        self._windows.note(found, key, alone=alone)
        return found

    def _read[T](self, read: Callable[[bytes], T], body: bytes) -> T:
        try:
            return read(body)
        except NotAnAnswer as error:
            raise failure(error) from error

    @property
    def _client(self) -> "genai.Client":
        """The SDK's client; to make one sends nothing.

        Raises:
            ModelFailure: the key or the credentials are not such as can be sent.
        """
        try:
            with self._lock:
                return self._built
        except Exception as error:
            cause = type(error).__name__
            raise ModelFailure(ModelUnavailable, may_be_billed=False, ours=True, cause=cause) from error

    @cached_property
    def _built(self) -> "genai.Client":
        from google import genai
        from google.genai import types

        options = types.HttpOptions(base_url=self._address, api_version=self._version, client_args=client_args())
        return genai.Client(**self._backend.access, http_options=options)


def _key(request: Request) -> str:
    """What a limit that the request meets is a limit of."""
    return "+".join([request.model, *request.paid_tools])


def failure(error: Exception) -> ModelFailure:
    """The failure that an error of the SDK, of what is below it, or of the answer stands for: in doubt it is billed."""
    import httpx2
    from google.auth.exceptions import GoogleAuthError

    if isinstance(error, ModelFailure):
        return error
    if isinstance(error, ToldError):
        return told(error.code)
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return ModelFailure(ModelUnavailable, may_be_billed=False)
    if isinstance(error, GoogleAuthError):
        return ModelFailure(ModelUnavailable, may_be_billed=False, ours=True)
    if isinstance(error, httpx2.TimeoutException):
        return late()
    return broken(type(error).__name__)


def _body(connection: Connection, send: Callable[[], object]) -> Iterator[bytes]:
    """Let the SDK send a request, and give the body of its answer as it comes.

    Raises:
        ModelFailure: its status is not 200.
    """
    with connecting(connection):
        try:
            send()
        except Exception:
            # An answer that was taken is paid for, whatever the SDK makes of the empty one in its place.
            if not connection.is_answered:
                raise
    with closing(connection.response) as response:
        pieces = answer.bounded(response.iter_bytes())
        if response.status_code != 200:
            raise status(response.status_code, _start(pieces))
        yield from pieces


def _start(pieces: Iterator[bytes]) -> bytes:
    """As much of an error as says what it is; one that breaks off still has its status."""
    body = bytearray()
    with suppress(Exception):
        for piece in pieces:
            body += piece
            if len(body) > ERROR_BYTES:
                break
    return bytes(body)
