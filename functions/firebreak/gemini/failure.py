"""Why the model gave no answer: what the client is told, what it may have cost, and how long to ask no more."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from firebreak.errors import DeadlineExceeded, ModelInput, ModelPaused, ModelUnavailable, Refused

LATE = (408, 504)
# A field that this version of the API does not know, and not one within a tool that only the caller filled.
UNKNOWN_NAME = re.compile(
    r"""Invalid JSON payload received\. Unknown name \\?["'](?P<name>\w{1,40})"""
    r"""(?!\\?["'] at \\?["']tools\[\d+\]\.(?!function_declarations))"""
)
# Texts of the API: it has no other sign for these two.
SPEND_CAP = re.compile(r"spend(ing)? cap", re.IGNORECASE)
CREDITS = re.compile(r"\bcredits?\b.*\b(depleted|exhausted|used up|r[au]n out)", re.IGNORECASE | re.DOTALL)
DURATION = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?s", re.ASCII)
PER_DAY = re.compile(r"per[ _-]?day", re.IGNORECASE)
# A quota of tokens: a long prompt meets it where short ones do not.
OF_TOKENS = re.compile(r"token", re.IGNORECASE)
BILLING = "BILLING_DISABLED"
KEY = "API_KEY_"
DAY_TEXT = "The model's quota for today is used up: waiting a few minutes does not help."
# A limit without RetryInfo is often over at once; a pause lasts until somebody acts.
RATE_S = 2
PAUSED_S = 60
DAY_S = 3600
# What is believed of a RetryInfo.
MOST_S = 86_400
ERROR_BYTES = 65_536


class Window(Enum):
    """What is not to be asked before `retry_after_s` has passed: nothing, this model, or any model of the account."""

    NONE = 0
    MODEL = 1
    ACCOUNT = 2


class ModelFailure(Exception):
    """A call without an answer: what the client is told, and whether it may have cost tokens."""

    def __init__(
        self,
        refusal: type[Refused],
        *,
        may_be_billed: bool,
        ours: bool = False,
        status: int = 0,
        retry_after_s: int | None = None,
        window: Window = Window.NONE,
        text: str | None = None,
        cause: str = "",
    ) -> None:
        super().__init__(f"{refusal.reason.value} {status or ''}".strip())
        self.refusal = refusal
        self.may_be_billed = may_be_billed
        self.ours = ours
        self.status = status
        self.retry_after_s = retry_after_s
        self.window = window
        self.text = text
        self.cause = cause

    def refused(self, *, charged: int) -> Refused:
        """The refusal that the client gets."""
        return self.refusal(self.text, retry_after_s=self.retry_after_s, charged=charged)

    def after(self, retry_after_s: int) -> "ModelFailure":
        """The same failure, as it is told from memory: nothing was sent."""
        return ModelFailure(
            self.refusal, may_be_billed=False, ours=self.ours, retry_after_s=retry_after_s, text=self.text
        )


def late() -> ModelFailure:
    """Our own deadline passed: it may be running, and billed, still."""
    return ModelFailure(DeadlineExceeded, may_be_billed=True)


def broken(cause: str = "") -> ModelFailure:
    """The connection ended, or what came over it was no answer; `cause` is for the log."""
    return ModelFailure(ModelUnavailable, may_be_billed=True, cause=cause)


def told(code: int) -> ModelFailure:
    """The model told of an error in a 200: it had let the request in, so some of it may have run."""
    return ModelFailure(DeadlineExceeded if code in LATE else ModelUnavailable, may_be_billed=True, status=code)


def _bad_request(said: str) -> ModelFailure:
    """The caller's input; but for a field that the version of the API does not know, which no caller can change."""
    unknown = UNKNOWN_NAME.search(said)
    if unknown is None:
        return ModelFailure(ModelInput, may_be_billed=False, status=400)
    advice = f"GEMINI_API_VERSION must name a version of the API that knows {unknown['name']}; try v1beta"
    return ModelFailure(ModelUnavailable, may_be_billed=False, ours=True, status=400, cause=advice)


def status(code: int, body: bytes) -> ModelFailure:
    """The failure that another status than 200 stands for."""
    said = _said(body)
    if code == 402 or (code == 403 and BILLING in said.reasons) or (code in (403, 429) and said.paused):
        return ModelFailure(
            ModelPaused,
            may_be_billed=False,
            ours=True,
            status=code,
            retry_after_s=max(PAUSED_S, said.retry_after_s or 0),
            window=Window.ACCOUNT,
        )
    if code == 429:
        return _too_many(said)
    if code == 400 and not said.ours:
        return _bad_request(said.message)
    if code in (400, 401, 403, 404):
        return ModelFailure(ModelUnavailable, may_be_billed=False, ours=True, status=code)
    refusal = DeadlineExceeded if code in LATE else ModelUnavailable
    return ModelFailure(refusal, may_be_billed=True, status=code, retry_after_s=said.retry_after_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What the body of an error says, as far as it can be read."""

    status: str = ""
    message: str = ""
    reasons: frozenset[str] = frozenset()
    retry_after_s: int | None = None
    per_day: bool = False
    of_tokens: bool = False

    @property
    def paused(self) -> bool:
        return bool(SPEND_CAP.search(self.message) or CREDITS.search(self.message))

    @property
    def ours(self) -> bool:
        """Whether a 400 is about the project, not about the request."""
        return self.status == "FAILED_PRECONDITION" or any(reason.startswith(KEY) for reason in self.reasons)


def _too_many(said: _Said) -> ModelFailure:
    wait_s = max(DAY_S, said.retry_after_s or 0) if said.per_day else said.retry_after_s or RATE_S
    return ModelFailure(
        ModelUnavailable,
        may_be_billed=False,
        ours=said.per_day,
        status=429,
        retry_after_s=wait_s,
        # Else whoever sends long prompts would stop everybody's short ones, at no cost.
        window=Window.NONE if said.of_tokens else Window.MODEL,
        text=DAY_TEXT if said.per_day else None,
    )


def _said(body: bytes) -> _Said:
    try:
        value = json.loads(body[:ERROR_BYTES])
    except (ValueError, RecursionError):
        return _Said()
    # The streaming method answers an error as a list of one.
    value = value[0] if isinstance(value, list) and value else value
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict):
        return _Said()
    details = list(_objects(error.get("details")))
    quotas = [_text(each, "quotaId") for detail in details for each in _objects(detail.get("violations"))]
    return _Said(
        status=_text(error, "status"),
        message=_text(error, "message"),
        reasons=frozenset(_text(detail, "reason") for detail in details),
        retry_after_s=next(filter(None, (_seconds(_text(detail, "retryDelay")) for detail in details)), None),
        per_day=any(map(PER_DAY.search, quotas)),
        of_tokens=bool(quotas) and all(map(OF_TOKENS.search, quotas)),
    )


def _objects(value: object) -> Iterator[Mapping[str, Any]]:
    yield from (each for each in value if isinstance(each, dict)) if isinstance(value, list) else ()


def _text(value: Mapping[str, Any], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def _seconds(duration: str) -> int | None:
    """A duration as JSON has it, rounded up and bounded; None if it is not one."""
    if not DURATION.fullmatch(duration):
        return None
    return min(MOST_S, max(1, math.ceil(float(duration.removesuffix("s")))))
