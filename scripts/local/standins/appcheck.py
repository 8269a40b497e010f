"""App Check: an issuer of tokens with its public keys, and replay protection."""

import json
import secrets
import time
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa

from scripts.local.layout import PROJECT
from scripts.local.standins import deliver
from scripts.local.standins.google import GoogleError
from scripts.local.standins.oauth import Issuer
from scripts.local.standins.script import Script

PROJECT_NUMBER = "123456789012"
APP_ID = f"1:{PROJECT_NUMBER}:web:f12eb12ea4f12eb12ea4f1"
_ISSUER = f"https://firebaseappcheck.googleapis.com/{PROJECT_NUMBER}"
_HOUR_S = 3600
_LIMITED_USE_S = 300
# Verifiers allow no leeway on `iat`, and clocks are read in whole seconds.
_BACKDATE_S = 2
_CLAIMS = {"appId": str, "ttlSeconds": int, "projectId": str, "limitedUse": bool, "badSignature": bool}
# For tests of what no issuer would sign: claims on top (null takes one away), and another key id.
_ODD_CLAIMS = {"claims": dict, "kid": str}


class AppCheck:
    """The handlers, with one key pair for the life of the process."""

    def __init__(self, issuer: Issuer) -> None:
        self.script = Script(methods=frozenset({"jwks", "verify"}))
        self._oauth = issuer
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._kid = secrets.token_hex(4)
        self._consumed: set[str] = set()

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/jwks", self._jwks),
            web.post("/v1beta/projects/{project}:verifyAppCheckToken", self._verify),
            web.post("/appcheck/mint", self._mint),
        ]

    async def _jwks(self, request: web.Request) -> web.StreamResponse:
        request[deliver.ENTRY] = self.script.enter(method="jwks", path=request.path)
        reply = self.script.next_for("jwks")
        key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key()))
        keys = {"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self._kid, "n": key["n"], "e": key["e"]}]}
        return await deliver.scripted_error(request, reply) or await deliver.whole(request, reply, keys)

    async def _verify(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        request[deliver.ENTRY] = self.script.enter(method="verify", path=request.path, body=body)
        self._oauth.require_bearer(request)
        reply = self.script.next_for("verify")
        if refused := await deliver.scripted_error(request, reply):
            return refused
        token = body.get("appCheckToken") or body.get("app_check_token")
        claims = self._decode(token, request.match_info["project"])
        # A first use leaves the field out, as proto3 JSON does with a false.
        first = claims["jti"] not in self._consumed
        self._consumed.add(claims["jti"])
        return await deliver.whole(request, reply, {} if first else {"alreadyConsumed": True})

    def _decode(self, token: object, project: str) -> dict[str, Any]:
        try:
            return jwt.decode(
                str(token),
                self._key.public_key(),
                algorithms=["RS256"],
                audience=f"projects/{project}",
                issuer=_ISSUER,
            )
        except jwt.InvalidTokenError:
            raise GoogleError(400, "App Check token is invalid.") from None

    async def _mint(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json() if request.can_read_body else {}
        for name, value in asked.items():
            if type(value) is not (_CLAIMS | _ODD_CLAIMS).get(name):
                raise GoogleError(400, f"mint takes {', '.join(_CLAIMS)}; not {name}={value!r}")
        project = asked.get("projectId", PROJECT)
        if not project.startswith("demo-"):
            raise GoogleError(400, "only tokens for demo- projects are minted here")
        now = int(time.time())
        expires = now + asked.get("ttlSeconds", _LIMITED_USE_S if asked.get("limitedUse") else _HOUR_S)
        claims: dict[str, object] = {
            "iss": _ISSUER,
            "sub": asked.get("appId", APP_ID),
            "aud": [f"projects/{PROJECT_NUMBER}", f"projects/{project}"],
            "provider": "custom",
            "jti": secrets.token_urlsafe(16),
            "iat": min(now, expires) - _BACKDATE_S,
            "exp": expires,
        }
        claims = {name: value for name, value in (claims | asked.get("claims", {})).items() if value is not None}
        token = jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": asked.get("kid", self._kid)})
        if asked.get("badSignature"):
            token = _spoil(token)
        return web.json_response({"token": token, "expireTimeMillis": expires * 1000})


def _spoil(token: str) -> str:
    """The same token with another first character of its signature."""
    signed, signature = token.rsplit(".", 1)
    return f"{signed}.{'B' if signature[0] == 'A' else 'A'}{signature[1:]}"
