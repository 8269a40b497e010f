"""The one importer of google.genai: a call is one request under a total deadline, and a failure says if it cost."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

from google.auth.exceptions import GoogleAuthError

from firebreak.deadline import Late, within
from firebreak.errors import DeadlineExceeded, ModelInput, ModelUnavailable, Refused
from firebreak.gemini.prices import Usage
from firebreak.gemini.request import Request

if TYPE_CHECKING:
    from google import genai
    from google.genai import errors, types

API_VERSION = "v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer: `finish_reason` None if the model did not say that it was done."""

    text: str
    finish_reason: str | None
    model: str
    usage: Usage


class ModelFailure(Exception):
    """A call without an answer: what the client is told, and whether it may have cost tokens."""

    def __init__(self, refusal: type[Refused], *, may_be_billed: bool, ours: bool, status: int | None) -> None:
        super().__init__(f"{refusal.reason.value} {status or ''}".strip())
        self.refusal = refusal
        self.may_be_billed = may_be_billed
        self.ours = ours
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Developer:
    """The Gemini Developer API, with an API key."""

    api_key: str = field(repr=False)

    @property
    def address(self) -> str:
        return "https://generativelanguage.googleapis.com"

    @property
    def access(self) -> dict[str, Any]:
        return {"vertexai": False, "api_key": self.api_key}


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
    def access(self) -> dict[str, Any]:
        return {"vertexai": True, "project": self.project, "location": self.location}


class Gemini:
    """One client for all threads. `host` (host:port) is the local stack's; None is the backend's own."""

    def __init__(self, backend: Developer | Vertex, *, host: str | None = None) -> None:
        self._backend = backend
        # Set always, so that no environment variable can send the key elsewhere.
        self._address = f"http://{host}" if host else backend.address
        self._lock = Lock()

    def generate(self, request: Request, *, deadline_s: float) -> Reply:
        """Ask for one whole answer.

        Raises:
            ModelFailure: there is none.
        """
        from google.genai import types

        config = types.GenerateContentConfig(
            system_instruction=request.system,
            max_output_tokens=request.max_output_tokens,
            temperature=request.temperature,
            candidate_count=request.candidates,
            # Both fan one call out into several billed ones.
            automatic_continuation=False,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            http_options=_bounded(deadline_s),
        )
        contents = _contents(request)
        answer = self._ask(
            deadline_s,
            lambda client: client.models.generate_content(model=request.model, contents=contents, config=config),
        )
        return _reply(answer, request.model)

    def count(self, request: Request, *, deadline_s: float) -> int:
        """Tokens of the prompt as the model counts them, system text included; not billed, but a request.

        Raises:
            ModelFailure: there is no count.
        """
        from google.genai import types

        # The Developer API does not count a system instruction; as a turn it counts the same.
        contents = _contents(request)
        if request.system is not None:
            contents = [types.Content(role="user", parts=[types.Part(text=request.system)]), *contents]
        config = types.CountTokensConfig(http_options=_bounded(deadline_s))
        answer = self._ask(
            deadline_s,
            lambda client: client.models.count_tokens(model=request.model, contents=contents, config=config),
        )
        if not isinstance(answer.total_tokens, int) or answer.total_tokens < 1:
            raise ModelFailure(ModelUnavailable, may_be_billed=False, ours=False, status=200)
        return answer.total_tokens

    def _ask[T](self, deadline_s: float, call: "Callable[[genai.Client], T]") -> T:
        try:
            client = self._client
            return within(deadline_s, lambda: call(client))
        except Late as late:
            raise ModelFailure(DeadlineExceeded, may_be_billed=True, ours=False, status=None) from late
        except Exception as error:
            raise _failure(error) from error

    @property
    def _client(self) -> "genai.Client":
        with self._lock:
            return self._built

    @cached_property
    def _built(self) -> "genai.Client":
        from google import genai
        from google.genai import types

        options = types.HttpOptions(base_url=self._address, api_version=API_VERSION)
        return genai.Client(**self._backend.access, http_options=options)


def _bounded(deadline_s: float) -> "types.HttpOptions":
    from google.genai import types

    # Milliseconds, for each read; no retry_options: exactly one attempt.
    return types.HttpOptions(timeout=round(deadline_s * 1000))


def _contents(request: Request) -> "list[types.Content]":
    from google.genai import types

    return [
        types.Content(role=turn.role, parts=[types.Part(text=text) for text in turn.texts]) for turn in request.turns
    ]


def _reply(answer: "types.GenerateContentResponse", model: str) -> Reply:
    candidate = answer.candidates[0] if answer.candidates else None
    parts = candidate.content.parts if candidate and candidate.content and candidate.content.parts else []
    reason: Any = candidate.finish_reason if candidate else None
    if candidate is None and answer.prompt_feedback is not None:
        reason = answer.prompt_feedback.block_reason
    reported = answer.usage_metadata
    usage = Usage()
    if reported is not None:
        usage = Usage(
            prompt=reported.prompt_token_count,
            output=reported.candidates_token_count,
            thought=reported.thoughts_token_count,
            cached=reported.cached_content_token_count,
            tool=reported.tool_use_prompt_token_count,
            total=reported.total_token_count,
        )
    return Reply(
        text="".join(part.text for part in parts if part.text and not part.thought),
        finish_reason=None if reason is None else str(getattr(reason, "value", reason)),
        model=answer.model_version or model,
        usage=usage,
    )


def _failure(error: Exception) -> ModelFailure:
    """What an error of the SDK proves: not sent, refused before any token was used, or unknown."""
    import httpx2
    from google.genai import errors

    if isinstance(error, ModelFailure):
        return error
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return ModelFailure(ModelUnavailable, may_be_billed=False, ours=False, status=None)
    if isinstance(error, GoogleAuthError):
        return ModelFailure(ModelUnavailable, may_be_billed=False, ours=True, status=None)
    if isinstance(error, httpx2.TimeoutException):
        return ModelFailure(DeadlineExceeded, may_be_billed=True, ours=False, status=None)
    if isinstance(error, errors.APIError):
        return _status(error)
    # ValueError: an answer that is no JSON, or not the API's.
    if isinstance(error, httpx2.TransportError | ValueError):
        return ModelFailure(ModelUnavailable, may_be_billed=True, ours=False, status=None)
    raise error


def _status(error: "errors.APIError") -> ModelFailure:
    code = int(error.code)
    if code == 400 and "API_KEY_INVALID" not in str(error.details):
        return ModelFailure(ModelInput, may_be_billed=False, ours=False, status=code)
    if code in (400, 401, 403, 404):
        return ModelFailure(ModelUnavailable, may_be_billed=False, ours=True, status=code)
    if code in (402, 429):
        return ModelFailure(ModelUnavailable, may_be_billed=False, ours=False, status=code)
    if code in (408, 504):
        return ModelFailure(DeadlineExceeded, may_be_billed=True, ours=False, status=code)
    return ModelFailure(ModelUnavailable, may_be_billed=True, ours=False, status=code)
