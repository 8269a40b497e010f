"""One local stack for the whole run, and the hands to reach into it: stand-ins, users, App Check tokens, Firestore."""

import importlib
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from google.cloud import firestore as google_firestore
from hypothesis import HealthCheck, settings

from scripts.local.inject import raw_firestore
from scripts.local.layout import ROOT
from scripts.local.stack import Stack, Unavailable, running
from scripts.local.wire import call

# Of every property: a busy machine fails none of them, and CI tries the same examples each time.
settings.register_profile(
    "firebreak", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("firebreak")

for guarded in raw_firestore.CLIENTS:
    raw_firestore.guard(importlib.import_module(guarded))


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """One stand-in, as a test steers it."""

    url: str
    service: str

    def script(self, *replies: dict[str, Any]) -> None:
        """Queue replies; `scripts/local/standins/script.py` names their fields."""
        answer = call("POST", f"{self.url}/_script/{self.service}", list(replies))
        assert answer.status == 200, answer.body

    def log(self, method: str | None = None) -> list[dict[str, Any]]:
        """The requests since the last reset, of one method or of all."""
        entries: list[dict[str, Any]] = call("GET", f"{self.url}/_log/{self.service}").json
        return [entry for entry in entries if method in {None, entry["method"]}]

    def reset(self) -> None:
        """Forget all scripts and logs, those of the other stand-ins too."""
        assert call("POST", f"{self.url}/_reset").status == 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A user of the Auth emulator."""

    uid: str
    id_token: str


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their folder, and run what needs nothing first, what looks back on the whole run last."""
    order = {"unit": 0, "simulated": 1, "emulator": 2, "e2e": 3}
    for item in items:
        folder = item.path.relative_to(ROOT / "tests").parts[0]
        if folder in {"emulator", "e2e"}:
            item.add_marker(folder)
    items.sort(key=lambda item: order.get(item.path.relative_to(ROOT / "tests").parts[0], 0))
    items.sort(key=lambda item: item.path.name == "test_logs.py")


@pytest.fixture(autouse=True)
def metered_only() -> Iterator[None]:
    """No test calls Firestore past the meters, even if it swallows the failure."""
    before = len(raw_firestore.FAILED)
    yield
    assert raw_firestore.FAILED[before:] == []


@pytest.fixture(scope="session")
def stack(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """The stack that `make serve` keeps, else one for this run."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with ExitStack() as at_the_end:
        with capture.global_and_fixture_disabled():
            print(flush=True)
            try:
                stack = at_the_end.enter_context(running())
            except Unavailable as error:
                pytest.exit(str(error), returncode=1)
        yield stack


@pytest.fixture
def gemini(stack: Stack) -> Iterator[StandIn]:
    """The Gemini stand-in with an empty log and no script."""
    standin = StandIn(url=stack.standins_url, service="gemini")
    standin.reset()
    yield standin
    standin.reset()


@pytest.fixture
def appcheck(stack: Stack) -> Iterator[StandIn]:
    """The App Check stand-in with an empty log and no script; methods `jwks` and `verify`."""
    standin = StandIn(url=stack.standins_url, service="appcheck")
    standin.reset()
    yield standin
    standin.reset()


@pytest.fixture
def mint(stack: Stack) -> Callable[..., str]:
    """Mints an App Check token: `appId`, `ttlSeconds`, `projectId`, `limitedUse`, `badSignature`."""

    def mint(**claims: object) -> str:
        answer = call("POST", f"{stack.standins_url}/appcheck/mint", claims)
        assert answer.status == 200, answer.body
        return str(answer.json["token"])

    return mint


@pytest.fixture
def sign_up(stack: Stack) -> Callable[[], SignedIn]:
    """Signs up a new anonymous user with the Auth emulator."""

    def sign_up() -> SignedIn:
        url = f"http://{stack.auth_host}/identitytoolkit.googleapis.com/v1/accounts:signUp?key=local"
        user = call("POST", url, {"returnSecureToken": True}).json
        return SignedIn(uid=user["localId"], id_token=user["idToken"])

    return sign_up


@pytest.fixture
def firestore(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Callable[..., google_firestore.Client]:
    """Makes a client of the emulator; the SDK takes its address from the environment alone."""
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", stack.firestore_host)

    def client(**options: Any) -> google_firestore.Client:
        made = google_firestore.Client(project=stack.project, **options)
        return raw_firestore.raw(made, "looks at what the functions have stored")

    return client


@pytest.fixture
def uid() -> str:
    """A user id that no other test has."""
    return f"user-{uuid.uuid4().hex[:12]}"
