"""The watch over the spend caps: while one is enforced, the switch refuses what would only fail."""

from collections.abc import Mapping, Sequence

from google.cloud import firestore

from firebreak.bucket.tries import Clock
from firebreak.budgets import caps, caps_record
from firebreak.budgets.caps import Decision, Known, NoCap
from firebreak.budgets.caps_api import CapsApi, CapUnreadable
from firebreak.budgets.document import insist
from firebreak.events import Event, Severity, emit
from firebreak.metering.meter import unmetered
from firebreak.switch import change
from firebreak.switch.change import Reset, Trip

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
        record = insist(lambda timeout_s: caps_record.read(client, timeout_s=timeout_s), clock=clock, doing="caps")
        for key in record.known.odd:
            _cannot_read(key, "the entry in ops/caps is no cap")
        seen = _look(record.known, api, clock)
        insist(lambda timeout_s: _book(client, seen, timeout_s, clock), clock=clock, doing="caps")


def _look(known: Known, api: CapsApi, clock: Clock) -> dict[str, str]:
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
    record = caps_record.read(client, timeout_s=timeout_s)
    if record.updated is None:
        return
    trips = change.read(client, timeout_s=timeout_s).trips
    decision = caps.decide(record.known, seen, {trip.scope for trip in trips if trip.owner == OWNER})

    def add(batch: firestore.WriteBatch) -> None:
        caps_record.write(client, batch, record, seen)

    changes = _changes(decision)
    if changes:
        change.apply(client, changes, also=add, timeout_s=timeout_s, clock=clock)
    elif seen:
        batch = client.batch()
        add(batch)
        batch.commit(retry=None, timeout=timeout_s)
    _tell(record.known, seen, changes)


def _changes(decision: Decision) -> list[Trip | Reset]:
    trips = [Trip(scope=scope, owner=OWNER, reason=REASON, by=BY) for scope in decision.trips]
    return [*trips, *(Reset(scope=scope, owner=OWNER, reason=LIFTED, by=BY) for scope in decision.resets)]


def _tell(known: Known, seen: Mapping[str, str], changes: Sequence[Trip | Reset]) -> None:
    for cap in known.caps:
        after = seen.get(cap.name, cap.state)
        if after != cap.state:
            emit(Event.CAP, severity=Severity.WARNING, cap=cap.key, scope=cap.scope, before=cap.state, after=after)
    for made in changes:
        emit(Event.CAP, severity=Severity.WARNING, change=made.what, scope=made.scope)


def _cannot_read(key: str, why: str) -> None:
    """What is not known changes nothing."""
    emit(Event.CAP, severity=Severity.ERROR, cap=key, unreadable=why)
