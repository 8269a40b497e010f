"""Google's token endpoint: a service account's signed assertion in, an access token out."""

import secrets

import jwt
from aiohttp import web

from scripts.local.standins.google import GoogleError

_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_LIFE_S = 3600


class Issuer:
    """Issues access tokens and knows them again. They outlast a reset: the clients keep theirs for an hour."""

    def __init__(self) -> None:
        self._issued: set[str] = set()

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/token", self._token)]

    async def _token(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        if form.get("grant_type") != _GRANT:
            return web.json_response({"error": "unsupported_grant_type"}, status=400)
        try:
            # Only this machine can know the account, so what counts is that it is an assertion that still holds.
            jwt.decode(
                str(form.get("assertion")),
                options={"verify_signature": False, "verify_exp": True, "require": ["iss", "exp", "aud"]},
            )
        except jwt.InvalidTokenError as error:
            return web.json_response({"error": "invalid_grant", "error_description": str(error)}, status=400)
        token = secrets.token_urlsafe(24)
        self._issued.add(token)
        return web.json_response({"access_token": token, "expires_in": _LIFE_S - 1, "token_type": "Bearer"})

    def require_bearer(self, request: web.Request) -> None:
        """Let a request pass that carries a token from here, or one that a service account signed for itself.

        Raises:
            GoogleError: 401.
        """
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self._issued and not _is_self_signed(token):
            raise GoogleError(
                401,
                "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other "
                "valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.",
            )


def _is_self_signed(token: str) -> bool:
    """The clients of Google Cloud spare the token endpoint: https://google.aip.dev/auth/4111."""
    needed = ["iss", "sub", "exp", "iat"]
    try:
        claims = jwt.decode(
            token, options={"verify_signature": False, "verify_exp": True, "verify_aud": False, "require": needed}
        )
    except jwt.InvalidTokenError:
        return False
    return claims["iss"] == claims["sub"] and bool(claims.get("aud") or claims.get("scope"))
