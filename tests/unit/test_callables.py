"""The edge of a callable without its layers: what is audited, and what CORS repeats."""

import json
from collections.abc import Generator
from typing import Any

import flask
import pytest
from werkzeug.datastructures import Headers
from werkzeug.test import EnvironBuilder

from firebreak.errors import AppCheckFailed
from firebreak.guard.callables import MAX_REPEATED, Call, Guard, guarded
from firebreak.guard.slots import SLOTS, Slot


class Refusing:
    """Layers that nobody passes."""

    def admit(self, *_: object) -> Call:
        raise AppCheckFailed


def handler(_call: Call) -> None:
    raise AssertionError("nobody passes")


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_refusal_stays_one_when_its_client_does_not_wait_for_it(
    steps: int, capsys: pytest.CaptureFixture[str]
) -> None:
    layers: Any = Refusing()
    builder = EnvironBuilder(method="POST", headers=Headers({"Accept": "text/event-stream"}))
    response = Guard(handler=handler, layers=layers).serve(flask.Request(builder.get_environ()))
    events = iter(response.response)
    for _ in range(steps):
        next(events, None)
    response.close()

    (event,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (event["outcome"], event["code"]) == ("app-check", "UNAUTHENTICATED")


class Admitting:
    """Layers that everybody passes, each taking a thread of one user."""

    def admit(self, _request: object, _meters: object, slot: Slot) -> None:
        slot.take("ann", most=100)


def failing(_call: object) -> Generator[str]:
    try:
        yield "a"
    finally:
        raise RuntimeError("a handler's own")


def test_a_handler_that_fails_when_its_client_is_gone_ends_like_any_other(capsys: pytest.CaptureFixture[str]) -> None:
    layers: Any = Admitting()
    builder = EnvironBuilder(method="POST", headers=Headers({"Accept": "text/event-stream"}))
    response = Guard(handler=failing, layers=layers).serve(flask.Request(builder.get_environ()))
    events: Any = response.response
    next(events)
    held = len(SLOTS)

    response.close()

    unhandled, request = map(json.loads, capsys.readouterr().out.splitlines())
    assert (held - len(SLOTS), request["outcome"]) == (1, "left")
    assert (unhandled["message"], unhandled["error"]) == ("firebreak.unhandled", "RuntimeError")


@pytest.mark.parametrize("name", ["Origin", "Access-Control-Request-Headers"])
def test_cors_repeats_nothing_that_no_browser_sends(name: str) -> None:
    view = guarded()(handler)
    asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    found = []
    for long in ({}, {name: "x" * (MAX_REPEATED + 1)}):
        with flask.Flask("x").test_request_context(method="OPTIONS", headers=asked | long):
            found.append("Access-Control-Allow-Origin" in view(flask.request).headers)

    assert found == [True, False]
