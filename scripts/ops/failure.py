"""What went wrong, in one line that tells the way out."""

from google.api_core.exceptions import (
    FailedPrecondition,
    GoogleAPICallError,
    NotFound,
    PermissionDenied,
    RetryError,
    Unauthenticated,
)
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError

from scripts.ops.target import Target

LOGIN = "gcloud auth application-default login"
STORE = (GoogleAPICallError, RetryError, GoogleAuthError)
# What the client makes of credentials that it could not renew.
_PLUGIN = "Getting metadata from plugin failed"


class NotDone(Exception):
    """What was asked for was not done; the message says why, and what to do."""


def told(error: Exception, target: Target) -> str:
    """What an error of the store or of the credentials means to an operator."""
    if isinstance(error, RetryError) and error.cause is not None:
        error = error.cause
    said = " ".join(str(getattr(error, "message", error)).split())[:300]
    if isinstance(error, DefaultCredentialsError):
        return f"there are no credentials: run `{LOGIN}` and try again"
    if isinstance(error, GoogleAuthError | Unauthenticated) or _PLUGIN in said:
        return f"the credentials are not taken ({said}): run `{LOGIN}` and try again"
    match error:
        case PermissionDenied():
            means = f"not allowed in {target}: it takes the role roles/datastore.user"
        case NotFound():
            means = f"{target} has no database (default), or is not yours"
        case FailedPrecondition() if "index" in said:
            means = "an index is missing: deploy firestore.indexes.json (docs/adopting.md)"
        case _:
            means = f"Firestore did not answer as it should ({type(error).__name__}); try again"
    return f"{means}. Google says: {said}"
