"""The client of the model: a call is one request under a total deadline, and a failure says if it may have cost."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

from firebreak.deadline import Late, within
from firebreak.gemini.connection import Connection, client_args, connecting
from firebreak.gemini.failure import failure, late
from firebreak.gemini.message import EMPTY, Chunk, chunk, counting, generation
from firebreak.gemini.request import Request
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

    def __init__(self, chunks: Callable[[], Iterator[Chunk]]) -> None:
        self._connection = Connection()

        def read() -> Iterator[Chunk]:
            with connecting(self._connection):
                yield from chunks()

        self._reading = Reading(read)

    def take(self, *, wait_s: float) -> Chunk | Done | None:
        """The next chunk; DONE at the end; None if none came in time.

        Raises:
            ModelFailure: the stream broke, or never began.
        """
        try:
            return self._reading.take(wait_s=wait_s)
        except Exception as error:
            raise failure(error) from error

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

    def generate(self, request: Request, *, deadline_s: float) -> Chunk:
        """Ask for one whole answer.

        Raises:
            ModelFailure: there is none.
        """
        config = generation(request, deadline_s)
        return self._ask(
            deadline_s,
            lambda client: chunk(
                client.models.generate_content(model=request.model, contents=EMPTY, config=config), request.model
            ),
        )

    def stream(self, request: Request, *, deadline_s: float) -> Upstream:
        """Ask for an answer in pieces; whoever takes them keeps the total deadline."""
        config = generation(request, deadline_s)

        def chunks() -> Iterator[Chunk]:
            models = self._client.models
            for piece in models.generate_content_stream(model=request.model, contents=EMPTY, config=config):
                yield chunk(piece, request.model)

        return Upstream(chunks)

    def count(self, request: Request, *, deadline_s: float) -> int:
        """Tokens of the prompt as the model counts them, with its system text; not billed, but a request.

        Raises:
            ModelFailure: there is no count.
        """
        config = counting(request)
        total = self._ask(
            deadline_s,
            lambda client: client.models.count_tokens(model=request.model, contents=EMPTY, config=config).total_tokens,
        )
        if not isinstance(total, int) or total < 1:
            raise failure(ValueError("no count"))
        return total

    def _ask[T](self, deadline_s: float, call: "Callable[[genai.Client], T]") -> T:
        connection = Connection()

        def connected() -> T:
            with connecting(connection):
                return call(self._client)

        try:
            return within(deadline_s, connected)
        except Late as error:
            connection.close()
            raise late() from error
        except Exception as error:
            raise failure(error) from error

    @property
    def _client(self) -> "genai.Client":
        with self._lock:
            return self._built

    @cached_property
    def _built(self) -> "genai.Client":
        from google import genai
        from google.genai import types

        options = types.HttpOptions(base_url=self._address, api_version=self._version, client_args=client_args())
        return genai.Client(**self._backend.access, http_options=options)
