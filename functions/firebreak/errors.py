"""Every refusal a client can meet: its reason, its callable code, and what to do about it."""

from enum import Enum, StrEnum
from typing import ClassVar


class Code(Enum):
    """Codes of the callable protocol with their HTTP status (firebase.google.com/docs/functions/callable-reference)."""

    INVALID_ARGUMENT = 400
    UNAUTHENTICATED = 401
    PERMISSION_DENIED = 403
    ALREADY_EXISTS = 409
    RESOURCE_EXHAUSTED = 429
    INTERNAL = 500
    UNAVAILABLE = 503
    DEADLINE_EXCEEDED = 504

    @property
    def http_status(self) -> int:
        return self.value


class Reason(StrEnum):
    """`details.reason` of a refusal: stable, for programs."""

    SHAPE = "shape"
    ORIGIN = "origin"
    FIELD = "field"
    SWITCH = "switch"
    APP_CHECK = "app-check"
    SIGN_IN = "sign-in"
    REQUESTS = "requests"
    READS = "reads"
    WRITES = "writes"
    POOL = "pool"
    TOKENS = "tokens"
    TOO_LARGE = "too-large"
    BLOCKED = "blocked"
    CONTENTION = "contention"
    DUPLICATE = "duplicate"
    MODEL_INPUT = "model-input"
    MODEL = "model"
    MODEL_PAUSED = "model-paused"
    DEADLINE = "deadline"
    ATTESTATION = "attestation"
    STORE = "store"
    SHUTTING_DOWN = "shutting-down"
    SETTINGS = "settings"
    INTERNAL = "internal"


class Refused(Exception):
    """A request turned away; `details` is what the client gets beside code and message, as plain JSON."""

    code: ClassVar[Code]
    reason: ClassVar[Reason]
    text: ClassVar[str]
    advice: ClassVar[str]
    our_fault: ClassVar[bool] = False
    # What Retry-After says where `details` name no time.
    usual_wait_s: ClassVar[int] = 60

    def __init__(
        self,
        text: str | None = None,
        *,
        retry_after_s: int | None = None,
        remaining: int | None = None,
        limit: int | None = None,
        **more: str | int,
    ) -> None:
        self.message = text or self.text
        known = {"retryAfterSeconds": retry_after_s, "remaining": remaining, "limit": limit}
        self.details: dict[str, str | int] = {"reason": self.reason.value}
        self.details |= {key: value for key, value in known.items() if value is not None} | more
        super().__init__(self.message)

    @property
    def retry_after_s(self) -> int | None:
        """Seconds for the `Retry-After` header; None where HTTP has none."""
        if self.code not in {Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE}:
            return None
        return int(self.details.get("retryAfterSeconds", self.usual_wait_s))


class Malformed(Refused):
    code, reason = Code.INVALID_ARGUMENT, Reason.SHAPE
    text = "The request is not a callable request."
    advice = "Fix the client: call through a Firebase SDK, within the size limit."


class OriginNotAllowed(Refused):
    code, reason = Code.PERMISSION_DENIED, Reason.ORIGIN
    text = "This web origin may not call."
    advice = "The owner of the app names the origins that may, in `ALLOWED_ORIGINS`."


class InvalidField(Refused):
    code, reason = Code.INVALID_ARGUMENT, Reason.FIELD
    text = "A field of the request is not valid."
    advice = "Fix the field that the message names."


class SwitchedOff(Refused):
    code, reason = Code.UNAVAILABLE, Reason.SWITCH
    text = "This part of the app is switched off."
    advice = "Show the message: it is the operator's. Retry after `retryAfterSeconds`, not before."


class AppCheckFailed(Refused):
    code, reason = Code.UNAUTHENTICATED, Reason.APP_CHECK
    text = "App Check: the token is missing or not valid."
    advice = "Initialise App Check before the first call; in development register a debug token."


class SignInRequired(Refused):
    code, reason = Code.UNAUTHENTICATED, Reason.SIGN_IN
    text = "Sign in first: the ID token is missing or not valid."
    advice = "Sign the user in (anonymous is enough) and call again."


class RequestsUsedUp(Refused):
    code, reason = Code.RESOURCE_EXHAUSTED, Reason.REQUESTS
    text = "The hourly requests are used up."
    advice = "Wait `retryAfterSeconds`. `kind` says which limit: read and write requests are counted separately."


class MeterExceeded(Refused):
    """A request that would read or write more of Firestore than it may."""

    code = Code.RESOURCE_EXHAUSTED


class ReadsExceeded(MeterExceeded):
    reason = Reason.READS
    text = "The request would read more documents than one request may."
    advice = "Ask for less in one request; what was written before it stopped stays written. Waiting does not help."


class WritesExceeded(MeterExceeded):
    reason = Reason.WRITES
    text = "The request would write more documents than one request may."
    advice = "Split the request; what was written before it stopped stays written. Waiting does not help."


class PoolEmpty(Refused):
    code, reason = Code.RESOURCE_EXHAUSTED, Reason.POOL
    text = "The app's tokens of this hour are used up, by all users together."
    advice = "Wait `retryAfterSeconds`; the user's own tokens are untouched."


class BucketEmpty(Refused):
    code, reason = Code.RESOURCE_EXHAUSTED, Reason.TOKENS
    text = "The daily tokens are used up."
    advice = "Wait `retryAfterSeconds`, or ask for less: a smaller `maxOutputTokens` may still fit `remaining`."


class TooLarge(Refused):
    code, reason = Code.INVALID_ARGUMENT, Reason.TOO_LARGE
    text = "The request can never fit the daily limit."
    advice = "Shorten the prompt or lower `maxOutputTokens`; waiting does not help."


class Blocked(Refused):
    code, reason = Code.PERMISSION_DENIED, Reason.BLOCKED
    text = "This user may not call the model."
    advice = "Do not retry; the owner of the app has set this user's limit to 0."


class Contention(Refused):
    code, reason = Code.RESOURCE_EXHAUSTED, Reason.CONTENTION
    text = "Too many calls of this user at once."
    advice = "Wait `retryAfterSeconds`; retry with the same `requestId` (`mutate`: the same list). Nothing was charged."


class Duplicate(Refused):
    code, reason = Code.ALREADY_EXISTS, Reason.DUPLICATE
    text = "This requestId was used before."
    advice = "Do not retry: `status` and `charged` say how the first call ended (`void`: it never ran). Use a new id."


class ModelInput(Refused):
    code, reason = Code.INVALID_ARGUMENT, Reason.MODEL_INPUT
    text = "The model does not take this input."
    advice = "Fix the prompt or its parameters; nothing was charged."


class ModelUnavailable(Refused):
    code, reason = Code.UNAVAILABLE, Reason.MODEL
    text = "The model did not answer."
    usual_wait_s = 5
    advice = "Retry with a new `requestId`, after `retryAfterSeconds` if given; `charged` is what the attempt cost."


class ModelPaused(Refused):
    code, reason, our_fault = Code.UNAVAILABLE, Reason.MODEL_PAUSED, True
    text = "The model is paused: the project's spend cap was reached, or its credits or billing ended."
    usual_wait_s = 3600
    advice = "Retrying does not help until the owner of the app lifts the cap or pays; nothing was charged."


class DeadlineExceeded(Refused):
    code, reason = Code.DEADLINE_EXCEEDED, Reason.DEADLINE
    text = "The model took too long."
    advice = "Ask for less, with a new `requestId`; the attempt was charged at its estimate."


class AttestationUnavailable(Refused):
    code, reason, our_fault = Code.UNAVAILABLE, Reason.ATTESTATION, True
    text = "Tokens cannot be verified at the moment."
    advice = "Retry after `retryAfterSeconds`; nothing was charged."


class StoreUnavailable(Refused):
    code, reason, our_fault = Code.UNAVAILABLE, Reason.STORE, True
    text = "The store of limits cannot be reached."
    advice = "Retry after `retryAfterSeconds` with the same `requestId` (`mutate`: list): it cannot count twice."


class ShuttingDown(Refused):
    code, reason = Code.UNAVAILABLE, Reason.SHUTTING_DOWN
    text = "This instance is shutting down."
    usual_wait_s = 1
    advice = "Retry at once, with a new `requestId`; `charged` is what the attempt cost."


class Misconfigured(Refused):
    code, reason, our_fault = Code.UNAVAILABLE, Reason.SETTINGS, True
    text = "The backend is not configured."
    advice = "Nothing a client can do: the log's `firebreak.settings` event names the knob."


class Internal(Refused):
    code, reason, our_fault = Code.INTERNAL, Reason.INTERNAL, True
    text = "INTERNAL"
    advice = "Report it; the log holds the type and the frames. `charged`, if given, is what the call cost."


KINDS: tuple[type[Refused], ...] = tuple(
    kind for direct in Refused.__subclasses__() for kind in direct.__subclasses__() or (direct,)
)


class Again(Exception):
    """Raised by a handler that wants the message once more, though nothing unexpected has happened."""
