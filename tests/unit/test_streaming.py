"""The callable protocol as server-sent events, byte by byte."""

import contextvars
import gc
from collections.abc import Generator
from typing import Any

import flask
import pytest
from werkzeug.datastructures import Headers
from werkzeug.test import EnvironBuilder

from firebreak.guard import streaming

WANTED: dict[str, bool] = {
    "text/event-stream": True,
    "Text/Event-Stream": True,
    "text/event-stream; charset=utf-8": True,
    "text/event-stream, */*": True,
    "application/json, text/event-stream": True,
    "text/event-stream;q=0.5": True,
    "text/event-stream;q=0.5, */*;q=0.1": True,
    "application/json;q=0.5, text/event-stream;q=0.5": True,
    "application/json, text/event-stream;q=0.5": False,
    "text/event-stream;q=0.5, */*": False,
    "text/event-stream;q=0": False,
    "text/event-stream;q=0, application/json;q=0": False,
    "*/*": False,
    "text/*": False,
    "application/json": False,
    "application/json; text/event-stream": False,
    "text/event-streams": False,
    "": False,
    f"text/event-stream,{'x/y,' * 300}": False,
}


@pytest.mark.parametrize(("accept", "wanted"), WANTED.items(), ids=[accept[:60] or "empty" for accept in WANTED])
def test_a_stream_is_sent_to_who_names_it(accept: str, wanted: bool) -> None:
    request = flask.Request(EnvironBuilder(headers=Headers({"Accept": accept})).get_environ())

    assert streaming.wanted(request) is wanted


def test_a_client_without_an_accept_header_gets_no_stream() -> None:
    assert not streaming.wanted(flask.Request(EnvironBuilder().get_environ()))


ENCODED: list[tuple[dict[str, Any], bytes]] = [
    ({"message": "a"}, b'{"message":"a"}'),
    ({"result": {"a": [1, None, True]}}, b'{"result":{"a":[1,null,true]}}'),
    ({"error": {"status": "INTERNAL", "details": {}}}, b'{"error":{"status":"INTERNAL","details":{}}}'),
    # A line break would end an event; JSON has none outside its strings, and escapes those within.
    ({"message": "a\n\ndata: b"}, rb'{"message":"a\n\ndata: b"}'),
    ({"message": "\u2028\ud83d\ude00\x7f"}, b'{"message":"\\u2028\\ud83d\\ude00\\u007f"}'),
]


@pytest.mark.parametrize(("content", "encoded"), ENCODED)
def test_an_event_is_one_line_of_json_and_a_blank_one(content: dict[str, Any], encoded: bytes) -> None:
    assert streaming.encode(content) == encoded
    assert streaming.event(content) == b"data: " + encoded + b"\n\n"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), {1, 2}, b"bytes", object()])
def test_what_is_not_json_is_not_encoded(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        streaming.encode({"message": value})


def test_a_heartbeat_is_a_blank_line_that_every_sdk_passes() -> None:
    assert streaming.HEARTBEAT == b"\n"


class Handler:
    """A generator as a handler returns one; notes how far it came."""

    def __init__(self, *messages: Any, fails: bool = False) -> None:
        self.messages = messages
        self.fails = fails
        self.ended = ""

    def __call__(self) -> Generator[Any, None, dict[str, int]]:
        try:
            yield from self.messages
            if self.fails:
                raise RuntimeError("a handler's own")
            self.ended = "done"
            return {"sum": len(self.messages)}
        finally:
            self.ended = self.ended or "left"


def taken(steps: Generator[bytes, None, Any]) -> tuple[list[bytes], Any]:
    """All that a generator yields, and what it returns."""
    events = []
    while True:
        try:
            events.append(next(steps))
        except StopIteration as end:
            return events, end.value


def test_the_messages_of_a_handler_are_events_and_its_return_is_the_result() -> None:
    handler = Handler("a", None, {"b": 1})

    events, result = taken(streaming.messages(handler()))

    assert events == [b'data: {"message":"a"}\n\n', b"\n", b'data: {"message":{"b":1}}\n\n']
    assert result == {"sum": 3}
    assert handler.ended == "done"


@pytest.mark.parametrize("falsy", [0, "", False, [], {}])
def test_only_none_is_a_heartbeat(falsy: object) -> None:
    events, _ = taken(streaming.messages(Handler(falsy)()))

    assert events == [streaming.event({"message": falsy})]


@pytest.mark.parametrize("answer", [{"text": "a"}, [1, 2], "text", None, iter([1])])
def test_an_answer_that_is_not_a_generator_is_the_result(answer: object) -> None:
    assert taken(streaming.messages(answer)) == ([], answer)
    assert streaming.drained(answer) is answer


def test_leaving_a_stream_closes_its_handler() -> None:
    handler = Handler("a", "b")
    steps = streaming.messages(handler())

    next(steps)
    steps.close()

    assert handler.ended == "left"


def test_a_message_that_is_not_json_closes_its_handler() -> None:
    handler = Handler(float("nan"), "b")

    with pytest.raises(ValueError, match="JSON"):
        taken(streaming.messages(handler()))
    assert handler.ended == "left"


def test_a_client_without_a_stream_gets_the_result_alone() -> None:
    handler = Handler("a", None, "b")

    assert streaming.drained(handler()) == {"sum": 3}
    assert handler.ended == "done"


@pytest.mark.parametrize("take", [lambda answer: taken(streaming.messages(answer)), streaming.drained])
def test_what_a_handler_raises_is_raised(take: Any) -> None:
    handler = Handler("a", fails=True)

    with pytest.raises(RuntimeError, match="a handler's own"):
        take(handler())
    assert handler.ended == "left"


WHO = contextvars.ContextVar("who", default="nobody")


def test_a_stream_keeps_its_context_whoever_steps_and_closes_it() -> None:
    seen = []

    def steps() -> Generator[bytes]:
        WHO.set("the stream")
        try:
            yield b""
            seen.append(WHO.get())
            yield b"b"
        finally:
            seen.append(WHO.get())

    response = streaming.response(steps())
    events = iter(response.response)
    WHO.set("the server")
    first = next(events)
    response.close()

    assert first == b"b"
    assert seen == ["the stream", "the stream"]
    assert WHO.get() == "the server"


def test_a_stream_that_nobody_reads_or_closes_ends_in_its_context_too() -> None:
    seen = []

    def steps() -> Generator[bytes]:
        WHO.set("the stream")
        try:
            yield b""
        finally:
            seen.append(WHO.get())

    streaming.response(steps())
    gc.collect()

    assert seen == ["the stream"]


def test_a_stream_has_run_to_its_first_step_when_the_response_is_made() -> None:
    ran = []

    def steps() -> Generator[bytes]:
        ran.append("layers")
        yield b""
        ran.append("handler")
        yield b"x"

    response = streaming.response(steps())

    assert ran == ["layers"]
    assert response.status_code == 200
    assert response.mimetype == "text/event-stream"
    assert response.headers["Cache-Control"] == "no-cache"
    assert response.headers["X-Accel-Buffering"] == "no"
    assert response.is_streamed
    assert b"".join(response.response) == b"x"  # type: ignore[arg-type]
