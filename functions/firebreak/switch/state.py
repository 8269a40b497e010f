"""What the switch says, as values: who has switched what off, and who has tightened the limits; no I/O, no clock."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from firebreak.store.documents import Corrupt
from firebreak.store.times import from_us, to_us

# Gemini's calls; the handlers' own reads and writes, while the guard's go on; those too.
SCOPES = ("gemini", "firestore", "all")
OWNERS = ("operator", "budget", "caps")
# Each budget holds what it does for itself, as `budget:` and its id, and ends or loosens nothing of another one.
_OF_A_BUDGET = re.compile(r"budget:[0-9a-z-]{1,64}", re.ASCII)
TEXT_CHARACTERS = 200


def is_owner(text: str) -> bool:
    """Whether somebody of this name may hold something."""
    return text in OWNERS or _OF_A_BUDGET.fullmatch(text) is not None


def is_held_by(holder: str, owner: str | None) -> bool:
    """Whether `owner` means this holder: `budget` means each budget, None everybody."""
    return owner in {None, holder} or (owner == "budget" and holder.startswith("budget:"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveTrip:
    """A scope that an owner holds switched off, until `until_us` on the server's clock; None: until it is reset."""

    scope: str
    owner: str
    reason: str
    by: str
    at_us: int | None
    until_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tightening:
    """The percent of all daily limits that an owner leaves, until `until_us`; None: until it is loosened."""

    owner: str
    percent: int
    reason: str
    by: str
    at_us: int | None
    until_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All that is tripped and tightened; `now_us` None is an unknown time, at which nothing is over."""

    version: int = 0
    trips: tuple[ActiveTrip, ...] = ()
    tightened: tuple[Tightening, ...] = ()

    def tripped(self, spends: Collection[str], now_us: int | None) -> ActiveTrip | None:
        """What refuses a request that spends these; of several trips the one that lasts longest."""
        held = [t for t in self.trips if (t.scope == "all" or t.scope in spends) and not _is_over(t, now_us)]
        return max(held, key=_lasting, default=None)

    def percent(self, now_us: int | None) -> int:
        """What is left of all daily limits; of several tightenings the smallest."""
        return min((t.percent for t in self.tightened if not _is_over(t, now_us)), default=100)

    def current(self, now_us: int | None) -> "State":
        """The same without what is over."""
        return State(
            version=self.version,
            trips=tuple(t for t in self.trips if not _is_over(t, now_us)),
            tightened=tuple(t for t in self.tightened if not _is_over(t, now_us)),
        )


def _is_over(entry: ActiveTrip | Tightening, now_us: int | None) -> bool:
    return entry.until_us is not None and now_us is not None and entry.until_us <= now_us


def _lasting(trip: ActiveTrip) -> tuple[bool, int, bool, bool]:
    return trip.until_us is None, trip.until_us or 0, trip.owner == "operator", trip.scope == "all"


def parse(data: Mapping[str, Any] | None) -> State:
    """The state in the document's fields; None, no document: nothing is tripped.

    An entry made by hand may lack everything but its place (a trip) or its percent.

    Raises:
        Corrupt: a field is of another type, or a scope or percent is none.
    """
    fields = data or {}
    if fields.keys() & {"trip", *SCOPES, *OWNERS}:
        raise Corrupt("a trip stands where it means nothing")
    trips = [
        ActiveTrip(scope=_scope(scope), owner=_text(owner), **_common(entry))
        for scope, owners in _mapping(fields.get("trips", {})).items()
        for owner, entry in _mapping(owners).items()
    ]
    tightened = [
        Tightening(owner=_text(owner), percent=_percent(_mapping(entry).get("percent")), **_common(entry))
        for owner, entry in _mapping(fields.get("tightened", {})).items()
    ]
    return State(
        version=_whole(fields.get("version", 0)),
        trips=tuple(sorted(trips, key=lambda t: (t.scope, t.owner))),
        tightened=tuple(sorted(tightened, key=lambda t: t.owner)),
    )


def fields_of(state: State) -> dict[str, Any]:
    """The document's fields, as `parse` reads them."""
    trips: dict[str, dict[str, Any]] = {}
    for trip in state.trips:
        trips.setdefault(trip.scope, {})[trip.owner] = _entry(trip)
    tightened = {entry.owner: {"percent": entry.percent} | _entry(entry) for entry in state.tightened}
    return {"version": state.version, "trips": trips, "tightened": tightened}


def _entry(entry: ActiveTrip | Tightening) -> dict[str, Any]:
    times = {"at": entry.at_us, "until": entry.until_us}
    known = {name: from_us(us) for name, us in times.items() if us is not None}
    return {"reason": entry.reason, "by": entry.by} | known


def _common(entry: object) -> dict[str, Any]:
    fields = _mapping(entry)
    return {
        "reason": _text(fields.get("reason", "")),
        "by": _text(fields.get("by", "")),
        "at_us": _stamp(fields.get("at")),
        "until_us": _stamp(fields.get("until")),
    }


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Corrupt("trips, tightened or an entry of them is not a map")
    return value


def _scope(value: object) -> str:
    if not isinstance(value, str) or value not in SCOPES:
        raise Corrupt("there is a trip of an unknown scope")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Corrupt("reason, by or an owner is not a text")
    return value[:TEXT_CHARACTERS]


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Corrupt("version or percent is not a whole number")
    return value


def _percent(value: object) -> int:
    percent = _whole(value)
    if not 1 <= percent <= 100:
        raise Corrupt("percent is not between 1 and 100")
    return percent


def _stamp(value: object) -> int | None:
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise Corrupt("at or until is not a timestamp")
    return to_us(value)
