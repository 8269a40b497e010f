"""The switch as requests meet it: remembered for a TTL, read again by one thread while the others go on."""

import math
from collections.abc import Collection
from threading import Lock

from google.cloud import firestore

from firebreak.errors import StoreUnavailable, SwitchedOff
from firebreak.events import Event, Severity, emit
from firebreak.store.clock import ANCHOR_S
from firebreak.store.documents import Corrupt
from firebreak.store.outcome import STORE_ERRORS, Unreadable
from firebreak.store.times import SECOND_US
from firebreak.store.tries import RPC_S, Clock
from firebreak.switch import documents
from firebreak.switch.documents import SwitchReading
from firebreak.switch.state import ActiveTrip, State

# After a failed first reading: nobody asks the store again before, however many requests come.
RETRY_S = 1.0
# The first reading of an instance also connects to the store: on a busy machine that alone can take RPC_S, and until it
# is done every request is refused.
FIRST_S = 5.0
# How much longer than its own timeout the reading of another thread is waited for.
MARGIN_S = 0.5


def refuse(knob: Collection[str], spends: Collection[str], *, retry_after_s: int) -> None:
    """Refuse a request that spends what the environment's knob switches off; asks nobody.

    Raises:
        SwitchedOff: it does; until the next deploy.
    """
    for scope in ("all", *spends):
        if scope in knob:
            raise SwitchedOff(retry_after_s=retry_after_s, scope=scope)


class Switch:
    """The switch of this instance, for all threads."""

    def __init__(self, client: firestore.Client, *, ttl_s: int, clock: Clock | None = None) -> None:
        self._client = client
        self._ttl_s = ttl_s
        self._monotonic = (clock or Clock()).monotonic
        self._refreshing = Lock()
        # The reading with the monotonic time of its receipt, as one value, so that no thread sees half of a new one.
        self._known: tuple[SwitchReading, float] | None = None
        self._due = -math.inf

    def check(self, spends: Collection[str]) -> None:
        """Refuse a request that would spend something which is switched off; `spends` are scopes.

        Raises:
            SwitchedOff: with the reason of who did it, `scope`, and when to come again.
            StoreUnavailable: this instance has not been able to read the switch yet.
        """
        reading, received = self._latest()
        now_us = self._now_us(reading, received)
        trip = reading.state.tripped(spends, now_us)
        if trip is not None:
            raise SwitchedOff(trip.reason, retry_after_s=self._retry_after_s(trip, now_us), scope=trip.scope)

    def percent(self) -> int:
        """What is left of all daily limits, in percent, as last seen by `check`; asks nobody."""
        known = self._known
        return 100 if known is None else known[0].state.percent(self._now_us(*known))

    def _latest(self) -> tuple[SwitchReading, float]:
        now = self._monotonic()
        if now >= self._due:
            # Overdue by more than a refresh takes: no request came, and what is known can be of any age.
            wait_s = self._timeout_s + MARGIN_S
            waits = self._known is None or now - self._due > wait_s
            if self._refreshing.acquire(timeout=wait_s if waits else 0):
                try:
                    if self._monotonic() >= self._due:
                        self._refresh()
                finally:
                    self._refreshing.release()
        known = self._known
        if known is None:
            raise StoreUnavailable(retry_after_s=math.ceil(RETRY_S))
        return known

    @property
    def _timeout_s(self) -> float:
        return FIRST_S if self._known is None else RPC_S

    def _refresh(self) -> None:
        try:
            reading = documents.read(self._client, timeout_s=self._timeout_s)
        except (*STORE_ERRORS, Corrupt, Unreadable) as error:
            if isinstance(error, Corrupt):
                # No outage: somebody has written it so, perhaps to switch something off. Nobody passes on a guess.
                self._known = None
            emit(Event.SWITCH, severity=Severity.ERROR, change="unreadable", error=type(error).__name__)
        else:
            before, self._known = self._known, (reading, self._monotonic())
            _tell(before[0] if before else None, reading)
        finally:
            self._due = self._monotonic() + (RETRY_S if self._known is None else self._ttl_s)

    def _now_us(self, reading: SwitchReading, received: float) -> int:
        """The server's time, late by a network's delay; it stands still once no refresh has come for long.

        What was over by then stays over, and a trip whose end is not known to have come goes on.
        """
        passed = min(self._monotonic() - received, self._ttl_s + ANCHOR_S)
        return reading.at_us + round(passed * SECOND_US)

    def _retry_after_s(self, trip: ActiveTrip, now_us: int) -> int:
        if trip.until_us is None:
            return self._ttl_s
        return max(1, -((now_us - trip.until_us) // SECOND_US))


def _tell(before: SwitchReading | None, after: SwitchReading) -> None:
    """Log what has become of the switch since the last reading, what is over among it."""
    was = before.state.current(before.at_us) if before else State()
    now = after.state.current(after.at_us)
    held = {(trip.scope, trip.owner) for trip in now.trips}
    for trip in now.trips:
        if trip not in was.trips:
            _log("tripped", trip)
    for trip in was.trips:
        if (trip.scope, trip.owner) not in held:
            _log("reset", trip)
    if now.percent(None) != was.percent(None):
        emit(Event.SWITCH, severity=Severity.WARNING, change="percent", percent=now.percent(None))


def _log(change: str, trip: ActiveTrip) -> None:
    emit(
        Event.SWITCH,
        severity=Severity.WARNING,
        change=change,
        scope=trip.scope,
        owner=trip.owner,
        reason=trip.reason,
        by=trip.by,
    )
