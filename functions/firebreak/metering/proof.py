"""What an answer of the store proves; an error that is not listed here proves nothing."""

from google.api_core.exceptions import (
    Aborted,
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unauthenticated,
)

# A query was turned away before it read anything.
NOT_READ = (FailedPrecondition, NotFound, InvalidArgument, PermissionDenied, Unauthenticated)
# This copy of a commit was not applied.
NOT_APPLIED = (*NOT_READ, AlreadyExists, Aborted)
