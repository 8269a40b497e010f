"""Streams as deployed: pieces as they come, each refusal as an event, and one settle at every end."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from google.cloud import firestore as google_firestore

from scripts.local import wire
from scripts.local.deployed import Deployed, deployed
from scripts.local.stack import Stack
from tests.conftest import SignedIn, StandIn
from tests.e2e.conftest import Headers
from tests.e2e.streams import Event, streaming
from tests.emulator.books import Books, books
from tests.record import recorded, recording, rows

HELLO = {"prompt": "hi", "maxOutputTokens": 100}
ESTIMATE = 2 + 24 + 100
PATIENCE_S = 30.0

type Look = Callable[[], Books]


@pytest.fixture
def look(firestore: Callable[..., google_firestore.Client], user: SignedIn) -> Look:
    """The user's documents as they are now."""
    return lambda: books(firestore(), user.uid)


def settled(look: Look) -> tuple[str, int]:
    """Status and charge of the user's only call, once it is held no more."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        (call,) = look().calls.values()
        if call["status"] != "held":
            return call["status"], call["actual"]
        time.sleep(0.05)
    return "held", call["estimated"]


def usage(prompt: int, output: int) -> dict[str, int]:
    return {"promptTokenCount": prompt, "candidatesTokenCount": output, "totalTokenCount": prompt + output}


def messages(events: list[Event | None]) -> list[str]:
    return [event["message"]["text"] for event in events if event and "message" in event]


def last(events: list[Event | None]) -> Event:
    event = events[-1]
    assert event is not None
    return event


def test_pieces_come_as_the_model_makes_them_and_then_the_result(
    generate: Deployed, headers: Headers, gemini: StandIn, look: Look
) -> None:
    pieces = ["one ", "two ", "three ", "four"]
    gemini.script({"chunks": pieces, "chunkDelayMs": 200, "usage": usage(3, 9)})

    with streaming(generate, HELLO, headers) as stream:
        events = stream.all()

    assert messages(events) == pieces
    result = last(events)["result"]
    assert (result["text"], result["charged"], result["finishReason"]) == ("one two three four", 12, "STOP")
    assert stream.status == 200
    assert "content-type: text/event-stream" in stream.headers
    assert "access-control-allow-origin: https://app.example" in stream.headers
    assert settled(look) == ("settled", 12)


def test_an_ordinary_call_of_the_same_function_gets_just_the_result(
    generate: Deployed, headers: Headers, gemini: StandIn
) -> None:
    gemini.script({"text": "one two", "usage": usage(3, 9)})

    answer = wire.call("POST", generate.url, {"data": HELLO}, headers=headers)

    assert answer.json["result"]["text"] == "one two"
    assert gemini.log()[0]["method"] == "generateContent"


@pytest.fixture
def serve(stack: Stack, tmp_path: Path) -> Iterator[Callable[..., Deployed]]:
    """Starts `generate` with settings of its own."""
    servers: list[AbstractContextManager[Deployed]] = []

    def start(**env: str | None) -> Deployed:
        context = deployed("generate", stack, tmp_path / f"log-{len(servers)}", env=env)
        servers.append(context)
        return context.__enter__()

    yield start
    for context in servers:
        context.__exit__(None, None, None)


STOPPED = {"candidates": [{"content": {"role": "model", "parts": [{"text": "a"}]}, "finishReason": "STOP"}]}
# What these tell is remembered for a while: they get an instance of their own.
REMEMBERED = ("refused by the front", "with a cap reached")

# How a stream ends: the script, what the client sees last, what is charged.
ENDINGS: dict[str, tuple[dict[str, Any], str, int]] = {
    "normally": ({"chunks": ["a", "b"], "usage": usage(3, 9)}, "STOP", 12),
    "with usage that fell": (
        {"chunks": ["a", "b", "c"], "usages": [usage(3, 50), usage(3, 90), usage(3, 9)]},
        "STOP",
        12,
    ),
    "cut short": ({"chunks": ["a", "b"], "usage": usage(3, 100), "finishReason": "MAX_TOKENS"}, "MAX_TOKENS", 103),
    "blocked on the way": ({"chunks": ["a"], "usage": usage(3, 1), "finishReason": "SAFETY"}, "SAFETY", 4),
    "without a finish reason": (
        {"chunks": ["a", "b"], "usage": usage(3, 9), "finishReason": None},
        "None",
        ESTIMATE,
    ),
    "without usage": ({"chunks": ["a", "b"], "usage": None}, "STOP", ESTIMATE),
    "open long after the answer was complete": (
        {"raw": [{**STOPPED, "usageMetadata": usage(3, 9)}, {}], "chunkDelayMs": 60_000},
        "STOP",
        ESTIMATE,
    ),
    "dropped after the answer was complete": (
        {"raw": [{**STOPPED, "usageMetadata": usage(3, 9)}, {}], "dropAfter": 1},
        "STOP",
        ESTIMATE,
    ),
    "with an error event after the answer was complete": (
        {"raw": [{**STOPPED, "usageMetadata": usage(3, 900)}, {"error": {"code": 500, "message": "Internal."}}]},
        "STOP",
        903,
    ),
    "with a blocked prompt": (
        {"raw": [{"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": usage(3, 0)}]},
        "SAFETY",
        3,
    ),
    "without an event": ({"body": ""}, "model", ESTIMATE),
    "with events that say nothing": ({"raw": [{}, {"hello": "world"}]}, "model", ESTIMATE),
    "with JSON that is no event": ({"body": "{}"}, "model", ESTIMATE),
    "refused by the front": ({"status": 429}, "model", 0),
    "with a bad request": ({"status": 400}, "model-input", 0),
    "with a cap reached": (
        {
            "status": 429,
            "error": {
                "code": 429,
                "message": "Your project has exceeded its monthly spending cap.",
                "status": "RESOURCE_EXHAUSTED",
            },
        },
        "model-paused",
        0,
    ),
    "with the model down": ({"status": 503}, "model", ESTIMATE),
    "dropped before the headers": ({"dropAfter": "nothing"}, "model", ESTIMATE),
    "dropped before the first chunk": ({"chunks": ["a"], "dropAfter": "headers"}, "model", ESTIMATE),
    "dropped before any usage": ({"chunks": ["a", "b"], "usages": [None, None], "dropAfter": 1}, "model", ESTIMATE),
    "dropped after more usage than estimated": (
        {"chunks": ["a", "b"], "usages": [usage(3, 900), usage(3, 950)], "dropAfter": 1},
        "model",
        903,
    ),
    "with an error event alone": (
        {"raw": [{"error": {"code": 429, "message": "Too many requests.", "status": "RESOURCE_EXHAUSTED"}}]},
        "model",
        ESTIMATE,
    ),
    "with an error event": (
        {
            "raw": [
                {"candidates": [{"content": {"parts": [{"text": "a"}]}}], "usageMetadata": usage(3, 9)},
                {"error": {"code": 429, "message": "Too many requests.", "status": "RESOURCE_EXHAUSTED"}},
            ]
        },
        "model",
        ESTIMATE,
    ),
}


# Endings that have a test of their own.
ALONE = (
    "at our deadline",
    "with the client gone",
    "with a client that stops reading for 20 s",
    "with the instance told to end",
    "with the instance killed",
)
HEAD = ["| a stream ends | the client sees | charged |", "|---|---|---|"]
# What was seen of each ending, for the README's table.
SEEN: dict[str, str] = {}


def saw(ending: str, seen: Event | str, charged: int | str) -> None:
    """Compare what the client saw last and what was charged with what the README says, or note it for a new table."""
    client = seen if isinstance(seen, str) else ""
    if isinstance(seen, dict) and "result" in seen:
        client = f"the result, `finishReason` {seen['result']['finishReason'] or 'null'}"
    elif isinstance(seen, dict):
        client = f"an error event: `{seen['error']['status'].lower().replace('_', '-')}`, "
        client += f"reason `{seen['error']['details']['reason']}`"
    if isinstance(charged, int):
        usage = "its usage" if "result" in seen and charged < ESTIMATE else "the most usage that it told"
        charged = {0: "nothing", ESTIMATE: "the estimate"}.get(charged, usage)
    SEEN[ending] = f"| {ending} | {client} | {charged} |"
    assert recording() or SEEN[ending] in rows("endings.md"), f"{SEEN[ending]}: `make record` writes it"


@pytest.mark.parametrize("name", ENDINGS)
def test_every_end_of_a_stream_is_settled_once(
    name: str,
    generate: Deployed,
    serve: Callable[..., Deployed],
    headers: Headers,
    gemini: StandIn,
    look: Look,
) -> None:
    script, end, charged = ENDINGS[name]
    server = serve() if name in REMEMBERED else generate
    gemini.script(script)

    with streaming(server, HELLO, headers) as stream:
        event = last(stream.all())

    if "result" in event:
        assert (str(event["result"]["finishReason"]), event["result"]["charged"]) == (end, charged)
    else:
        assert (event["error"]["details"]["reason"], event["error"]["details"]["charged"]) == (end, charged)
    assert settled(look) == ("settled", charged)
    seen = look().bucket
    assert seen is not None
    assert seen["lifetime"]["calls"] == 1
    saw(name, event, charged)


REFUSED: dict[str, tuple[object, dict[str, str | None], str, str]] = {
    "by its shape": (None, {"Content-Type": "text/plain"}, "INVALID_ARGUMENT", "shape"),
    "by App Check": (HELLO, {"X-Firebase-AppCheck": None}, "UNAUTHENTICATED", "app-check"),
    "by sign-in": (HELLO, {"Authorization": None}, "UNAUTHENTICATED", "sign-in"),
    "by a field": ({"prompt": ""}, {}, "INVALID_ARGUMENT", "field"),
    "by the bucket": ({"prompt": "hi", "model": "gemini-3.8-flash"}, {}, "RESOURCE_EXHAUSTED", "tokens"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_every_refusal_is_an_error_event_with_status_200(
    name: str,
    generate: Deployed,
    headers: Headers,
    gemini: StandIn,
    firestore: Callable[..., google_firestore.Client],
    user: SignedIn,
) -> None:
    data, changed, status, reason = REFUSED[name]
    if reason == "tokens":
        bucket = firestore().collection("token_buckets").document(user.uid)
        bucket.set({"tokens": 5, "updatedAt": google_firestore.SERVER_TIMESTAMP})
    sent = {key: value for key, value in {**headers, **changed}.items() if value is not None}

    with streaming(generate, data, sent) as stream:
        events = stream.all()

    assert stream.status == 200
    assert [event["error"]["status"] for event in events if event] == [status]
    assert last(events)["error"]["details"]["reason"] == reason
    assert gemini.log() == []


def test_our_deadline_ends_a_stream_that_drips(
    serve: Callable[..., Deployed], headers: Headers, gemini: StandIn, look: Look
) -> None:
    gemini.script({"chunks": ["drip "] * 100, "chunkDelayMs": 200})

    with streaming(serve(GEMINI_DEADLINE_S="1"), HELLO, headers) as stream:
        events = stream.all()

    assert messages(events)
    assert last(events)["error"]["status"] == "DEADLINE_EXCEEDED"
    assert settled(look) == ("settled", ESTIMATE)
    saw("at our deadline", last(events), ESTIMATE)
    assert aborted(gemini)


def aborted(gemini: StandIn) -> bool:
    """Whether the connection to the model was closed before its answer was complete."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if gemini.log()[0]["aborted"]:
            return True
        time.sleep(0.05)
    return False


def test_while_the_model_thinks_blank_lines_keep_the_stream_alive(
    generate: Deployed, headers: Headers, gemini: StandIn
) -> None:
    gemini.script({"text": "at last", "delayMs": 6_000, "usage": usage(3, 2)})

    with streaming(generate, HELLO, headers) as stream:
        events = stream.all()

    assert events[0] is None
    assert last(events)["result"]["text"] == "at last"


def test_a_client_that_leaves_after_the_first_chunk_is_noticed_and_settled(
    generate: Deployed, headers: Headers, gemini: StandIn, look: Look
) -> None:
    gemini.script({"chunks": ["word "] * 200, "chunkDelayMs": 100})

    with streaming(generate, HELLO, headers) as stream:
        next(stream.events())
        stream.leave()

    assert settled(look) == ("settled", ESTIMATE)
    assert aborted(gemini)
    saw("with the client gone", "nothing: it is gone", ESTIMATE)


def test_a_client_that_leaves_while_the_model_thinks_closes_the_connection_to_it(
    generate: Deployed, headers: Headers, gemini: StandIn, look: Look
) -> None:
    gemini.script({"text": "never read", "delayMs": 40_000})

    with streaming(generate, HELLO, headers) as stream:
        assert next(stream.events())[1] is None
        stream.leave()

    assert settled(look) == ("settled", ESTIMATE)
    assert aborted(gemini)


@pytest.mark.timeout(90)
def test_a_client_that_stops_reading_is_given_up(
    generate: Deployed, headers: Headers, gemini: StandIn, look: Look
) -> None:
    gemini.script({"chunks": ["x" * 100_000] * 400, "usage": usage(3, 9)})

    with streaming(generate, HELLO, headers, receive_buffer=4_096) as stream:
        next(stream.events())
        assert settled(look) == ("settled", ESTIMATE)
    saw("with a client that stops reading for 20 s", "a broken connection", ESTIMATE)


def test_a_server_that_is_told_to_end_settles_its_streams_and_says_so(
    serve: Callable[..., Deployed], headers: Headers, gemini: StandIn, look: Look
) -> None:
    server = serve()
    gemini.script({"chunks": ["word "] * 100, "chunkDelayMs": 100})

    with streaming(server, HELLO, headers) as stream:
        events = stream.events()
        next(events)
        os.kill(server.process.pid, signal.SIGTERM)
        rest = [event for _, event in events]

    assert last(rest)["error"]["details"] == {"reason": "shutting-down", "charged": ESTIMATE}
    assert settled(look) == ("settled", ESTIMATE)
    saw("with the instance told to end", last(rest), ESTIMATE)


def test_a_server_that_is_killed_leaves_the_call_held_and_charged(
    serve: Callable[..., Deployed], headers: Headers, gemini: StandIn, look: Look
) -> None:
    server = serve()
    gemini.script({"chunks": ["word "] * 100, "chunkDelayMs": 100})

    with streaming(server, HELLO, headers) as stream:
        next(stream.events())
        os.killpg(server.process.pid, signal.SIGKILL)
        server.process.wait()

    seen = look()
    (call,) = seen.calls.values()
    assert (call["status"], call["estimated"]) == ("held", ESTIMATE)
    assert seen.bucket is not None
    assert seen.bucket["tokens"] == 100_000 - ESTIMATE
    saw("with the instance killed", "a broken connection", "the estimate; it stays held")


def test_twenty_streams_at_once_each_end_in_one_settled_call(
    serve: Callable[..., Deployed], headers: Headers, gemini: StandIn, look: Look
) -> None:
    server = serve(THREADS="20")
    gemini.script(*[{"chunks": ["a", "b", "c"], "chunkDelayMs": 100, "usage": usage(3, 9)}] * 20)

    def run(number: int) -> Event:
        with streaming(server, {**HELLO, "requestId": f"r{number}"}, headers) as stream:
            return last(stream.all())

    with ThreadPoolExecutor(max_workers=20) as pool:
        ends = list(pool.map(run, range(20)))

    answered = [end["result"] for end in ends if "result" in end]
    lost = [end["error"]["details"]["reason"] for end in ends if "error" in end]
    assert set(lost) <= {"contention"}
    assert {result["charged"] for result in answered} == {12}
    seen = look()
    assert sorted(seen.calls) == sorted(result["requestId"] for result in answered)
    assert set(seen.statuses()) == {"settled"}


def test_a_chunk_is_never_held_back_for_the_next(
    generate: Deployed, headers: Headers, gemini: StandIn, look: Look
) -> None:
    """The first piece is here while the model is not done with the second, and would not be for a minute."""
    gemini.script({"chunks": ["first", "second"], "chunkDelayMs": 60_000})

    with streaming(generate, HELLO, headers) as stream:
        first = next(stream.events())[1]
        stream.leave()

    assert first == {"message": {"text": "first"}}
    assert aborted(gemini)
    assert settled(look) == ("settled", ESTIMATE)


def test_the_audit_event_of_a_stream_is_written_when_it_ends(
    serve: Callable[..., Deployed], headers: Headers, gemini: StandIn, look: Look
) -> None:
    server = serve()
    gemini.script({"chunks": ["a"], "usage": usage(3, 9)}, {"chunks": ["word "] * 200, "chunkDelayMs": 100})
    with streaming(server, HELLO, headers) as stream:
        stream.all()
    with streaming(server, HELLO, headers) as stream:
        next(stream.events())
        stream.leave()

    end = time.monotonic() + PATIENCE_S
    while server.log.count("firebreak.request") < 2 and time.monotonic() < end:
        time.sleep(0.05)
    outcomes = [line for line in server.log.splitlines() if "firebreak.request" in line]
    assert '"outcome": "ok"' in outcomes[0]
    assert '"charged": 12' in outcomes[0]
    assert '"outcome": "left"' in outcomes[1]
    assert f'"charged": {ESTIMATE}' in outcomes[1]


def test_the_readme_tells_of_every_ending_and_of_no_other() -> None:
    if recording():
        recorded("endings.md", "\n".join([*HEAD, *SEEN.values(), ""]))

    names = [row.split(" | ")[0].removeprefix("| ") for row in rows("endings.md")]
    assert names == [HEAD[0].split(" | ")[0].removeprefix("| "), HEAD[1], *ENDINGS, *ALONE]
