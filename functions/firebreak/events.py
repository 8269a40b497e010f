"""One JSON line per log event, and the audit event that every request leaves behind."""

import hashlib
import json
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from time import monotonic

from firebreak.errors import Refused

type Field = str | int | float | bool | list[str] | None


class Event(StrEnum):
    """Names of the log events; `message` of the line, so that a log query can select by it."""

    REQUEST = "firebreak.request"
    SETTINGS = "firebreak.settings"
    UNHANDLED = "firebreak.unhandled"
    ATTESTATION = "firebreak.attestation"
    STORE = "firebreak.store"
    RESERVE_UNRESOLVED = "firebreak.reserve_unresolved"
    SETTLE_FAILED = "firebreak.settle_failed"
    MODEL = "firebreak.model"
    OVERRUN = "firebreak.overrun"
    PROMPT_BOUND = "firebreak.prompt_bound"
    USAGE = "firebreak.usage"
    SHADOW = "firebreak.shadow"
    SWITCH = "firebreak.switch"
    BUDGET = "firebreak.budget"
    CAP = "firebreak.cap"


class Severity(StrEnum):
    """Severities of Cloud Logging."""

    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


_audit: ContextVar[dict[str, Field] | None] = ContextVar("firebreak_audit", default=None)


def emit(event: Event, *, severity: Severity = Severity.INFO, **fields: Field) -> None:
    """Write one event as a line that Cloud Logging reads as structured; never a prompt, token, key or raw uid."""
    _write(event, severity, fields)


def shadowed(refusal: Refused, user_key: str) -> None:
    """Log a refusal that shadow mode lets pass."""
    emit(Event.SHADOW, severity=Severity.WARNING, reason=refusal.reason.value, user=pseudonym(user_key))


def unhandled(error: BaseException) -> None:
    """Log an error that nobody expected by its type and frames: libraries print their input in messages."""
    stack = traceback.extract_tb(error.__traceback__)[-20:]
    frames = [f"{frame.filename.rsplit('/', 2)[-1]}:{frame.lineno} {frame.name}" for frame in stack]
    emit(Event.UNHANDLED, severity=Severity.ERROR, error=type(error).__name__, frames=frames)


def note(**fields: Field) -> None:
    """Add fields to the audit event of the request under way; outside a request they go nowhere."""
    audit = _audit.get()
    if audit is not None:
        audit.update(fields)


@contextmanager
def audited(**fields: Field) -> Iterator[dict[str, Field]]:
    """Open the audit event of one request and write it at the end, whatever happens in between."""
    audit: dict[str, Field] = dict(fields)
    token = _audit.set(audit)
    started = monotonic()
    try:
        yield audit
    finally:
        _audit.reset(token)
        audit["ms"] = round((monotonic() - started) * 1000)
        _write(Event.REQUEST, Severity.INFO, audit)


def _write(event: Event, severity: Severity, fields: Mapping[str, Field]) -> None:
    line = {"severity": severity.value, "message": event.value, **fields}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def pseudonym(user_key: str) -> str:
    """Stand-in for a user in logs: the first 12 hex digits of its SHA-256, stable, so that one user can be followed."""
    return hashlib.sha256(user_key.encode("utf-8", "surrogatepass")).hexdigest()[:12]
