"""`@guarded`: the layers of a request, in order, around the SDK's `on_call`."""

import functools
import io
import traceback
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

import flask
import flask_cors
from firebase_functions import https_fn

from firebreak import attest, shape
from firebreak.errors import AppCheckFailed, Internal, Refused, SignInRequired
from firebreak.events import Event, Field, Severity, audited, emit, note, pseudonym
from firebreak.settings import Settings, settings

# Where the SDK's verified request waits for us in the WSGI environment of its one request.
VERIFIED = "firebreak.verified"
EMPTY_BODY = b'{"data":null}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a handler gets: a request that passed every layer."""

    data: Any
    user: attest.User
    app_id: str
    settings: Settings


type Handler = Callable[[Call], Any]
type View = Callable[[flask.Request], flask.Response]


def guarded(**options: Any) -> Callable[[Handler], View]:  # noqa: ANN401 - the SDK's own options
    """Make a callable function of a handler that takes a `Call` and returns plain JSON.

    `options` are those of `https_fn.on_call`. The deployed function must bear the handler's name.
    """

    def decorate(handler: Handler) -> View:
        @functools.wraps(handler)
        def capture(request: https_fn.CallableRequest[Any]) -> None:
            request.raw_request.environ[VERIFIED] = request

        # The second lock: App Check again, by the SDK, whatever our own layer says.
        locked: Any = https_fn.on_call(enforce_app_check=True, **options)(capture)

        @flask_cors.cross_origin(methods="POST", origins="*")
        @functools.wraps(locked)
        def view(request: flask.Request) -> flask.Response:
            return _serve(request, handler, locked)

        return view

    return decorate


def _serve(request: flask.Request, handler: Handler, locked: View) -> flask.Response:
    started = monotonic()
    with audited(function=handler.__name__, id=uuid.uuid4().hex) as audit:
        try:
            result = handler(_admit(request, locked))
            response = flask.jsonify(result=result)
            audit["outcome"] = "ok"
        except Refused as refusal:
            response = _refuse(refusal, audit)
        except Exception as error:  # noqa: BLE001 - the edge: nothing may leave as HTML or a traceback
            _report(error)
            response = _refuse(Internal(), audit)
        audit["ms"] = round((monotonic() - started) * 1000)
    return response


def _admit(request: flask.Request, locked: View) -> Call:
    """The layers, in order; each is cheaper than the next, and none runs before the one above it has passed."""
    knobs = settings()
    data = shape.read(request, max_bytes=knobs.max_body_bytes)
    app = attest.connect(knobs.project)
    app_id = attest.attest(request.headers.get("X-Firebase-AppCheck"), app)
    user = attest.sign_in(request.headers.get("Authorization"), app)
    _lock_again(request, locked)
    note(user=pseudonym(user.uid), app=app_id)
    return Call(data=data, user=user, app_id=app_id, settings=knobs)


def _lock_again(request: flask.Request, locked: View) -> None:
    """Let the SDK verify the same headers; it gets no body, which it would parse twice and might log."""
    environ = {key: value for key, value in request.environ.items() if not key.startswith("werkzeug.")}
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    environ.pop("wsgi.input_terminated", None)
    environ |= {"wsgi.input": io.BytesIO(EMPTY_BODY), "CONTENT_LENGTH": str(len(EMPTY_BODY))}
    locked(flask.Request(environ))
    verified = environ.get(VERIFIED)
    if verified is None or verified.app is None:
        raise AppCheckFailed
    if verified.auth is None or not verified.auth.uid:
        raise SignInRequired


def _refuse(refusal: Refused, audit: dict[str, Field]) -> flask.Response:
    audit |= {"outcome": refusal.reason.value, "code": refusal.code.name}
    error = {"status": refusal.code.name, "message": refusal.message, "details": refusal.details}
    return flask.make_response(flask.jsonify(error=error), refusal.code.http_status)


def _report(error: Exception) -> None:
    # Never the message: libraries print their input in it.
    frames = [f"{f.filename.rsplit('/', 2)[-1]}:{f.lineno} {f.name}" for f in traceback.extract_tb(error.__traceback__)]
    emit(Event.UNHANDLED, severity=Severity.ERROR, error=type(error).__name__, frames=frames[-20:])
