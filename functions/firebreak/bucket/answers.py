"""What the store's errors prove about a commit, and what a client is told to wait."""

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

RETRY_AFTER_CONTENTION_S = 1
RETRY_AFTER_STORE_S = 5

STORE_ERRORS = (GoogleAPICallError, RetryError)
# Answers that prove that this copy of a commit was not applied; any other error leaves it open.
NOT_APPLIED = (FailedPrecondition, AlreadyExists, Aborted, NotFound, InvalidArgument, PermissionDenied, Unauthenticated)
# Waiting does not mend these.
PERMANENT = (PermissionDenied, Unauthenticated, InvalidArgument)


class Unreadable(Exception):
    """The store answers, but has no such database, or one of another kind; waiting does not mend it."""
