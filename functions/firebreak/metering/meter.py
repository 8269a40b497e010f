"""The meters of a request: held in its context, so that every thread that shares the context counts on them."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from firebreak.errors import MeterExceeded
from firebreak.metering.counter import Latch, ReadMeter, WriteMeter


class NoMeter(RuntimeError):
    """Firestore was used outside a request, or in a thread that did not take the request's context along."""


class AlreadyMetered(RuntimeError):
    """A request has one set of meters: opening another inside it would be a way around them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meters:
    """The meters of one request: the handler's under limits, and those of the guard itself without."""

    reads: ReadMeter
    writes: WriteMeter
    guard_reads: ReadMeter = field(default_factory=ReadMeter)
    guard_writes: WriteMeter = field(default_factory=WriteMeter)

    def allow(self, *, reads: int, writes: int) -> None:
        """Give the handler its budget, once it is known; until then it has what it was opened with."""
        self.reads.limit, self.writes.limit = reads, writes

    @property
    def exceeded(self) -> MeterExceeded | None:
        """The refusal, if the request has exceeded a meter."""
        return self.reads.refused

    def check(self) -> None:
        """Raise if the request has exceeded a meter, whoever has caught that since.

        Raises:
            MeterExceeded: it has.
        """
        self.reads.check()  # or the writes: one latch holds both


_METERS: ContextVar[Meters | None] = ContextVar("firebreak_meters", default=None)


def current() -> Meters:
    """The meters of the request under way.

    Raises:
        NoMeter: there is none.
    """
    meters = _METERS.get()
    if meters is None:
        raise NoMeter(
            "Firestore is metered per request, and none is under way here. A thread of your own must run in "
            'contextvars.copy_context(); work outside requests runs under unmetered("why").'
        )
    return meters


@contextmanager
def metered(*, reads: int, writes: int) -> Iterator[Meters]:
    """Meter a request: it may read and write so many documents, in whatever threads share its context.

    Raises:
        AlreadyMetered: inside another request.
    """
    latch = Latch()
    with _active(Meters(reads=ReadMeter(reads, latch=latch), writes=WriteMeter(writes, latch=latch))) as meters:
        yield meters


@contextmanager
def unmetered(reason: str) -> Iterator[Meters]:
    """Meters without limits, for work that is not a request: `reason` says which to who reads the code.

    Raises:
        ValueError: no reason.
        AlreadyMetered: inside a request, which would get around its meters.
    """
    if not reason.strip():
        raise ValueError("unmetered wants a reason")
    with _active(Meters(reads=ReadMeter(), writes=WriteMeter())) as meters:
        yield meters


@contextmanager
def _active(meters: Meters) -> Iterator[Meters]:
    if _METERS.get() is not None:
        raise AlreadyMetered("a request is metered once: this is inside one already")
    token = _METERS.set(meters)
    try:
        yield meters
    finally:
        _METERS.reset(token)
