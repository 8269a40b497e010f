"""The client of the model: a call is one request under a total deadline, and a failure says if it may have cost.

The SDK builds and sends the request. The answer is read here, raw and bounded.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any

from firebreak.deadline import Late, within
from firebreak.errors import ModelUnavailable
from firebreak.gemini import answer
from firebreak.gemini.answer import Chunk, NotAnAnswer, ToldError
from firebreak.gemini.connection import Connection, client_args, connecting
from firebreak.gemini.failure import ERROR_BYTES, ModelFailure, broken, late, status, told
from firebreak.gemini.message import EMPTY, counting, generation
from firebreak.gemini.request import Request
from firebreak.gemini.windows import Windows
from firebreak.reading import Done, Reading

if TYPE_CHECKING:
    from google import genai

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

        self._reading = Reading(read)

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
