"""The meters of a request: counters with a limit, in its context, on which all threads that share it count."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import ClassVar, NoReturn, Protocol
from weakref import WeakSet

from firebreak.errors import MeterExceeded, ReadsExceeded, WritesExceeded

INSTEAD = {
    "batch_write": "bulk_writer and recursive_delete are not metered: use client.batch()",
    "listen": "on_snapshot is not metered: read with get() or stream()",
    "partition_query": "get_partitions is not metered: use limit() and start_after()",
    "execute_pipeline": "pipelines are not metered: use a query",
    "find_nearest": "find_nearest is not metered: its index entries are billed, and no answer tells how many",
    "explain": "explain_options are not metered: explain in the console, or with the SDK's own client in a script",
    "retry": "each attempt is billed, so none is made unseen: retry around the call",
}


class Unsupported(NotImplementedError):
    """The metered client refuses this; nothing was sent."""


def unsupported(what: str) -> NoReturn:
    """Refuse it, naming what to use instead."""
    raise Unsupported(INSTEAD.get(what, f"{what} is not metered: use documents, queries, batches and transactions"))


class Open(Protocol):
    """A read under way, which has set aside `left` more than it has read."""

    left: int | None

    def settle(self) -> None:
        """Come to know what it reads, and close it at the meter."""


class Latch:
    """Holds what refused first: from then on every meter of the request refuses."""

    def __init__(self) -> None:
        self.by: Meter | None = None


class Meter:
    """Counts up to `limit`, without end if None; all threads of a request share it."""

    exceeded: ClassVar[type[MeterExceeded]]

    def __init__(self, limit: int | None = None, *, latch: Latch | None = None) -> None:
        if limit is not None and limit < 0:
            raise ValueError(f"a meter's limit must be at least 0, not {limit}")
        self.limit = limit
        self._latch = latch or Latch()
        self._lock = Lock()
        self._charged = 0
        # Weak: a read that nobody waits for any more is not read to its end, and stays charged for all it set aside.
        self._open: WeakSet[Open] = WeakSet()

    @property
    def used(self) -> int:
        """What is counted, without what reads under way have set aside and may give back."""
        with self._lock:
            return self._charged - sum(each.left or 0 for each in self._open)

    @property
    def remaining(self) -> int | None:
        """What can still be counted or set aside; None without a limit."""
        return None if self.limit is None else self.limit - self._charged

    def take(self, count: int = 1) -> None:
        """Count `count`, all or nothing.

        Raises:
            MeterExceeded: it does not fit; from now on every operation of the request raises.
        """
        if count < 1:
            raise ValueError(f"a meter counts at least 1 at a time, not {count}")
        with self._lock:
            if self.limit is None or (self._latch.by is None and self._charged + count <= self.limit):
                self._charged += count
                return
        self._charge(count, least=count)

    def give_back(self, count: int) -> None:
        """Count `count` less: what was taken for it has provably not happened."""
        with self._lock:
            if not 0 <= count <= self._charged:
                raise ValueError(f"{count} cannot be given back of {self._charged}")
            self._charged -= count

    @property
    def refused(self) -> MeterExceeded | None:
        """The refusal, if a meter of the request has been exceeded."""
        return None if self._latch.by is None else self._latch.by.refusal()

    def check(self) -> None:
        """Raise what was raised before, if a meter of the request has been exceeded."""
        if self._latch.by is not None:
            raise self._latch.by.refusal()

    def exceed(self) -> MeterExceeded:
        """Latch, and the refusal to raise; for who finds out otherwise that more was wanted."""
        with self._lock:
            self._latch.by = self._latch.by or self
        return self._latch.by.refusal()

    def refusal(self) -> MeterExceeded:
        """The refusal that this meter's excess is."""
        return self.exceeded(limit=self.limit, remaining=self.remaining)

    def _charge(self, most: int | None, *, least: int, owner: Open | None = None) -> int:
        """Charge `most` (None: all that is left), or what is left if that is at least `least`; returns how much."""
        while True:
            with self._lock:
                self.check()
                left = (self.limit or 0) - self._charged
                waiting = list(self._open)
                if not waiting or (most is not None and most <= left):
                    charged = left if most is None else min(most, left)
                    if charged < least:
                        break
                    self._charged += charged
                    if owner is not None:
                        owner.left = charged
                        self._open.add(owner)
                    return charged
            # Others have set aside more than they will read; who needs it makes them read on, and so give back.
            for each in waiting:
                each.settle()
        raise self.exceed()


class ReadMeter(Meter):
    """Counts documents read, as Firestore bills them."""

    exceeded = ReadsExceeded

    def hold(self, owner: Open, most: int | None, *, least: int) -> int | None:
        """Set aside `most` reads for `owner` (None: all that are left), or what is left but at least `least`.

        Returns how many, also as `owner.left`; None without a limit, where `owner` takes one after another.

        Raises:
            MeterExceeded: less than `least` is left.
        """
        if self.limit is None:
            owner.left = None
            return None
        return self._charge(most, least=least, owner=owner)

    def close(self, owner: Open, unread: int) -> None:
        """Take back `unread` of what was set aside for `owner`; the rest stays counted."""
        with self._lock:
            self._open.discard(owner)
            self._charged -= unread
            owner.left = 0


class WriteMeter(Meter):
    """Counts documents written: each write when it is queued."""

    exceeded = WritesExceeded


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
