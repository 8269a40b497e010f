"""What an error of the model's client proves: not sent, refused before any token was used, or unknown."""

import re
from typing import TYPE_CHECKING

from google.auth.exceptions import GoogleAuthError

from firebreak.errors import DeadlineExceeded, ModelInput, ModelPaused, ModelUnavailable, Refused

if TYPE_CHECKING:
    from google.genai import errors


LATE = (408, 504)
# A field that this version of the API does not know, and not one within a tool that only the caller filled.
UNKNOWN_NAME = re.compile(
    r"""Invalid JSON payload received\. Unknown name \\?["'](?P<name>\w{1,40})"""
    r"""(?!\\?["'] at \\?["']tools\[\d+\]\.(?!function_declarations))"""
)
SPEND_CAP = re.compile(r"spend(ing)? cap", re.IGNORECASE)


class ModelFailure(Exception):
    """A call without an answer: what the client is told, and whether it may have cost tokens."""

    def __init__(
        self, refusal: type[Refused], *, may_be_billed: bool, ours: bool = False, status: int = 0, advice: str = ""
    ) -> None:
        super().__init__(" ".join(str(each) for each in (refusal.reason.value, status, advice) if each))
        self.refusal = refusal
        self.may_be_billed = may_be_billed
        self.ours = ours
        self.status = status


def late() -> ModelFailure:
    """Our own deadline passed: it may be running, and billed, still."""
    return ModelFailure(DeadlineExceeded, may_be_billed=True)


def broken() -> ModelFailure:
    """The connection ended, or what came over it was no answer."""
    return ModelFailure(ModelUnavailable, may_be_billed=True)


def failure(error: Exception) -> ModelFailure:
    """The failure that an error of the SDK, or below it, stands for; what is a fault of our own is raised again."""
    import httpx2
    from google.genai import errors

    if isinstance(error, ModelFailure):
        return error
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return ModelFailure(ModelUnavailable, may_be_billed=False)
    if isinstance(error, GoogleAuthError):
        return ModelFailure(ModelUnavailable, may_be_billed=False, ours=True)
    if isinstance(error, httpx2.TimeoutException):
        return late()
    if isinstance(error, errors.APIError):
        return _status(error)
    # ValueError: an answer that is no JSON, or not the API's.
    if isinstance(error, httpx2.TransportError | httpx2.StreamError | ValueError | OSError):
        return broken()
    raise error


def _bad_request(said: str) -> ModelFailure:
    """The caller's input; but for a field that the version of the API does not know, which no caller can change."""
    unknown = UNKNOWN_NAME.search(said)
    if unknown is None:
        return ModelFailure(ModelInput, may_be_billed=False, status=400)
    advice = f"GEMINI_API_VERSION must name a version of the API that knows {unknown['name']}; try v1beta"
    return ModelFailure(ModelUnavailable, may_be_billed=False, ours=True, status=400, advice=advice)


def _status(error: "errors.APIError") -> ModelFailure:
    code, said = int(error.code), str(error.details)
    # An error inside a stream came after the front had let the request in: some of it may have run.
    if getattr(error.response, "status_code", None) != code:
        return ModelFailure(DeadlineExceeded if code in LATE else ModelUnavailable, may_be_billed=True, status=code)
    if code in (403, 429) and SPEND_CAP.search(said):
        return ModelFailure(ModelPaused, may_be_billed=False, ours=True, status=code)
    if code == 400 and "API_KEY_INVALID" not in said:
        return _bad_request(said)
    if code in (400, 401, 403, 404):
        return ModelFailure(ModelUnavailable, may_be_billed=False, ours=True, status=code)
    if code in (402, 429):
        return ModelFailure(ModelUnavailable, may_be_billed=False, status=code)
    return ModelFailure(DeadlineExceeded if code in LATE else ModelUnavailable, may_be_billed=True, status=code)
