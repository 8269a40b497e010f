"""The watch over the spend caps: while one is enforced, the switch refuses what would only fail."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from google.auth.exceptions import GoogleAuthError
from google.cloud import firestore
from requests import RequestException, Session

from firebreak.budgets import caps
from firebreak.budgets.caps import CapsDecision, KnownCaps, NoCap, known
from firebreak.budgets.documents import insist
from firebreak.events import Event, Severity, emit
from firebreak.metering.meter import unmetered
from firebreak.store import commit
from firebreak.store.tries import Clock
from firebreak.switch import change
from firebreak.switch.change import Reset, Trip
from firebreak.switch.documents import OPS
from firebreak.waiting import Late, within

CAPS = "caps"


@dataclass(frozen=True, slots=True, kw_only=True)
class CapsRecord:
    """A read: all caps, and the document's update_time, None where there is no document; the server's time of it."""

    known: KnownCaps
    updated: datetime | None
    at: datetime


def read(client: firestore.Client, *, timeout_s: float) -> CapsRecord:
    """Read the record, in one RPC.

    Raises:
        Unreadable: there is no database to read from.
    """
    snapshot = commit.get(_reference(client), timeout_s=timeout_s)
    entries = (snapshot.to_dict() or {}).get("caps", {})
    return CapsRecord(known=known(entries), updated=snapshot.update_time, at=snapshot.read_time)


def write(client: firestore.Client, batch: firestore.WriteBatch, record: CapsRecord, seen: Mapping[str, str]) -> None:
    """Add the states seen, by budget name, to a commit, which fails if the record is not as it was read."""
    fields: dict[str, str | datetime] = {}
    for cap in record.known.caps:
        if cap.name in seen:
            new: dict[str, str | datetime] = {"outputState": seen[cap.name], "seenAt": record.at}
            if seen[cap.name] != cap.state:
                new["changedAt"] = record.at
            fields |= {client.field_path("caps", cap.key, name): value for name, value in new.items()}
    if fields:
        batch.update(_reference(client), fields, option=client.write_option(last_update_time=record.updated))


def _reference(client: firestore.Client) -> firestore.DocumentReference:
    reference: firestore.DocumentReference = client.collection(OPS).document(CAPS)
    return reference


GET_S = 8.0
# The preview answers 404 for caps that exist, now and then.
TRIES = 4
PAUSE_S = 2.0
_GOOGLE = "https://billingbudgets.googleapis.com"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"


class CapUnreadable(Exception):
    """The API gives no usable answer for a cap; the text is for the log."""


class CapsApi:
    """Reads caps, as the function's own service account; `host` is where a stand-in is, None for Google."""

    def __init__(self, *, host: str | None, get_s: float = GET_S, clock: Clock | None = None) -> None:
        self._root = f"http://{host}/billingbudgets" if host else _GOOGLE
        self._get_s = get_s
        self._clock = clock or Clock()
        self._session: Session | None = None

    def budget(self, name: str) -> Mapping[str, Any]:
        """The budget of this name.

        Raises:
            CapUnreadable: it cannot be read, also not at another try where that may help.
        """
        for number in range(TRIES):
            if number:
                self._clock.sleep(self._clock.uniform(PAUSE_S / 2, PAUSE_S))
            status, body = self._get(f"{self._root}/v1/{name}")
            if status != 404:
                break
        if status != 200:
            raise CapUnreadable(f"HTTP {status}")
        if not isinstance(body, dict):
            raise CapUnreadable("not a JSON object")
        return body

    def _get(self, url: str) -> tuple[int, object]:
        try:
            # Of the whole, a new token included: the library's own timeouts bound each wait, and there are several.
            answer = within(self._get_s, lambda: self._connected().get(url, timeout=self._get_s, allow_redirects=False))
            return answer.status_code, answer.json() if answer.status_code == 200 else None
        except (Late, RequestException, GoogleAuthError, ValueError) as error:
            raise CapUnreadable(type(error).__name__) from error

    def _connected(self) -> Session:
        if self._session is None:
            import google.auth
            from google.auth.transport.requests import AuthorizedSession

            credentials, _ = google.auth.default(scopes=[_SCOPE])
            self._session = AuthorizedSession(credentials)  # type: ignore[no-untyped-call]  # it ships no types there
        return self._session


OWNER = "caps"
# Clients see this.
REASON = "A spend cap of the app was reached."
LIFTED = "No spend cap is enforced any more."
BY = "watch_caps"
# Of all looks together, well within the function's timeout.
LOOK_S = 40.0


def watch(client: firestore.Client, api: CapsApi, clock: Clock | None = None) -> None:
    """Look at each cap on record once; book what is seen and change the switch accordingly, in one commit.

    Raises:
        StoreUnavailable: it may not be booked; the next run does.
    """
    clock = clock or Clock()
    with unmetered("the watch over the spend caps runs outside of any request"):
        record = insist(lambda timeout_s: read(client, timeout_s=timeout_s), clock=clock, doing="caps")
        for key in record.known.odd:
            _cannot_read(key, "the entry in ops/caps is no cap")
        seen = _look(record.known, api, clock)
        insist(lambda timeout_s: _book(client, seen, timeout_s, clock), clock=clock, doing="caps")


def _look(known: KnownCaps, api: CapsApi, clock: Clock) -> dict[str, str]:
    """The states at rest, by budget name, of those caps that can be read."""
    end = clock.monotonic() + LOOK_S
    seen: dict[str, str] = {}
    for cap in known.caps:
        if clock.monotonic() >= end:
            _cannot_read(cap.key, "no time left")
            continue
        try:
            state = caps.resting(api.budget(cap.name))
        except (CapUnreadable, NoCap) as error:
            _cannot_read(cap.key, str(error))
            continue
        if state is not None:
            seen[cap.name] = state
    return seen


def _book(client: firestore.Client, seen: Mapping[str, str], timeout_s: float, clock: Clock) -> None:
    """One try to book what was seen; it goes by the record and the switch as they are now."""
    record = read(client, timeout_s=timeout_s)
    if record.updated is None:
        return
    trips = change.read(client, timeout_s=timeout_s).trips
    decision = caps.decide(record.known, seen, {trip.scope for trip in trips if trip.owner == OWNER})

    def add(batch: firestore.WriteBatch) -> None:
        write(client, batch, record, seen)

    changes = _changes(decision)
    if changes:
        change.apply(client, changes, also=add, timeout_s=timeout_s, clock=clock)
    elif seen:
        batch = client.batch()
        add(batch)
        commit.send(batch, timeout_s=timeout_s)
    _tell(record.known, seen, changes)


def _changes(decision: CapsDecision) -> list[Trip | Reset]:
    trips = [Trip(scope=scope, owner=OWNER, reason=REASON, by=BY) for scope in decision.trips]
    return [*trips, *(Reset(scope=scope, owner=OWNER, reason=LIFTED, by=BY) for scope in decision.resets)]


def _tell(known: KnownCaps, seen: Mapping[str, str], changes: Sequence[Trip | Reset]) -> None:
    for cap in known.caps:
        after = seen.get(cap.name, cap.state)
        if after != cap.state:
            emit(Event.CAP, severity=Severity.WARNING, cap=cap.key, scope=cap.scope, before=cap.state, after=after)
    for made in changes:
        emit(Event.CAP, severity=Severity.WARNING, change=made.what, scope=made.scope)


def _cannot_read(key: str, why: str) -> None:
    """What is not known changes nothing."""
    emit(Event.CAP, severity=Severity.ERROR, cap=key, unreadable=why)
