"""The kill switch, as deployed: what a tripped one costs, counted in sockets and requests, and what it lets through."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from google.cloud import firestore as google_firestore

from firebreak.switch import change
from scripts.clients.tokens import headers as tokens_of
from scripts.local import wire
from scripts.local.deployed import Deployed, deployed
from scripts.local.inject.raw_firestore import raw
from scripts.local.stack import Stack
from tests.e2e.wipe import wipe
from tests.e2e.wiretap import knocking, tapping

# Of its own, so that what is tripped here stops no other test.
PROJECT = "demo-switch"
# Not imported here: it listens from then on.
SOURCE = Path(__file__).with_name("overheard.py")
OVERHEARD = "overheard:"
REASON = "The bill is burning; back at noon."
CALLS = 40
SSE = {"Accept": "text/event-stream"}


@pytest.fixture
def store(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> google_firestore.Client:
    """The store of these tests, empty."""
    wipe(stack, PROJECT)
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", stack.firestore_host)
    return raw(google_firestore.Client(project=PROJECT), "trips the switch as an operator would")


@pytest.fixture
def sent(stack: Stack) -> dict[str, str]:
    return tokens_of(stack.standins_url, "user", PROJECT)


def trip(store: google_firestore.Client, scope: str) -> None:
    change.apply(
        store,
        [change.Trip(scope=scope, owner="operator", reason=REASON, by="test", until_us=None)],
        timeout_s=10,
    )


def reset(store: google_firestore.Client) -> None:
    change.apply(store, [change.Reset(scope=None, owner=None, reason="over", by="test")], timeout_s=10)


def reason(server: Deployed, headers: dict[str, str]) -> str:
    """Why a call was refused, `ok` if it was not; as a stream, if the headers ask for one."""
    answer = wire.call("POST", server.url, {"data": {"prompt": "hi"}}, headers=headers)
    last = answer.body.decode().strip().rsplit("data: ", 1)[-1]
    error = json.loads(last).get("error", {"details": {"reason": "ok"}})
    return str(error["details"]["reason"])


def flood(server: Deployed, sent: dict[str, str]) -> set[str]:
    """The reasons of many calls at once: whole and as streams, attested and not."""
    kinds = [sent, sent | SSE, {}, SSE]
    with ThreadPoolExecutor(max_workers=8) as pool:
        return set(pool.map(lambda number: reason(server, kinds[number % 4]), range(CALLS)))


def test_with_the_knob_a_request_opens_no_socket(stack: Stack, tmp_path: Path, sent: dict[str, str]) -> None:
    with knocking() as (address, knocks):
        env = {"GCLOUD_PROJECT": PROJECT, "FIRESTORE_EMULATOR_HOST": address, "KILL_SWITCH": "all"}
        with deployed("generate", stack, tmp_path / "log", env=env, source=SOURCE) as server:
            reasons = flood(server, sent)

            assert reasons == {"switch"}
            assert OVERHEARD not in server.log
            assert knocks() == 0


def test_what_counts_the_sockets_hears_them(stack: Stack, tmp_path: Path, sent: dict[str, str]) -> None:
    """The control of the test above: without the knob both ears hear."""
    with knocking() as (address, knocks):
        env = {"GCLOUD_PROJECT": PROJECT, "FIRESTORE_EMULATOR_HOST": address}
        with deployed("generate", stack, tmp_path / "log", env=env, source=SOURCE) as server:
            assert reason(server, sent) == "store"
            assert knocks() > 0
    with deployed("generate", stack, tmp_path / "log2", env={"GCLOUD_PROJECT": PROJECT}, source=SOURCE) as server:
        assert reason(server, sent) == "ok"
        assert OVERHEARD in server.log


def test_while_tripped_a_flood_costs_one_read_of_the_switch(
    stack: Stack, store: google_firestore.Client, tmp_path: Path, sent: dict[str, str]
) -> None:
    trip(store, "gemini")
    with tapping(stack) as tap:
        env = {**tap.env, "GCLOUD_PROJECT": PROJECT, "SWITCH_TTL_S": "300"}
        with deployed("generate", stack, tmp_path / "log", env=env, source=SOURCE) as server:
            reasons = flood(server, sent)

            assert reasons == {"switch"}
            assert tap.firestore.seen == ["switch"]
            assert tap.heard() == {"switch"}
            assert OVERHEARD not in server.log


def test_a_client_is_told_the_operators_reason_and_when_to_come_again(
    stack: Stack, store: google_firestore.Client, tmp_path: Path, sent: dict[str, str]
) -> None:
    trip(store, "gemini")
    env = {"GCLOUD_PROJECT": PROJECT, "SWITCH_TTL_S": "15"}
    with deployed("generate", stack, tmp_path / "log", env=env) as server:
        answer = wire.call("POST", server.url, {"data": {"prompt": "hi"}}, headers=sent)

    assert answer.status == 503
    assert answer.json["error"] == {
        "status": "UNAVAILABLE",
        "message": REASON,
        "details": {"reason": "switch", "scope": "gemini", "retryAfterSeconds": 15},
    }


@pytest.fixture
def quick(stack: Stack, store: google_firestore.Client, tmp_path: Path) -> Iterator[dict[str, Deployed]]:
    """All callables, looking at the switch every second."""
    env = {"GCLOUD_PROJECT": PROJECT, "SWITCH_TTL_S": "1"}
    with (
        deployed("generate", stack, tmp_path / "generate", env=env) as generate,
        deployed("usage", stack, tmp_path / "usage", env=env) as usage,
    ):
        yield {"generate": generate, "usage": usage}


def eventually(server: Deployed, sent: dict[str, str], wanted: str) -> None:
    """Poll until a call is answered as wanted."""
    end = time.monotonic() + 20
    while reason(server, sent) != wanted:
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_trip_stops_who_spends_its_scope_within_the_ttl_and_a_reset_lets_them_go_on(
    quick: dict[str, Deployed], store: google_firestore.Client, sent: dict[str, str]
) -> None:
    assert [reason(server, sent) for server in quick.values()] == ["ok", "ok"]

    trip(store, "gemini")
    eventually(quick["generate"], sent, "switch")
    assert reason(quick["usage"], sent) == "ok"

    reset(store)
    eventually(quick["generate"], sent, "ok")

    trip(store, "all")
    eventually(quick["generate"], sent, "switch")
    eventually(quick["usage"], sent, "switch")
