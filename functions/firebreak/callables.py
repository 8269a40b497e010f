"""`@guarded`: the layers of a request, in order, around the SDK's `on_call`."""

import functools
import io
import traceback
import uuid
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import flask
import flask_cors
from firebase_functions import https_fn

from firebreak import attest, patience, shape, streaming
from firebreak.errors import AppCheckFailed, Internal, OriginNotAllowed, Refused, SignInRequired
from firebreak.events import Event, Field, Severity, audited, emit, note, pseudonym
from firebreak.settings import Settings, readable_from, settings

# Where the SDK's verified request waits for us in the WSGI environment of its one request.
VERIFIED = "firebreak.verified"
EMPTY_BODY = b'{"data":null}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a handler gets: a request that passed every layer; `streaming` if the client takes messages."""

    data: Any
    user: attest.User
    app_id: str
    streaming: bool
    settings: Settings


type Handler = Callable[[Call], Any]
type View = Callable[[flask.Request], flask.Response]


def guarded(
    *,
    consume_app_check_token: bool = False,
    **options: Any,  # noqa: ANN401 - the SDK's own
) -> Callable[[Handler], View]:
    """Make a callable function of a handler that takes a `Call` and returns plain JSON.

    A handler may be a generator, or return one: what it yields are the messages of a stream (None: a heartbeat), what
    it returns is the result; a client that asks for no stream gets the result alone.

    With `consume_app_check_token` each App Check token is good for one call (replay protection): clients must send
    limited-use tokens, and a call costs one request to App Check. `options` are those of `https_fn.on_call`. The
    deployed function must bear the handler's name.
    """

    def decorate(handler: Handler) -> View:
        @functools.wraps(handler)
        def capture(request: https_fn.CallableRequest[Any]) -> None:
            request.raw_request.environ[VERIFIED] = request

        # The second lock: App Check again, by the SDK, whatever our own layer says.
        locked: Any = https_fn.on_call(enforce_app_check=True, **options)(capture)
        guard = Guard(handler=handler, locked=locked, consume=consume_app_check_token)

        @functools.wraps(locked)
        def view(request: flask.Request) -> flask.Response:
            cors = flask_cors.cross_origin(methods="POST", origins=list(readable_from()))
            response: flask.Response = cors(lambda: guard.serve(request))()
            return response

        return view

    return decorate


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """The layers in front of one handler; `locked` is the SDK's own callable, `consume` its tokens' fate."""

    handler: Handler
    locked: View
    consume: bool

    def serve(self, request: flask.Request) -> flask.Response:
        """Answer one request; whatever happens, the answer is a callable's, and one audit event tells of it."""
        patience.no_silence(request)
        if streaming.wanted(request):
            return streaming.response(self._stream(request))
        with self._audited() as audit:
            try:
                body, status = streaming.encode({"result": _drained(self.handler(self._admit(request)))}), 200
                audit["outcome"] = "ok"
            except Exception as error:  # noqa: BLE001 - the edge: nothing may leave as HTML or a traceback
                refusal = _refusal(error, audit)
                body, status = streaming.encode(_error(refusal)), refusal.code.http_status
        return flask.Response(body, status=status, mimetype="application/json")

    def _stream(self, request: flask.Request) -> Generator[bytes]:
        with self._audited(streaming=True) as audit:
            try:
                events = self._events(self._admit(request))
            except Exception as error:  # noqa: BLE001 - the edge, as above
                events = _only(streaming.event(_error(_refusal(error, audit))))
            try:
                # The layers are passed while the request can be read; from here on the server steps, or closes.
                yield b""
                yield from events
                audit.setdefault("outcome", "ok")
            except GeneratorExit:
                audit["outcome"] = "left"
                raise
            except Exception as error:  # noqa: BLE001 - the edge, as above
                yield streaming.event(_error(_refusal(error, audit)))

    def _events(self, call: Call) -> Generator[bytes]:
        result = yield from _messages(self.handler(call))
        yield streaming.event({"result": result})

    def _audited(self, **fields: Field) -> AbstractContextManager[dict[str, Field]]:
        return audited(function=self.handler.__name__, id=uuid.uuid4().hex, **fields)

    def _admit(self, request: flask.Request) -> Call:
        try:
            return self._layers(request)
        except Refused:
            shape.discard(request)
            raise

    def _layers(self, request: flask.Request) -> Call:
        """The layers, in order; each is cheaper than the next, and none runs before the one above it has passed."""
        knobs = settings()
        _check_origin(request, knobs)
        data = shape.read(request, max_bytes=knobs.max_body_bytes)
        app = attest.connect(knobs.project)
        token = request.headers.get("X-Firebase-AppCheck")
        app_id = attest.attest(token, app, allowed=knobs.allowed_app_ids, consume=self.consume)
        authorization = request.headers.get("Authorization")
        user = attest.sign_in(authorization, app, check_revoked=knobs.check_revoked)
        self._lock_again(request)
        note(user=pseudonym(user.uid), app=app_id)
        return Call(data=data, user=user, app_id=app_id, streaming=streaming.wanted(request), settings=knobs)

    def _lock_again(self, request: flask.Request) -> None:
        """Let the SDK verify the same headers; it gets no body, which it would parse twice and might log."""
        environ = {key: value for key, value in request.environ.items() if not key.startswith("werkzeug.")}
        environ.pop("HTTP_TRANSFER_ENCODING", None)
        environ.pop("wsgi.input_terminated", None)
        environ |= {"wsgi.input": io.BytesIO(EMPTY_BODY), "CONTENT_LENGTH": str(len(EMPTY_BODY))}
        self.locked(flask.Request(environ))
        verified = environ.get(VERIFIED)
        if verified is None or verified.app is None:
            raise AppCheckFailed
        if verified.auth is None or not verified.auth.uid:
            raise SignInRequired


def _check_origin(request: flask.Request, knobs: Settings) -> None:
    origin = request.headers.get("Origin")
    if origin is not None and "*" not in knobs.allowed_origins and origin not in knobs.allowed_origins:
        raise OriginNotAllowed


def _messages(answer: Any) -> Generator[bytes, None, Any]:  # noqa: ANN401 - any JSON value, or a generator of them
    """The events of an answer, and its result; closing this closes the handler."""
    if not isinstance(answer, Generator):
        return answer
    try:
        while True:
            message = next(answer)
            yield streaming.HEARTBEAT if message is None else streaming.event({"message": message})
    except StopIteration as end:
        return end.value
    finally:
        answer.close()


def _drained(answer: Any) -> Any:  # noqa: ANN401 - as above
    """The result of an answer whose messages nobody takes."""
    messages = _messages(answer)
    try:
        while True:
            next(messages)
    except StopIteration as end:
        return end.value


def _only(event: bytes) -> Generator[bytes]:
    yield event


def _error(refusal: Refused) -> dict[str, Any]:
    return {"error": {"status": refusal.code.name, "message": refusal.message, "details": refusal.details}}


def _refusal(error: Exception, audit: dict[str, Field]) -> Refused:
    """The refusal that a client gets for an error, and the log for ours."""
    refusal = error if isinstance(error, Refused) else Internal()
    if refusal is not error:
        # Never the message: libraries print their input in it.
        stack = traceback.extract_tb(error.__traceback__)[-20:]
        frames = [f"{frame.filename.rsplit('/', 2)[-1]}:{frame.lineno} {frame.name}" for frame in stack]
        emit(Event.UNHANDLED, severity=Severity.ERROR, error=type(error).__name__, frames=frames)
    audit |= {"outcome": refusal.reason.value, "code": refusal.code.name}
    return refusal
