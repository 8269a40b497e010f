"""What an app sees of a stream: the official web SDK, in Node and in a browser, and `.stream()` that never hangs."""

import os
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from scripts.clients import chromium
from scripts.clients.caller import Event, call, of_kind
from scripts.clients.client import Client, Json
from scripts.local.deployed import Deployed, deployed
from scripts.local.layout import HOST
from scripts.local.stack import Stack
from tests.conftest import StandIn
from tests.e2e.told import answer, refusal

LIMIT = 100_000
HELLO = {"prompt": "What is a firebreak?", "maxOutputTokens": 64}
# The prompt's bytes, its one turn, and the output that was asked for.
ESTIMATE = 20 + 24 + 64
PIECES = ["A strip ", "of ground ", "kept ", "bare."]
USAGE = {"promptTokenCount": 6, "candidatesTokenCount": 9, "totalTokenCount": 15}
# Between two chunks: far enough for no machine to see them at once.
APART_MS = 400
REQUIRE = "FIREBREAK_REQUIRE_BROWSER"
# What a hanging stream is given; every one here ends in a fraction of it.
WITHIN_S = 40


def find_browser() -> Path:
    """The installed Chromium; without one the test is skipped, or fails where one is required."""
    if found := chromium.find(os.environ):
        return found
    why = f"no Chromium or Chrome was found; install one, or name it in {chromium.NAMED}"
    if os.environ.get(REQUIRE) == "1":
        pytest.fail(f"{why} ({REQUIRE} is set)", pytrace=False)
    pytest.skip(why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """Where the clients of a test run, and what they call."""

    stack: Stack
    browser: Path | None

    def call(self, *data: Json, **how: Any) -> list[Event]:
        """All events of a client that streams, one call for each `data`."""
        client = Client(backend=self.stack, browser=self.browser, data=data, calls=len(data), stream=True)
        return call(replace(client, **how), WITHIN_S)


@pytest.fixture(params=["node", "chromium"])
def platform(request: pytest.FixtureRequest, stack: Stack) -> Platform:
    return Platform(stack=stack, browser=find_browser() if request.param == "chromium" else None)


def texts(events: Sequence[Event]) -> list[str]:
    return [event["message"]["text"] for event in of_kind(events, "message")]


def kinds(events: Sequence[Event]) -> list[str]:
    """The kinds of a client's events, without those before and after its calls."""
    return [event["event"] for event in events if event["event"] not in {"signed-in", "started", "done"}]


def test_each_chunk_arrives_as_a_message_and_then_the_result(platform: Platform, gemini: StandIn) -> None:
    gemini.script({"chunks": PIECES, "chunkDelayMs": APART_MS})

    events = platform.call(HELLO)

    assert kinds(events) == ["message"] * 4 + ["answered"]
    assert texts(events) == PIECES
    assert answer(events)["text"] == "".join(PIECES)
    assert len(gemini.log()) == 1


def test_a_stream_and_a_call_end_in_the_same_result(platform: Platform, gemini: StandIn) -> None:
    reply = {"chunks": PIECES, "usage": USAGE}
    gemini.script(reply, reply)

    streamed = platform.call({**HELLO, "requestId": "same"})
    called = platform.call({**HELLO, "requestId": "same"}, stream=False)

    assert kinds(called) == ["answered"]
    assert answer(streamed) == answer(called)
    assert answer(called)["charged"] == 15
    assert answer(called)["remaining"] == LIMIT - 15


def test_a_model_that_thinks_for_long_is_waited_for(platform: Platform, gemini: StandIn) -> None:
    gemini.script({"chunks": PIECES, "delayMs": 5_600})

    events = platform.call(HELLO)

    assert texts(events) == PIECES
    assert answer(events)["text"] == "".join(PIECES)


@pytest.mark.parametrize("attest", [None, {"badSignature": True}], ids=["missing", "forged"])
def test_a_bot_is_told_so(platform: Platform, gemini: StandIn, attest: Json) -> None:
    events = platform.call(HELLO, attest=attest)

    assert kinds(events) == ["refused"]
    assert refusal(events) == ("unauthenticated", {"reason": "app-check"})
    assert gemini.log() == []


def test_nobody_is_answered_without_signing_in(platform: Platform, gemini: StandIn) -> None:
    events = platform.call(HELLO, sign_in=None)

    assert kinds(events) == ["refused"]
    assert refusal(events) == ("unauthenticated", {"reason": "sign-in"})
    assert gemini.log() == []


def test_a_bad_field_is_named(platform: Platform, gemini: StandIn) -> None:
    events = platform.call({"promt": "hi"})

    assert refusal(events) == ("invalid-argument", {"reason": "field"})
    assert "unknown field: promt" in of_kind(events, "refused")[0]["message"]
    assert gemini.log() == []


def test_a_request_of_no_sane_shape_is_told_so(platform: Platform, gemini: StandIn) -> None:
    nested: list[Json] = []
    for _ in range(100):
        nested = [nested]

    events = platform.call({"prompt": nested})

    assert refusal(events) == ("invalid-argument", {"reason": "shape"})
    assert gemini.log() == []


def test_an_empty_bucket_tells_how_much_is_left_and_when_to_come_back(platform: Platform, gemini: StandIn) -> None:
    gemini.script({"text": "long", "usage": {"promptTokenCount": 9, "totalTokenCount": 99_000}})

    events = platform.call(HELLO, {**HELLO, "maxOutputTokens": 4_096})

    assert kinds(events)[-2:] == ["answered", "refused"]
    code, details = refusal(events)
    assert code == "resource-exhausted"
    assert details.keys() == {"reason", "remaining", "limit", "retryAfterSeconds"}
    assert details["reason"] == "tokens"
    assert 1_000 <= details["remaining"] < 1_100
    assert details["retryAfterSeconds"] > 0


def test_a_request_id_buys_one_stream(platform: Platform, gemini: StandIn) -> None:
    once = {**HELLO, "requestId": "once"}
    gemini.script({"chunks": PIECES, "usage": USAGE})

    events = platform.call(once, once)

    assert kinds(events) == ["message"] * 4 + ["answered", "refused"]
    assert refusal(events) == ("already-exists", {"reason": "duplicate", "status": "settled", "charged": 15})
    assert len(gemini.log()) == 1


def test_a_model_that_fails_before_its_first_chunk_is_told_with_the_charge(platform: Platform, gemini: StandIn) -> None:
    gemini.script({"status": 500}, {"dropAfter": "nothing"}, {"status": 401})

    events = platform.call(HELLO, HELLO, HELLO)

    refused = of_kind(events, "refused")
    assert kinds(events) == ["refused"] * 3
    assert {event["code"] for event in refused} == {"unavailable"}
    assert {event["details"]["reason"] for event in refused} == {"model"}
    assert [event["details"]["charged"] for event in refused] == [ESTIMATE, ESTIMATE, 0]


def test_a_model_that_fails_in_mid_stream_is_told_after_its_chunks(platform: Platform, gemini: StandIn) -> None:
    said = {"candidates": [{"content": {"parts": [{"text": PIECES[0]}], "role": "model"}}]}
    overloaded = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    gemini.script(
        {"chunks": PIECES, "dropAfter": 2, "chunkDelayMs": APART_MS},
        {"raw": [said, overloaded], "chunkDelayMs": APART_MS},
    )

    dropped, failed = platform.call(HELLO), platform.call(HELLO)

    # An error that comes together with a message takes it away: so the SDK's stream is made.
    assert texts(dropped) in (PIECES[:1], PIECES[:2])
    assert texts(failed) == PIECES[:1]
    for events in (dropped, failed):
        assert kinds(events)[-2:] == ["message", "refused"]
        assert refusal(events) == ("unavailable", {"reason": "model", "charged": ESTIMATE})


def test_a_chunk_arrives_before_the_next_is_made_and_an_aborted_stream_ends_at_once(
    platform: Platform, gemini: StandIn
) -> None:
    # The next one comes after the client has been given up: it never waits for it.
    gemini.script({"chunks": PIECES[:2], "chunkDelayMs": (WITHIN_S + 15) * 1000})

    events = platform.call(HELLO, abort_after=1)

    assert kinds(events) == ["message", "refused"]
    assert texts(events) == PIECES[:1]
    assert refusal(events) == ("cancelled", None)


@pytest.fixture(scope="module")
def misconfigured(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    log = tmp_path_factory.mktemp("misconfigured") / "log"
    with deployed("generate", stack, log, env={"MAX_DAILY_TOKENS": "plenty"}) as server:
        yield replace(stack, functions_url=server.url)


def test_a_backend_that_is_not_configured_says_so(platform: Platform, misconfigured: Stack) -> None:
    events = replace(platform, stack=misconfigured).call(HELLO)

    assert refusal(events) == ("unavailable", {"reason": "settings"})


# Up to the limit a body is thrown away unread, beyond it the length alone is refused.
LARGE = {900_000: ("unauthenticated", "app-check"), 3_000_000: ("invalid-argument", "shape")}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("size", LARGE)
def test_who_is_refused_before_the_body_is_read_sees_why(
    size: int, stream: bool, platform: Platform, generate: Deployed
) -> None:
    """The server answers and closes while the client is still sending, with no proxy in between to hide it."""
    direct = replace(platform, stack=replace(platform.stack, functions_url=generate.url))

    events = direct.call({"prompt": "x" * size}, attest=None, stream=stream, request_ids=False)

    code, reason = LARGE[size]
    assert refusal(events) == (code, {"reason": reason})


def test_only_a_page_of_an_allowed_origin_gets_a_stream(stack: Stack, gemini: StandIn, tmp_path: Path) -> None:
    browser = find_browser()
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    with deployed("generate", stack, tmp_path / "log", env={"ALLOWED_ORIGINS": f"http://{HOST}:{port}"}) as server:
        platform = Platform(stack=replace(stack, functions_url=server.url), browser=browser)
        ours = platform.call(HELLO, page_port=port)
        theirs = platform.call(HELLO)

    assert texts(ours)
    assert answer(ours)["text"]
    # The browser keeps the refusal from a page that may not read it; the SDK makes this of it.
    assert refusal(theirs) == ("internal", None)
    assert len(gemini.log()) == 1
