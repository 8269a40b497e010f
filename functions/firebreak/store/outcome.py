"""What an answer of the store proves; an error that is not listed here proves nothing."""

from google.api_core.exceptions import (
    Aborted,
    AlreadyExists,
    FailedPrecondition,
    GoogleAPICallError,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    RetryError,
    Unauthenticated,
)

from firebreak.errors import Contention, Refused, StoreUnavailable
from firebreak.events import Event, Severity, emit

# A query was turned away before it read anything.
NOT_READ = (FailedPrecondition, NotFound, InvalidArgument, PermissionDenied, Unauthenticated)
# This copy of a commit was not applied.
NOT_APPLIED = (*NOT_READ, AlreadyExists, Aborted)

RETRY_AFTER_CONTENTION_S = 1
RETRY_AFTER_STORE_S = 5

STORE_ERRORS = (GoogleAPICallError, RetryError)
# Waiting does not help with these.
PERMANENT = (PermissionDenied, Unauthenticated, InvalidArgument)


class Unreadable(Exception):
    """The store answers, but has no such database, or one of another kind; waiting does not help."""


def out_of_time(error: Exception | None, *, step: str, text: str | None = None) -> Refused:
    """What a caller is told when `step` ran out of time, or waiting would not help; `text` is of an outage."""
    if isinstance(error, NOT_APPLIED) and not isinstance(error, PERMANENT):
        return Contention(retry_after_s=RETRY_AFTER_CONTENTION_S)
    return unavailable(error, step=step, text=text)


def unavailable(error: Exception | None, *, step: str, text: str | None = None) -> StoreUnavailable:
    """What a caller is told of an outage, after it is logged."""
    emit(Event.STORE, severity=Severity.ERROR, step=step, error=type(error).__name__)
    return StoreUnavailable(text, retry_after_s=RETRY_AFTER_STORE_S)
