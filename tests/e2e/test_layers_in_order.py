"""The order of the layers: a request that one of them refuses makes no call of a later one, counted at the wire."""

import base64
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from google.cloud import firestore as google_firestore

from firebreak.limits.pool import SHARDS
from firebreak.switch import change
from scripts.clients.tokens import headers as tokens_of
from scripts.local.deployed import Deployed, deployed
from scripts.local.inject.raw_firestore import raw
from scripts.local.stack import Stack
from tests.e2e.wipe import wipe
from tests.e2e.wiretap import Tap, tapping

# Of its own, so that what is tripped and drained here stops no other test.
PROJECT = "demo-layers"
HELLO = {"prompt": "hi"}
HUGE = {"prompt": "ten words that the model would have to count first " * 1_500}

# The layers, and what each may ask of others. The last four are the handler's.
ORDER: Mapping[str, frozenset[str]] = {
    "settings": frozenset(),
    "headers": frozenset(),
    "switch": frozenset({"switch"}),
    "app-check": frozenset({"appcheck: jwks"}),
    "sign-in": frozenset({"certificates"}),
    "requests": frozenset({"rate"}),
    "body": frozenset(),
    "field": frozenset(),
    "tokens": frozenset({"bucket"}),
    "pool": frozenset({"pool"}),
    "ok": frozenset({"gemini: generateContent", "gemini: countTokens"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A request that fails at `layer` with `reason`; `asked` is all that it may have asked of anybody.

    Where the body comes later than the layer it is announced, and not sent: who reads it finds that it has ended early.
    """

    layer: str
    asked: frozenset[str]
    reason: str = ""
    data: object = None
    env: Mapping[str, str | None] | None = None
    prepare: Callable[[google_firestore.Client, str], object] = lambda _store, _uid: None
    attested: bool = True
    signed_in: bool = True
    certified: bool = False
    kind: str = "application/json"


def trip(store: google_firestore.Client, _uid: str) -> None:
    asked = change.Trip(scope="gemini", owner="operator", reason="a test", by="test", until_us=None)
    change.apply(store, [asked], timeout_s=10)


def emptied(*names: str) -> dict[str, Any]:
    """A document of these levels from which all has been leased."""
    return {"levels": {name: {"tokens": 0, "updatedAt": datetime.now(UTC)} for name in names}, "version": 1}


def no_requests(store: google_firestore.Client, uid: str) -> None:
    store.document(f"request_buckets/{uid}").set(emptied("read", "write"))


def no_pool(store: google_firestore.Client, _uid: str) -> None:
    for shard in range(SHARDS):
        store.document(f"pool/{shard}").set(emptied("anonymous", "default", "common"))


def bucket(tokens: int) -> Callable[[google_firestore.Client, str], object]:
    def prepare(store: google_firestore.Client, uid: str) -> None:
        store.document(f"token_buckets/{uid}").set({"tokens": tokens, "updatedAt": datetime.now(UTC), "version": 1})

    return prepare


NOTHING: frozenset[str] = frozenset()
SWITCH = frozenset({"switch"})
ATTESTED = SWITCH | {"appcheck: jwks"}
COUNTED = ATTESTED | {"rate"}
BUCKET = COUNTED | {"bucket"}
POOLED = BUCKET | {"pool"}
NO_AUTH_EMULATOR = {"FIREBASE_AUTH_EMULATOR_HOST": None}

CASES = {
    "a wrong setting": Case(layer="settings", asked=NOTHING, env={"MAX_DAILY_TOKENS": "many"}),
    "headers of no callable request": Case(layer="headers", reason="shape", asked=NOTHING, kind="text/plain"),
    "an origin that may not call": Case(
        layer="headers", reason="origin", asked=NOTHING, env={"ALLOWED_ORIGINS": "https://app.example"}
    ),
    "the environment's switch": Case(layer="switch", asked=NOTHING, env={"KILL_SWITCH": "gemini"}),
    "the switch": Case(layer="switch", asked=SWITCH, prepare=trip),
    "no App Check token": Case(layer="app-check", asked=SWITCH, attested=False),
    "no ID token": Case(layer="sign-in", asked=ATTESTED, signed_in=False),
    "an ID token whose certificate cannot be had": Case(
        layer="sign-in", reason="attestation", asked=ATTESTED | {"certificates"}, env=NO_AUTH_EMULATOR, certified=True
    ),
    "no requests at all": Case(layer="requests", asked=ATTESTED, env={"WRITE_REQUESTS_PER_HOUR": "0"}),
    "no requests left": Case(
        layer="requests", asked=COUNTED, env={"WRITE_REQUESTS_PER_HOUR": "1"}, prepare=no_requests
    ),
    "a body of no callable request": Case(layer="body", reason="shape", asked=COUNTED, data=...),
    "a wrong field": Case(layer="field", asked=COUNTED, data={"prompt": 7}),
    "a pool too small for the call": Case(layer="pool", asked=BUCKET, env={"POOL_TOKENS_PER_HOUR": "8"}),
    "an empty pool": Case(layer="pool", asked=POOLED, env={"POOL_TOKENS_PER_HOUR": "9000"}, prepare=no_pool),
    "an empty bucket": Case(layer="tokens", asked=BUCKET, prepare=bucket(0)),
    "a bucket that pays for no answer, and a prompt to count": Case(
        layer="tokens", asked=BUCKET, data=HUGE, prepare=bucket(500)
    ),
    "nothing": Case(layer="ok", asked=POOLED | {"gemini: generateContent"}),
}


@pytest.fixture
def tap(stack: Stack) -> Iterator[Tap]:
    with tapping(stack) as tap:
        yield tap


@pytest.fixture
def store(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> google_firestore.Client:
    """The store of these tests, empty."""
    wipe(stack, PROJECT)
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", stack.firestore_host)
    return raw(google_firestore.Client(project=PROJECT), "sets up what an operator or other calls have left")


def answered(server: Deployed, body: bytes, headers: Mapping[str, str], *, withheld: bool) -> Any:
    """The answer to a request whose body is sent, or `withheld`: announced and never sent."""
    at = urlsplit(server.url)
    connection = HTTPConnection(at.hostname or "", at.port, timeout=60)
    try:
        connection.request("POST", "/", b"" if withheld else body, {**headers, "Content-Length": str(len(body))})
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_request_makes_no_call_of_a_later_layer(
    stack: Stack, tap: Tap, store: google_firestore.Client, tmp_path: Path, case: Case
) -> None:
    layers = list(ORDER)
    uid = f"user-{uuid.uuid4().hex[:8]}"
    sent = tokens_of(stack.standins_url, uid, PROJECT)
    if not case.attested:
        sent["X-Firebase-AppCheck"] = "forged"
    if not case.signed_in:
        sent["Authorization"] = "Bearer forged"
    if case.certified:
        # As production's: who verifies it must fetch the certificate that it names.
        header = base64.urlsafe_b64encode(b'{"alg":"RS256","kid":"one","typ":"JWT"}').rstrip(b"=").decode()
        sent["Authorization"] = f"Bearer {header}.{sent['Authorization'].split('.')[1]}.c2lnbmVk"
    case.prepare(store, uid)
    tap.heard()

    with deployed(
        "generate", stack, tmp_path / "log", env={**tap.env, "GCLOUD_PROJECT": PROJECT, **(case.env or {})}
    ) as server:
        body: Any = {"nothing": 1} if case.data is ... else {"data": case.data or HELLO}
        sent |= {"Content-Type": case.kind, "Origin": "https://elsewhere.example"}
        answer = answered(
            server, json.dumps(body).encode(), sent, withheld=layers.index(case.layer) < layers.index("body")
        )

    asked = tap.heard()
    assert answer.get("error", {"details": {"reason": "ok"}})["details"]["reason"] == (case.reason or case.layer)
    later = frozenset[str]().union(*(ORDER[name] for name in layers[layers.index(case.layer) + 1 :]))
    assert not asked & later
    assert asked == case.asked
