"""Who is asking: the App Check token of the app, then the user's ID token; an outage is never the client's fault."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

import firebase_admin
import jwt
from firebase_admin import app_check, auth
from firebase_admin.exceptions import FirebaseError
from google.auth.exceptions import GoogleAuthError
from requests.exceptions import RequestException

from firebreak.deadline import Late, within
from firebreak.errors import AppCheckFailed, AttestationUnavailable, SignInRequired
from firebreak.events import Event, Severity, emit

# Both verify offline but for a fetch of public keys, which libraries allow up to 120 s for.
VERIFY_S = 5.0
RETRY_AFTER_S = 5
TOKEN_BYTES = 8192

_lock = Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A signed-in user, as the verified ID token says."""

    uid: str
    anonymous: bool
    claims: Mapping[str, Any]


def connect(project: str) -> firebase_admin.App:
    """The default Firebase app of this process, made on first use; the SDK's own checks use it too."""
    with _lock:
        try:
            return firebase_admin.get_app()
        except ValueError:
            return firebase_admin.initialize_app(options={"projectId": project, "httpTimeout": VERIFY_S})


def attest(token: str | None, app: firebase_admin.App) -> str:
    """Verify an App Check token; returns the app id it was given to.

    Raises:
        AppCheckFailed: it is missing, forged, expired, or of another project.
        AttestationUnavailable: it could not be verified.
    """
    if not token or len(token) > TOKEN_BYTES:
        raise AppCheckFailed
    claims = _verified(lambda: app_check.verify_token(token, app), AppCheckFailed)
    # The SDK accepts a token without an expiry, and one for an app without a name.
    if not isinstance(claims.get("exp"), int) or not claims.get("sub"):
        raise AppCheckFailed
    return str(claims["sub"])


def sign_in(authorization: str | None, app: firebase_admin.App) -> User:
    """Verify the `Authorization` header's ID token; the uid comes from here and from nowhere else.

    Raises:
        SignInRequired: it is missing, forged, expired, or of another project.
        AttestationUnavailable: it could not be verified.
    """
    scheme, _, token = (authorization or "").partition(" ")
    if scheme != "Bearer" or not token or len(token) > TOKEN_BYTES:
        raise SignInRequired
    claims = _verified(lambda: auth.verify_id_token(token, app), SignInRequired)
    provider = claims.get("firebase")
    anonymous = isinstance(provider, dict) and provider.get("sign_in_provider") == "anonymous"
    return User(uid=str(claims["uid"]), anonymous=anonymous, claims=claims)


def _verified(verify: Callable[[], dict[str, Any]], refusal: type[AppCheckFailed | SignInRequired]) -> dict[str, Any]:
    """Claims of a good token. What proves the token bad refuses it; whatever else fails is our outage."""
    try:
        return within(VERIFY_S, verify)
    except (Late, GoogleAuthError, RequestException, jwt.PyJWKClientConnectionError, auth.CertificateFetchError) as e:
        outage: Exception = e
    except (auth.InvalidIdTokenError, jwt.PyJWTError, ValueError, AttributeError, TypeError) as e:
        raise refusal from e
    except FirebaseError as e:
        outage = e
    emit(Event.ATTESTATION, severity=Severity.ERROR, error=type(outage).__name__)
    raise AttestationUnavailable(retry_after_s=RETRY_AFTER_S) from outage
