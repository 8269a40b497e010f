"""Who is asking: the App Check token of the app, then the user's ID token; an outage is never the client's fault."""

import base64
import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from threading import Lock
from time import monotonic
from typing import TypeIs

import firebase_admin
import jwt
from firebase_admin import app_check, auth, tenant_mgt
from firebase_admin.exceptions import FirebaseError
from google.auth.exceptions import GoogleAuthError
from requests.exceptions import RequestException

from firebreak.errors import AppCheckFailed, AttestationUnavailable, SignInRequired
from firebreak.events import Event, Severity, emit
from firebreak.settings.tiers import User
from firebreak.store.documents import user_key
from firebreak.waiting import Late, within

TOKENS = 10_000


class TokenCache:
    """App ids by token, each as long as its token holds; a bounded cache, shared by all threads."""

    def __init__(self, now: Callable[[], float] = time.time, tokens: int = TOKENS) -> None:
        self._now = now
        self._tokens = tokens
        self._lock = Lock()
        self._known: OrderedDict[bytes, tuple[str, int]] = OrderedDict()

    def get(self, token: str) -> str | None:
        """The app id of a token that was verified before and has not expired since."""
        known = self._known.get(_digest(token))
        return None if known is None or self._now() >= known[1] else known[0]

    def put(self, token: str, app_id: str, expires_s: int) -> None:
        """Remember a token that was verified just now; `expires_s` is its `exp`."""
        with self._lock:
            self._known[_digest(token)] = (app_id, expires_s)
            while len(self._known) > self._tokens:
                self._known.popitem(last=False)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


# Both verify offline but for a fetch of public keys, which libraries allow up to 120 s for.
VERIFY_S = 5.0
RETRY_AFTER_S = 5
# An unknown key is looked for again after this long: keys are published long before tokens bear them.
REFETCH_S = 60.0
TOKEN_BYTES = 8192
NO_TENANT = "Users of this tenant may not call: ALLOWED_TENANTS does not name it."

# What Auth says of a user who may not call.
BAD_TOKEN = (auth.InvalidIdTokenError, auth.UserDisabledError, auth.UserNotFoundError)

_lock = Lock()
_attested = TokenCache()


def connect(project: str) -> firebase_admin.App:
    """The default Firebase app of this process, made on first use; the SDK's own checks use it too."""
    with _lock:
        try:
            return firebase_admin.get_app()
        except ValueError:
            return firebase_admin.initialize_app(options={"projectId": project, "httpTimeout": VERIFY_S})


def attest(token: str | None, app: firebase_admin.App, *, allowed: Collection[str], consume: bool) -> str:
    """Verify an App Check token; returns the app id it was given to.

    `allowed` are the app ids that may call, none: every app of the project. With `consume` a token is good once; that
    costs one request to App Check.

    Raises:
        AppCheckFailed: it is missing, forged, expired, used before, or of another project or app.
        AttestationUnavailable: it could not be verified.
    """
    if not token or len(token) > TOKEN_BYTES:
        raise AppCheckFailed
    app_id = (None if consume else _attested.get(token)) or _verify(token, app, consume=consume)
    if allowed and app_id not in allowed:
        raise AppCheckFailed
    return app_id


def _verify(token: str, app: firebase_admin.App, *, consume: bool) -> str:
    offline = _keys.make_ready(token, app) and not consume
    claims = _verified(lambda: app_check.verify_token(token, app, consume), AppCheckFailed, offline=offline)
    app_id, expires_s = claims.get("sub"), claims.get("exp")
    # The SDK accepts a token without an expiry, and one for an app without a name.
    if not isinstance(expires_s, int) or not storable(app_id):
        raise AppCheckFailed
    if consume and claims.get("already_consumed") is not False:
        raise AppCheckFailed
    _attested.put(token, app_id, expires_s)
    return app_id


def sign_in(
    authorization: str | None, app: firebase_admin.App, *, tenants: Collection[str], check_revoked: bool
) -> User:
    """Verify the `Authorization` header's ID token; uid and tenant come from here and from nowhere else.

    `tenants` are those whose users may call, beside the users without one. `check_revoked` also asks Auth, in one
    request, if the user is disabled or the session revoked.

    Raises:
        SignInRequired: it is missing, forged, expired, of another project, or of a tenant that may not call.
        AttestationUnavailable: it could not be verified.
    """
    scheme, _, token = (authorization or "").partition(" ")
    if scheme != "Bearer" or not token or len(token) > TOKEN_BYTES:
        raise SignInRequired
    # Certificates are fetched under the app's own timeout, and without a lock that would stall other calls.
    claims = _verified(lambda: auth.verify_id_token(token, app), SignInRequired, offline=True)
    uid, provider = claims.get("uid"), claims.get("firebase")
    if not storable(uid) or not isinstance(provider, dict):
        raise SignInRequired
    tenant = _tenant(provider, tenants)
    if check_revoked:
        _verified(lambda: _ask_auth(token, tenant, app), SignInRequired, offline=False)
    anonymous = provider.get("sign_in_provider") == "anonymous"
    return User(uid=uid, tenant=tenant, key=user_key(uid, tenant), anonymous=anonymous, tier=claims.get("tier"))


def storable(claim: object) -> TypeIs[str]:
    """Whether a claim is a text that can name a document: JSON can hold half a character, which nothing encodes."""
    try:
        return isinstance(claim, str) and claim.encode() != b""
    except UnicodeError:
        return False


def _ask_auth(token: str, tenant: str | None, app: firebase_admin.App) -> None:
    # The project's own Auth does not know a tenant's users, or knows others by the same uids.
    if tenant is None:
        auth.verify_id_token(token, app, check_revoked=True)
    else:
        tenant_mgt.auth_for_tenant(tenant, app).verify_id_token(token, check_revoked=True)


def _tenant(provider: Mapping[str, object], tenants: Collection[str]) -> str | None:
    tenant = provider.get("tenant")
    if tenant is None:
        return None
    if not storable(tenant) or tenant not in tenants:
        raise SignInRequired(NO_TENANT)
    return tenant


class _Keys:
    """App Check's public keys, as the SDK caches them: fetched by one thread at a time, under our own deadline.

    The SDK fetches behind a lock that every verification takes, for up to 30 s, and again for each unknown key: a few
    forged tokens could stall all others. No public way leads there; should the SDK change inside, tests fail, and what
    is left is the SDK's own way, bounded.
    """

    def __init__(self) -> None:
        self._fetching = Lock()
        self._next_s = 0.0

    def make_ready(self, token: str, app: firebase_admin.App) -> bool:
        """Have the key of this token at hand; False if only the SDK can tell.

        Raises:
            AppCheckFailed: there is no such key.
            AttestationUnavailable: the keys could not be fetched.
        """
        client = self._client(app)
        if client is None:
            return False
        if self._has(client, token):
            return True
        if not self._fetching.acquire(timeout=VERIFY_S):
            raise _outage(Late())
        try:
            if not self._has(client, token):
                self._fetch(client, token)
        finally:
            self._fetching.release()
        return True

    def _fetch(self, client: jwt.PyJWKClient, token: str) -> None:
        known = client.jwk_set_cache is not None and client.jwk_set_cache.get() is not None
        if known and monotonic() < self._next_s:
            raise AppCheckFailed
        self._next_s = monotonic() + REFETCH_S
        client.timeout = VERIFY_S
        _verified(lambda: client.get_signing_key_from_jwt(token), AppCheckFailed, offline=False)

    @staticmethod
    def _client(app: firebase_admin.App) -> jwt.PyJWKClient | None:
        try:
            client: jwt.PyJWKClient = app_check._get_app_check_service(app)._jwks_client  # noqa: SLF001
        except AttributeError:
            return None
        except (ValueError, GoogleAuthError) as error:
            raise _outage(error) from error
        return client

    @staticmethod
    def _has(client: jwt.PyJWKClient, token: str) -> bool:
        keys = client.jwk_set_cache.get() if client.jwk_set_cache else None
        try:
            header = json.loads(base64.urlsafe_b64decode(token.partition(".")[0] + "=="))
            return keys is not None and header["kid"] in {key.key_id for key in keys.keys}
        except (KeyError, TypeError, ValueError, RecursionError):
            return False


_keys = _Keys()


def _verified[T](verify: Callable[[], T], refusal: type[AppCheckFailed | SignInRequired], *, offline: bool) -> T:
    """What verifying gives. What proves the token bad refuses it; whatever else fails is our outage."""
    try:
        return verify() if offline else within(VERIFY_S, verify)
    except (Late, GoogleAuthError, RequestException, jwt.PyJWKClientConnectionError, auth.CertificateFetchError) as e:
        outage: Exception = e
    except (*BAD_TOKEN, jwt.PyJWTError, ValueError, AttributeError, TypeError) as e:
        raise refusal from e
    except FirebaseError as e:
        outage = e
    raise _outage(outage) from outage


def _outage(error: Exception) -> AttestationUnavailable:
    emit(Event.ATTESTATION, severity=Severity.ERROR, error=type(error).__name__)
    return AttestationUnavailable(retry_after_s=RETRY_AFTER_S)
