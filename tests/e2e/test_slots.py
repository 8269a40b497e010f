"""One user's slow calls on an instance as deployed: half of its threads, and the other half for everybody else."""

import json
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from scripts.clients import tokens
from scripts.local import wire
from scripts.local.deployed import Deployed, deployed
from scripts.local.stack import Stack
from tests.conftest import StandIn
from tests.e2e.streams import streaming
from tests.e2e.test_hostile import connected, head, rest

THREADS, SHARE = 8, 4
HELLO = {"prompt": "hi", "maxOutputTokens": 100}
# As long as the model's deadline allows: the test ends before, unless something is held that should not be.
SLOW = {"text": "slow", "delayMs": 55_000}
PATIENCE_S = 40.0

type Post = Callable[..., wire.Answer]


@pytest.fixture
def post(stack: Stack) -> Post:
    def post(server: Deployed, uid: str, data: dict[str, Any] = HELLO) -> wire.Answer:
        return wire.call(
            "POST", server.url, {"data": data}, headers=tokens.headers(stack.standins_url, uid), timeout_s=120
        )

    return post


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.05)


def warm(post: Post, server: Deployed, uid: str) -> bool:
    """Whether the instance has reached the store: a cold one may find it too slow on a busy machine."""
    return post(server, f"{uid}-first", {}).status != HTTPStatus.SERVICE_UNAVAILABLE


def test_another_user_is_answered_while_one_user_holds_their_half(
    stack: Stack, post: Post, uid: str, gemini: StandIn, tmp_path: Path
) -> None:
    gemini.script(*[SLOW] * SHARE, {"text": "quick"})
    with ThreadPoolExecutor(THREADS) as pool:
        with deployed("generate", stack, tmp_path / "log", env={"SWITCH_TTL_S": "300"}) as server:
            until(lambda: warm(post, server, uid))
            runaway = [pool.submit(post, server, uid) for _ in range(THREADS)]
            until(lambda: sum(call.done() for call in runaway) == THREADS - SHARE)
            refused = [call.result() for call in runaway if call.done()]
            until(lambda: len(gemini.log("generateContent")) == SHARE)

            other = post(server, f"{uid}-other")

            held = [call for call in runaway if not call.done()]
            log = server.log
        assert len(held) == SHARE
        assert other.json["result"]["text"] == "quick"
        assert {answer.status for answer in refused} == {429}
        for answer in refused:
            assert answer.json["error"]["details"] == {"reason": "contention", "retryAfterSeconds": 2}
            assert answer.json["error"]["status"] == "RESOURCE_EXHAUSTED"
    events = [json.loads(line) for line in log.splitlines() if '"firebreak.request"' in line]
    contended = [event for event in events if event["outcome"] == "contention"]
    assert len(contended) == THREADS - SHARE
    # They were refused before anything was counted.
    assert {event["guard_writes"] for event in contended} == {0}


def test_streams_hold_it_until_they_are_left(
    stack: Stack, post: Post, uid: str, gemini: StandIn, tmp_path: Path
) -> None:
    gemini.script(*[{"chunks": ["one", "two"], "chunkDelayMs": 55_000}] * SHARE, {"text": "again"})
    headers = tokens.headers(stack.standins_url, uid)
    with deployed("generate", stack, tmp_path / "log") as server:
        with ExitStack() as streams:
            for _ in range(SHARE):
                stream = streams.enter_context(streaming(server, HELLO, headers))
                assert next(stream.events())[1] == {"message": {"text": "one"}}
            full = post(server, uid)
        until(lambda: server.log.count('"outcome": "left"') == SHARE)
        free = post(server, uid)

    assert full.json["error"]["details"]["reason"] == "contention"
    assert free.json["result"]["text"] == "again"


def test_what_only_reads_is_not_counted(stack: Stack, post: Post, uid: str, tmp_path: Path) -> None:
    with deployed("usage", stack, tmp_path / "log") as server, ThreadPoolExecutor(THREADS) as pool:
        calls: list[Future[wire.Answer]] = [pool.submit(post, server, uid, {}) for _ in range(THREADS)]

    assert {call.result().status for call in calls} == {200}


def test_what_only_reads_holds_no_more_while_its_body_comes(stack: Stack, post: Post, uid: str, tmp_path: Path) -> None:
    """One user who sends headers and then waits: the rest of the threads stay for everybody else."""
    silent = head(Content_Length=9, **tokens.headers(stack.standins_url, uid))
    with deployed("usage", stack, tmp_path / "log") as server, ExitStack() as open_still:
        until(lambda: warm(post, server, uid))
        clients = [open_still.enter_context(connected(server)) for _ in range(THREADS)]
        for client in clients:
            client.sendall(silent)
        answers = [rest(client) for client in clients]

    assert sum(b'"reason":"contention"' in answer for answer in answers) == THREADS - SHARE
    assert sum(b'"reason":"shape"' in answer for answer in answers) == SHARE


def test_shadow_mode_lets_it_pass_and_logs_it(
    stack: Stack, post: Post, uid: str, gemini: StandIn, tmp_path: Path
) -> None:
    gemini.script(SLOW, {"text": "passed"})
    env = {"ENFORCE": "shadow", "USER_THREADS_PERCENT": "1"}
    # The server ends first, and with it the call that is held.
    with ThreadPoolExecutor() as pool, deployed("generate", stack, tmp_path / "log", env=env) as server:
        held = pool.submit(post, server, uid)
        until(lambda: len(gemini.log("generateContent")) == 1)
        passed = post(server, uid)
        log = server.log
        assert not held.done()

    assert passed.json["result"]["text"] == "passed"
    (event,) = [json.loads(line) for line in log.splitlines() if '"firebreak.shadow"' in line]
    assert event["reason"] == "contention"
