"""`@guarded`: one request from the first byte to the audit event, around the layers, the handler and the SDK."""

import functools
from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import flask
import flask_cors
from firebase_functions import https_fn

from firebreak.errors import Internal, Refused
from firebreak.events import Field, unhandled
from firebreak.guard import front, streaming
from firebreak.guard.invocation import invocation
from firebreak.guard.layers import Call, Layers, View, capture
from firebreak.guard.slots import SLOTS
from firebreak.limits.requests import Kind
from firebreak.metering.meter import Meters
from firebreak.settings.settings import readable_from

__all__ = ["Call", "guarded"]

type Handler = Callable[[Call], Any]

# What CORS repeats of a request, and more bytes of it than any browser sends.
REPEATED = ("Origin", "Access-Control-Request-Headers")
MAX_REPEATED = 2_048


def guarded(
    *,
    spends: Collection[str] = ("gemini", "firestore"),
    requests: Kind = "write",
    reads: int | None = None,
    writes: int | None = None,
    consume_app_check_token: bool = False,
    **options: Any,  # noqa: ANN401 - the SDK's own
) -> Callable[[Handler], View]:
    """Make a callable function of a handler that takes a `Call` and returns plain JSON.

    A handler may be a generator, or return one: what it yields are the messages of a stream (None: a heartbeat), what
    it returns is the result; a client that asks for no stream gets the result alone.

    `spends` are the scopes of the kill switch that turn this function off; without `firestore` its handler may read and
    write no documents of its own. `requests` is the hourly limit that a call counts against. `reads` and `writes` are
    the most documents that one request may read and write, by default MAX_REQUEST_READS and MAX_REQUEST_WRITES.

    With `consume_app_check_token` each App Check token is good for one call (replay protection): clients must send
    limited-use tokens, and a call costs one request to App Check. `options` are those of `https_fn.on_call`. The
    deployed function must bear the handler's name.
    """

    def decorate(handler: Handler) -> View:
        @functools.wraps(handler)
        def captured(request: https_fn.CallableRequest[Any]) -> None:
            capture(request)

        # The second lock: App Check again, by the SDK, whatever our own layer says.
        locked: Any = https_fn.on_call(enforce_app_check=True, **options)(captured)
        layers = Layers(
            locked=locked,
            spends=frozenset(spends),
            requests=requests,
            reads=reads,
            writes=writes,
            consume=consume_app_check_token,
        )
        guard = Guard(handler=handler, layers=layers)

        @functools.wraps(locked)
        def view(request: flask.Request) -> flask.Response:
            # CORS repeats them in time and answer longer than the question.
            if sum(len(request.headers.get(name, "")) for name in REPEATED) > MAX_REPEATED:
                return guard.serve(request)
            cors = flask_cors.cross_origin(
                methods="POST",
                origins=list(readable_from()),
                expose_headers="Retry-After",
                # A preflight is answered by `serve`, and audited as any other request.
                automatic_options=False,
            )
            response: flask.Response = cors(lambda: guard.serve(request))()
            return response

        front.stand_before(handler.__name__)
        return view

    return decorate


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """One handler behind its layers."""

    handler: Handler
    layers: Layers

    def serve(self, request: flask.Request) -> flask.Response:
        """Answer one request; whatever happens, the answer is a callable's, and one audit event tells of it.

        Until all layers are passed, the handler may read and write nothing.
        """
        if request.method == "OPTIONS":
            return self._preflight()
        if streaming.wanted(request):
            return streaming.response(self._stream(request))
        with invocation(self.handler.__name__, reads=0, writes=0) as (audit, meters), SLOTS.lease() as slot:
            try:
                result = streaming.drained(self.handler(self.layers.admit(request, meters, slot)))
                meters.check()
                response = _json({"result": result}, HTTPStatus.OK)
                audit["outcome"] = "ok"
            except Exception as error:  # noqa: BLE001 - the edge: nothing may leave as HTML or a traceback
                response = _refused(_refusal(error, audit, meters))
        return response

    def _preflight(self) -> flask.Response:
        """What a browser asks before it calls from another origin; `view` adds the CORS headers as to any answer."""
        with invocation(self.handler.__name__, reads=0, writes=0) as (audit, _):
            audit["outcome"] = "preflight"
        return flask.Response(status=HTTPStatus.NO_CONTENT)

    def _stream(self, request: flask.Request) -> Generator[bytes]:
        with (
            invocation(self.handler.__name__, reads=0, writes=0, streaming=True) as (audit, meters),
            SLOTS.lease() as slot,
        ):
            try:
                events = self._events(self.layers.admit(request, meters, slot), meters)
            except Exception as error:  # noqa: BLE001 - the edge, as above
                events = _only(streaming.event(_error(_refusal(error, audit, meters))))
            try:
                # The layers are passed while the request can be read; from here on the server steps, or closes.
                yield b""
                # By hand: a handler that fails as it is closed would be answered, where nobody can be.
                for event in events:  # noqa: UP028
                    yield event
                audit.setdefault("outcome", "ok")
            except GeneratorExit:
                # Of a refusal, whose client often does not wait for it, the reason stays.
                audit.setdefault("outcome", "left")
                _close(events)
                raise
            except Exception as error:  # noqa: BLE001 - the edge, as above
                yield streaming.event(_error(_refusal(error, audit, meters)))

    def _events(self, call: Call, meters: Meters) -> Generator[bytes]:
        result = yield from streaming.messages(self.handler(call))
        meters.check()
        yield streaming.event({"result": result})


def _close(events: Generator[bytes]) -> None:
    try:
        events.close()
    except Exception as error:  # noqa: BLE001 - the edge: nobody is left to tell but the log
        unhandled(error)


def _only(event: bytes) -> Generator[bytes]:
    yield event


def _error(refusal: Refused) -> dict[str, Any]:
    return {"error": {"status": refusal.code.name, "message": refusal.message, "details": refusal.details}}


def _refused(refusal: Refused) -> flask.Response:
    response = _json(_error(refusal), refusal.code.http_status)
    if refusal.retry_after_s is not None:
        response.headers["Retry-After"] = str(refusal.retry_after_s)
    return response


def _json(content: dict[str, Any], status: int) -> flask.Response:
    return flask.Response(streaming.encode(content), status=status, mimetype="application/json")


def _refusal(error: Exception, audit: dict[str, Field], meters: Meters) -> Refused:
    """The refusal that a client gets for an error, and the log for ours; an exceeded meter is told above all else."""
    refusal = meters.exceeded or (error if isinstance(error, Refused) else Internal())
    if refusal is not error and not isinstance(error, Refused):
        unhandled(error)
    audit |= {"outcome": refusal.reason.value, "code": refusal.code.name}
    return refusal
