"""Who may call: App Check tokens and ID tokens of every kind, and outages, which are never the client's fault."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from scripts.local import wire
from scripts.local.deployed import Deployed, deployed
from scripts.local.stack import Stack
from tests.conftest import SignedIn, StandIn
from tests.e2e.conftest import Headers

HELLO = {"prompt": "hi"}
OTHER_APP = "1:123456789012:ios:0000000000000000000000"


def post(server: Deployed, headers: Headers) -> tuple[int, dict[str, Any]]:
    answer = wire.call("POST", server.url, {"data": HELLO}, headers=headers, timeout_s=30)
    body: dict[str, Any] = answer.json
    return answer.status, body.get("error", {}).get("details", {})


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def parts(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    header, claims, _ = (base64.urlsafe_b64decode(part + "==") for part in token.split("."))
    return json.loads(header), json.loads(claims)


def unsigned(token: str, stack: Stack) -> str:
    header, claims = parts(token)
    return f"{encoded(header | {'alg': 'none'})}.{encoded(claims)}."


def signed_with_the_public_key(token: str, stack: Stack) -> str:
    """The classic confusion: the verifier's public key as the secret of an HMAC."""
    header, claims = parts(token)
    jwks = wire.call("GET", f"{stack.standins_url}/v1/jwks").body
    text = f"{encoded(header | {'alg': 'HS256'})}.{encoded(claims)}"
    mac = hmac.digest(jwks, text.encode(), hashlib.sha256)
    return f"{text}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


FORGERIES: dict[str, dict[str, Any]] = {
    "a bad signature": {"badSignature": True},
    "expired": {"ttlSeconds": -1},
    "of another project": {"projectId": "demo-somebody-else"},
    "without an expiry": {"claims": {"exp": None}},
    "without a subject": {"claims": {"sub": None}},
    "with an empty subject": {"claims": {"sub": ""}},
    "with a subject that is no text": {"claims": {"sub": 7}},
    "with half a character as its subject": {"claims": {"sub": "app-\ud800"}},
    "without an issuer": {"claims": {"iss": None}},
    "of another issuer": {"claims": {"iss": "https://securetoken.google.com/1"}},
    "with an audience that is no list": {"claims": {"aud": "projects/demo-firebreak"}},
    "issued in the future": {"claims": {"iat": 4_000_000_000}},
    "not valid yet": {"claims": {"nbf": 4_000_000_000}},
    "by an unknown key": {"kid": "nobody"},
}


@pytest.mark.parametrize("claims", FORGERIES.values(), ids=FORGERIES.keys())
def test_a_token_that_app_check_would_not_give_is_refused(
    claims: dict[str, Any], generate: Deployed, headers: Headers, mint: Callable[..., str]
) -> None:
    assert post(generate, headers | {"X-Firebase-AppCheck": mint(**claims)}) == (401, {"reason": "app-check"})


@pytest.mark.parametrize("uid", ["", "\ud800", "user-\udfff", "\ude00\ud83d", 7, None, ["user"]])
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_user_without_a_name_that_can_be_stored_is_refused(
    uid: object, accept: str, generate: Deployed, headers: Headers
) -> None:
    claims = json.loads(base64.urlsafe_b64decode(headers["Authorization"].split(".")[1] + "=="))
    token = f"{encoded({'alg': 'none', 'typ': 'JWT'})}.{encoded(claims | {'sub': uid, 'user_id': uid})}."

    sent = headers | {"Authorization": f"Bearer {token}", "Accept": accept}
    answer = wire.call("POST", generate.url, {"data": HELLO}, headers=sent)

    assert json.loads(answer.body.removeprefix(b"data: "))["error"]["details"] == {"reason": "sign-in"}


@pytest.mark.parametrize("forge", [unsigned, signed_with_the_public_key])
def test_another_algorithm_is_refused(
    forge: Callable[[str, Stack], str], generate: Deployed, headers: Headers, stack: Stack
) -> None:
    forged = forge(headers["X-Firebase-AppCheck"], stack)

    assert post(generate, headers | {"X-Firebase-AppCheck": forged}) == (401, {"reason": "app-check"})


def test_a_flood_of_unknown_keys_does_not_fetch_keys_each_time(
    generate: Deployed, headers: Headers, mint: Callable[..., str], appcheck: StandIn
) -> None:
    post(generate, headers)
    for number in range(20):
        post(generate, headers | {"X-Firebase-AppCheck": mint(kid=f"nobody-{number}")})

    assert len(appcheck.log("jwks")) <= 2
    assert post(generate, headers)[0] == 200


@pytest.fixture
def serve(stack: Stack, tmp_path: Path) -> Iterator[Callable[..., Deployed]]:
    """Starts `generate` with settings of its own."""
    servers: list[AbstractContextManager[Deployed]] = []

    def start(source: Path | None = None, **env: str | None) -> Deployed:
        context = deployed("generate", stack, tmp_path / f"log-{len(servers)}", env=env, source=source)
        servers.append(context)
        return context.__enter__()

    yield start
    for context in servers:
        context.__exit__(None, None, None)


def test_only_apps_that_are_named_may_call(
    serve: Callable[..., Deployed], headers: Headers, mint: Callable[..., str]
) -> None:
    server = serve(ALLOWED_APP_IDS=OTHER_APP)

    assert post(server, headers) == (401, {"reason": "app-check"})
    assert post(server, headers | {"X-Firebase-AppCheck": mint(appId=OTHER_APP)})[0] == 200


@pytest.mark.parametrize("reply", [{"delayMs": 20_000}, {"status": 500}, {"dropAfter": "nothing"}])
def test_an_outage_of_app_check_is_unavailable_and_logged_as_ours(
    reply: dict[str, Any], serve: Callable[..., Deployed], headers: Headers, appcheck: StandIn
) -> None:
    appcheck.script(*[{"for": "jwks", **reply}] * 3)
    server = serve()

    status, details = post(server, headers)

    assert (status, details["reason"]) == (503, "attestation")
    assert details["retryAfterSeconds"] > 0
    assert '"severity": "ERROR", "message": "firebreak.attestation"' in server.log


def test_a_missing_credential_is_unavailable(serve: Callable[..., Deployed], headers: Headers) -> None:
    server = serve(GOOGLE_APPLICATION_CREDENTIALS="/nowhere.json")

    assert post(server, headers)[1]["reason"] == "attestation"
    assert "firebreak.attestation" in server.log


def test_an_origin_that_is_not_allowed_does_not_execute(
    serve: Callable[..., Deployed], headers: Headers, gemini: StandIn
) -> None:
    server = serve(ALLOWED_ORIGINS="https://app.example")
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}

    preflight = wire.call("OPTIONS", server.url, headers=asked)
    status, details = post(server, headers | {"Origin": "https://evil.example"})

    assert "Access-Control-Allow-Origin" not in preflight.headers
    assert (status, details) == (403, {"reason": "origin"})
    assert gemini.log() == []
    assert post(server, headers | {"Origin": "https://app.example"})[0] == 200
    assert post(server, headers)[0] == 200


REPLAY = """
import main
from firebreak.guard.callables import guarded

@guarded(consume_app_check_token=True, secrets=[main.GEMINI_API_KEY])
def generate(call):
    return {"app": call.app_id}
"""


@pytest.fixture
def replay(serve: Callable[..., Deployed], tmp_path: Path) -> Deployed:
    """A callable of one's own with replay protection."""
    source = tmp_path / "replay.py"
    source.write_text(REPLAY)
    return serve(source=source)


def test_a_token_is_good_once_where_replay_protection_is_on(
    replay: Deployed, headers: Headers, mint: Callable[..., str]
) -> None:
    once = headers | {"X-Firebase-AppCheck": mint(limitedUse=True)}

    assert post(replay, once)[0] == 200
    assert post(replay, once) == (401, {"reason": "app-check"})
    assert post(replay, headers | {"X-Firebase-AppCheck": mint(limitedUse=True)})[0] == 200


def test_a_token_that_is_bad_anyway_is_not_asked_about(
    replay: Deployed, headers: Headers, mint: Callable[..., str], appcheck: StandIn
) -> None:
    post(replay, headers | {"X-Firebase-AppCheck": mint(badSignature=True)})

    assert appcheck.log("verify") == []


def test_an_outage_of_replay_protection_is_unavailable(replay: Deployed, headers: Headers, appcheck: StandIn) -> None:
    appcheck.script({"for": "verify", "status": 503}, {"for": "verify", "delayMs": 20_000})

    assert post(replay, headers)[1]["reason"] == "attestation"


def admin(stack: Stack, action: str, body: dict[str, Any]) -> None:
    url = f"http://{stack.auth_host}/identitytoolkit.googleapis.com/v1/projects/{stack.project}/accounts:{action}"
    assert wire.call("POST", url, body, headers={"Authorization": "Bearer owner"}).status == 200


def test_a_disabled_user_is_refused_where_that_is_checked(
    serve: Callable[..., Deployed], generate: Deployed, headers: Headers, user: SignedIn, stack: Stack
) -> None:
    checking = serve(CHECK_REVOKED="true")
    assert post(checking, headers)[0] == 200

    admin(stack, "update", {"localId": user.uid, "disableUser": True})

    assert post(checking, headers) == (401, {"reason": "sign-in"})
    assert post(generate, headers)[0] == 200


def test_a_revoked_session_and_a_deleted_user_are_refused_where_that_is_checked(
    serve: Callable[..., Deployed], headers: Headers, user: SignedIn, stack: Stack
) -> None:
    checking = serve(CHECK_REVOKED="true")

    admin(stack, "update", {"localId": user.uid, "validSince": "4000000000"})
    assert post(checking, headers) == (401, {"reason": "sign-in"})

    admin(stack, "delete", {"localId": user.uid})
    assert post(checking, headers) == (401, {"reason": "sign-in"})


def test_the_uid_comes_from_the_token_and_from_nowhere_else(generate: Deployed, headers: Headers) -> None:
    answer = wire.call("POST", generate.url, {"data": HELLO | {"uid": "somebody"}}, headers=headers)

    assert answer.json["error"]["message"] == "unknown field: uid"


def test_anonymous_users_and_tiers_have_limits_of_their_own(
    serve: Callable[..., Deployed], headers: Headers, mint: Callable[..., str], user: SignedIn, stack: Stack
) -> None:
    server = serve(ANONYMOUS_DAILY_TOKENS="500", TIERS="pro=9000,banned=0")

    def as_tier(tier: str | None) -> tuple[int, dict[str, Any]]:
        _, claims = parts(headers["Authorization"].removeprefix("Bearer "))
        token = f"{encoded({'alg': 'none', 'typ': 'JWT'})}.{encoded(claims | ({'tier': tier} if tier else {}))}."
        return post(server, headers | {"Authorization": f"Bearer {token}"})

    assert as_tier(None)[1]["reason"] == "too-large"
    assert as_tier(None)[1]["limit"] == 500
    assert as_tier("pro")[0] == 200
    assert as_tier("banned") == (403, {"reason": "blocked", "limit": 0})
    assert as_tier("unknown")[1]["limit"] == 500
