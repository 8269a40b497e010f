"""The layers of a request, in order: each is cheaper than the next, and none runs before the one above has passed."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import flask
from firebase_functions import https_fn

from firebreak import wiring
from firebreak.errors import AppCheckFailed, OriginNotAllowed, Refused, SignInRequired
from firebreak.events import note, pseudonym, shadowed
from firebreak.guard import attest, body, streaming
from firebreak.guard.slots import Slot
from firebreak.limits.requests import Kind
from firebreak.metering.meter import Meters
from firebreak.settings import tiers
from firebreak.settings.settings import Settings, settings
from firebreak.settings.tiers import User
from firebreak.switch.watch import refuse

# Where the SDK's verified request waits for us in the WSGI environment of its one request.
VERIFIED = "firebreak.verified"
EMPTY_BODY = b'{"data":null}'
# Of calls that only read, the bodies are there at once: a few at a time of one user pass without one being refused.
BODY_WAIT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a handler gets: a request that passed every layer; `streaming` if the client takes messages.

    `percent` of the daily limits hold: 100, unless a budget has tightened them.
    """

    data: Any
    user: User
    app_id: str
    streaming: bool
    settings: Settings
    percent: int


type View = Callable[[flask.Request], flask.Response]


def capture(request: https_fn.CallableRequest[Any]) -> None:
    """The SDK's handler: it has verified the request, and that is all we want of it."""
    request.raw_request.environ[VERIFIED] = request


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """What one callable asks of its requests, as `guarded` tells; `locked` is the SDK's callable around `capture`."""

    locked: View
    spends: frozenset[str]
    requests: Kind
    reads: int | None
    writes: int | None
    consume: bool

    def admit(self, request: flask.Request, meters: Meters, slot: Slot) -> Call:
        """Let a request through all layers, or refuse it. Its body is read last: a stranger's costs no parsing.

        Raises:
            Refused: of the first layer that it does not pass.
        """
        knobs = settings()
        body.check(request, max_bytes=knobs.max_body_bytes)
        _check_origin(request, knobs)
        percent = self._switched_on(knobs)
        app = attest.connect(knobs.project)
        token = request.headers.get("X-Firebase-AppCheck")
        app_id = attest.attest(token, app, allowed=knobs.allowed_app_ids, consume=self.consume)
        authorization = request.headers.get("Authorization")
        user = attest.sign_in(authorization, app, tenants=knobs.allowed_tenants, check_revoked=knobs.check_revoked)
        self._lock_again(request)
        note(user=pseudonym(user.key), app=app_id)
        with _in_shadow(user, knobs):
            self._seat(user, knobs, slot)
        with _in_shadow(user, knobs):
            self._count(user, knobs)
        data = self._read(request, user, knobs, slot)
        self._allow(meters, knobs)
        streams = streaming.wanted(request)
        return Call(data=data, user=user, app_id=app_id, streaming=streams, settings=knobs, percent=percent)

    def _switched_on(self, knobs: Settings) -> int:
        """The kill switch; returns the percentage of the daily limits that holds, which is read with it."""
        # Before there is a client: making one can ask the platform for credentials.
        refuse(knobs.kill_switch, self.spends, retry_after_s=knobs.switch_ttl_s)
        switch = wiring.switch()
        switch.check(self.spends)
        return switch.percent()

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

    def _seat(self, user: User, knobs: Settings, slot: Slot) -> None:
        """A thread for the user; what only reads is over soon once its body is there, and takes none for longer."""
        if self.requests == "write":
            slot.take(user.key, most=tiers.threads(knobs))

    def _count(self, user: User, knobs: Settings) -> None:
        """The hourly requests of the user."""
        limit = tiers.requests_per_hour(knobs, self.requests, tier=user.tier, anonymous=user.anonymous)
        wiring.rate().take(user.key, self.requests, limit)

    def _read(self, request: flask.Request, user: User, knobs: Settings, slot: Slot) -> Any:  # noqa: ANN401
        """The body, for which a thread may have to wait as long as the client likes to send."""
        if self.requests == "write":
            return body.read(request, max_bytes=knobs.max_body_bytes)
        with _in_shadow(user, knobs):
            slot.take(user.key, most=tiers.threads(knobs), wait_s=BODY_WAIT_S)
        data = body.read(request, max_bytes=knobs.max_body_bytes)
        slot.leave()
        return data

    def _allow(self, meters: Meters, knobs: Settings) -> None:
        """The documents that the handler may read and write; until here it was none."""
        if "firestore" in self.spends:
            reads = knobs.max_request_reads if self.reads is None else self.reads
            writes = knobs.max_request_writes if self.writes is None else self.writes
            meters.allow(reads=reads, writes=writes)


@contextmanager
def _in_shadow(user: User, knobs: Settings) -> Iterator[None]:
    """Shadow mode lets pass what these limits refuse, and logs it."""
    try:
        yield
    except Refused as refusal:
        if knobs.enforce == "enforce":
            raise
        shadowed(refusal, user.key)


def _check_origin(request: flask.Request, knobs: Settings) -> None:
    origin = request.headers.get("Origin")
    if origin is not None and "*" not in knobs.allowed_origins and origin not in knobs.allowed_origins:
        raise OriginNotAllowed
