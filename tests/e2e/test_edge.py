"""The edge over plain HTTP, as deployed: what is refused where, and what that leaves behind."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.cloud import firestore as google_firestore

from scripts.local import wire
from scripts.local.deployed import Deployed, deployed
from scripts.local.stack import Stack
from tests.conftest import SignedIn, StandIn
from tests.e2e.conftest import Headers

PROMPT = {"prompt": "a prompt that no log may hold"}


def post(server: Deployed, data: Any, headers: Headers | None = None) -> tuple[int, dict[str, Any]]:
    answer = wire.call("POST", server.url, {"data": data}, headers=headers)
    body: dict[str, Any] = answer.json
    return answer.status, body


def reason(answer: tuple[int, dict[str, Any]]) -> str:
    return str(answer[1]["error"]["details"]["reason"])


def eventually(server: Deployed, headers: Headers, wanted: str) -> None:
    """Send requests that a field is wrong with, until one is refused as wanted."""
    end = time.monotonic() + 60
    while reason(post(server, {}, headers)) != wanted:
        assert time.monotonic() < end


def test_an_attested_user_is_answered(generate: Deployed, headers: Headers) -> None:
    status, body = post(generate, PROMPT, headers)

    assert status == 200
    assert body["result"]["text"]


def test_a_request_is_refused_by_the_first_layer_that_it_fails(generate: Deployed, headers: Headers) -> None:
    """Each request also fails every later layer."""
    broken: list[tuple[str, Headers | None]] = [
        ("PUT", None),
        ("POST", None),
        ("POST", {"X-Firebase-AppCheck": headers["X-Firebase-AppCheck"]}),
        ("POST", headers),
    ]
    answers = [wire.call(method, generate.url, {"no": "data"}, headers=sent) for method, sent in broken]

    reasons = [answer.json["error"]["details"]["reason"] for answer in answers]
    assert reasons == ["shape", "app-check", "sign-in", "shape"]
    assert reason(post(generate, {"prompt": ""}, headers)) == "field"


def test_a_refusal_that_can_pass_says_when_in_a_header_as_well(stack: Stack, tmp_path: Path, headers: Headers) -> None:
    with deployed("generate", stack, tmp_path / "log", env={"WRITE_REQUESTS_PER_HOUR": "1"}) as server:
        eventually(server, headers, "requests")
        used_up = wire.call("POST", server.url, {"data": PROMPT}, headers=headers | {"Origin": "https://app.example"})
        stranger = wire.call("POST", server.url, {"data": PROMPT})
        streamed = wire.call("POST", server.url, {"data": PROMPT}, headers=headers | {"Accept": "text/event-stream"})
    with deployed("generate", stack, tmp_path / "wrong", env={"MAX_DAILY_TOKENS": "many"}) as server:
        wrong = wire.call("POST", server.url, {"data": PROMPT}, headers=headers)

    details = used_up.json["error"]["details"]
    assert (used_up.status, details["reason"]) == (429, "requests")
    assert used_up.headers["Retry-After"] == str(details["retryAfterSeconds"])
    assert used_up.headers["Access-Control-Expose-Headers"] == "Retry-After"
    assert (wrong.status, wrong.headers["Retry-After"]) == (503, "60")
    assert (stranger.status, stranger.headers["Retry-After"]) == (401, None)
    assert (streamed.status, streamed.headers["Retry-After"]) == (200, None)


ACCEPTS = {"text/event-stream": True, "Text/Event-Stream;Q=0.9": True, "*/*": False, "text/event-stream;q=0": False}


@pytest.mark.parametrize("accept", ACCEPTS)
def test_a_stream_is_for_who_names_it(accept: str, generate: Deployed, headers: Headers) -> None:
    answer = wire.call("POST", generate.url, {"data": PROMPT}, headers=headers | {"Accept": accept})

    assert (answer.headers["Content-Type"].partition(";")[0] == "text/event-stream") is ACCEPTS[accept]


def test_a_bot_causes_no_model_request_and_no_bucket(
    generate: Deployed,
    headers: Headers,
    user: SignedIn,
    mint: Callable[..., str],
    gemini: StandIn,
    firestore: Callable[..., google_firestore.Client],
) -> None:
    bad = [None, "garbage", mint(badSignature=True), mint(ttlSeconds=-60), mint(projectId="demo-somebody-else")]
    for token in bad:
        forged = {"Authorization": headers["Authorization"]} | ({"X-Firebase-AppCheck": token} if token else {})
        status, body = post(generate, PROMPT, forged)
        assert (status, body["error"]["status"]) == (401, "UNAUTHENTICATED")

    assert gemini.log() == []
    assert not firestore().collection("token_buckets").document(user.uid).get().exists


def test_a_refusal_is_a_callable_error_with_cors_headers(generate: Deployed, headers: Headers) -> None:
    answer = wire.call("POST", generate.url, {"data": {}}, headers=headers | {"Origin": "https://app.example"})

    assert answer.json == {
        "error": {
            "status": "INVALID_ARGUMENT",
            "message": "exactly one of prompt and contents must be given",
            "details": {"reason": "field"},
        }
    }
    assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example"


def test_every_request_leaves_one_audit_event_without_prompt_token_or_uid(
    stack: Stack, tmp_path: Path, headers: Headers, user: SignedIn
) -> None:
    with deployed("generate", stack, tmp_path / "log") as server:
        post(server, PROMPT, headers)
        post(server, PROMPT)
        post(server, {"prompt": ""}, headers)
        log = server.log

    events = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert [(e["message"], e["outcome"]) for e in events] == [
        ("firebreak.request", "ok"),
        ("firebreak.request", "app-check"),
        ("firebreak.request", "field"),
    ]
    assert events[0]["charged"] > 0
    for secret in (PROMPT["prompt"], user.uid, *headers.values(), headers["Authorization"].removeprefix("Bearer ")):
        assert secret not in log


@pytest.mark.parametrize(
    ("knob", "env"),
    [
        ("MAX_DAILY_TOKENS", {"MAX_DAILY_TOKENS": None}),
        ("MAX_DAILY_TOKENS", {"MAX_DAILY_TOKENS": "many"}),
        ("FIRESTORE_EMULATOR_HOST", {"GCLOUD_PROJECT": "my-app"}),
        ("FIRESTORE_EMULATOR_HOST", {"FIRESTORE_EMULATOR_HOST": None}),
        ("GEMINI_API_KEY", {"GEMINI_API_KEY": None}),
    ],
)
def test_a_bad_knob_refuses_every_call_and_is_named(
    knob: str, env: dict[str, str | None], stack: Stack, tmp_path: Path, headers: Headers, gemini: StandIn
) -> None:
    with deployed("generate", stack, tmp_path / "log", env=env) as server:
        answers = [post(server, PROMPT, headers) for _ in range(2)]
        log = server.log

    assert [(status, reason((status, body))) for status, body in answers] == [(503, "settings")] * 2
    assert gemini.log() == []
    wrong = [json.loads(line)["wrong"] for line in log.splitlines() if "firebreak.settings" in line]
    assert len(wrong) == 2
    assert any(message.startswith(knob) for message in wrong[0])


def test_the_store_unreachable_is_unavailable_and_the_model_is_not_called(
    stack: Stack, tmp_path: Path, headers: Headers, gemini: StandIn
) -> None:
    with deployed("generate", stack, tmp_path / "log", env={"FIRESTORE_EMULATOR_HOST": "127.0.0.1:9"}) as server:
        status, body = post(server, PROMPT, headers)

    assert status == 503
    assert body["error"]["details"] == {"reason": "store", "retryAfterSeconds": 1}
    assert gemini.log() == []


def test_a_model_that_is_too_slow_is_given_up_and_charged(
    stack: Stack, tmp_path: Path, headers: Headers, gemini: StandIn
) -> None:
    gemini.script({"text": "late", "delayMs": 5_000})

    with deployed("generate", stack, tmp_path / "log", env={"GEMINI_DEADLINE_S": "1"}) as server:
        status, body = post(server, PROMPT, headers)

    assert (status, body["error"]["status"]) == (504, "DEADLINE_EXCEEDED")
    assert body["error"]["details"]["charged"] > 1_000
