"""The callable protocol as server-sent events: messages as they come, then one result or one error."""

import contextvars
import json
from collections.abc import Generator, Mapping
from typing import Any

import flask
from werkzeug.datastructures import MIMEAccept
from werkzeug.http import parse_accept_header

MEDIA_TYPE = "text/event-stream"
# No client sends a longer one, and parsing it is work that takes no token.
MAX_ACCEPT = 1_024
# Proxies that know it must not hold back what is written.
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


def wanted(request: flask.Request) -> bool:
    """Whether the client asked for a stream, as the SDKs do: by name, and no less than for JSON."""
    accept = request.headers.get("Accept", "")
    if len(accept) > MAX_ACCEPT:
        return False
    accepted = parse_accept_header(accept, MIMEAccept)
    named = [quality for kind, quality in accepted if kind.partition(";")[0].strip().lower() == MEDIA_TYPE]
    return max(named, default=0) > 0 and max(named) >= accepted.quality("application/json")


def event(content: Mapping[str, Any]) -> bytes:
    """One event: {"message"}, {"result"} or {"error"}.

    Raises:
        TypeError, ValueError: it is no JSON.
    """
    return b"data: " + encode(content) + b"\n\n"


# A blank line: the iOS SDK fails a stream on any other that does not begin with "data:", comments included.
HEARTBEAT = b"\n"


def encode(content: Mapping[str, Any]) -> bytes:
    """JSON as the protocol has it: no NaN, which is none.

    Raises:
        TypeError, ValueError: it is no JSON.
    """
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def messages(answer: Any) -> Generator[bytes, None, Any]:  # noqa: ANN401 - any JSON value, or a generator of them
    """The events of a handler's answer, and its result; closing this closes the handler."""
    if not isinstance(answer, Generator):
        return answer
    try:
        while True:
            message = next(answer)
            yield HEARTBEAT if message is None else event({"message": message})
    except StopIteration as end:
        return end.value
    finally:
        answer.close()


def drained(answer: Any) -> Any:  # noqa: ANN401 - as above
    """The result of an answer whose messages nobody takes."""
    steps = messages(answer)
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value


class Confined:
    """A generator that is stepped, and closed, in a context of its own, whatever thread the server steps it in."""

    def __init__(self, steps: Generator[bytes]) -> None:
        self._steps = steps
        self._context = contextvars.copy_context()

    def __iter__(self) -> "Confined":
        return self

    def __next__(self) -> bytes:
        return self._context.run(next, self._steps)

    def close(self) -> None:
        """What the server calls at the end, and when the client is gone: whatever is open in the generator ends."""
        self._context.run(self._steps.close)

    def __del__(self) -> None:
        # Of an answer that never reached the server: what the collector would end elsewhere, without meters.
        self.close()


def response(steps: Generator[bytes]) -> flask.Response:
    """Send `steps` as they are yielded. The first, which is empty, runs now, while the request can be read."""
    events = Confined(steps)
    next(events)
    return flask.Response(events, mimetype=MEDIA_TYPE, headers=HEADERS)
