"""What can be changed about the switch, as values: each makes the next state of one."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from firebreak.switch import state
from firebreak.switch.state import OWNERS, SCOPES, TEXT_CHARACTERS, State, is_held_by, is_owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """Switch a scope off, until `until_us` on the server's clock; None: until it is reset."""

    what: ClassVar[str] = "trip"
    scope: str
    owner: str
    reason: str
    by: str
    until_us: int | None = None

    def __post_init__(self) -> None:
        _check(self.owner, self.scope, self.until_us)

    def on(self, before: State, at_us: int) -> State:
        trip = state.ActiveTrip(scope=self.scope, owner=self.owner, **_signed(self, at_us))
        others = (t for t in before.trips if (t.scope, t.owner) != (self.scope, self.owner))
        return replace(before, trips=(*others, trip))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """Take an owner's trip of a scope back; scope None: those of all scopes, owner None: those of all owners.

    The owner `budget` is every budget; so it is of `Loosen`.
    """

    what: ClassVar[str] = "reset"
    scope: str | None
    owner: str | None
    reason: str
    by: str

    def __post_init__(self) -> None:
        _check(self.owner, self.scope)

    def on(self, before: State, _at_us: int) -> State:
        left = (t for t in before.trips if self.scope not in {None, t.scope} or not is_held_by(t.owner, self.owner))
        return replace(before, trips=tuple(left))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tighten:
    """Leave only `percent`, 1 to 100, of all daily limits, until `until_us`; None: until it is loosened."""

    what: ClassVar[str] = "tighten"
    owner: str
    percent: int
    reason: str
    by: str
    until_us: int | None = None

    def __post_init__(self) -> None:
        _check(self.owner, None, self.until_us)
        if not 1 <= self.percent <= 100:
            raise ValueError(f"percent must be between 1 and 100, not {self.percent}")

    def on(self, before: State, at_us: int) -> State:
        tightening = state.Tightening(owner=self.owner, percent=self.percent, **_signed(self, at_us))
        return replace(before, tightened=(*(t for t in before.tightened if t.owner != self.owner), tightening))


@dataclass(frozen=True, slots=True, kw_only=True)
class Loosen:
    """Take an owner's tightening back."""

    what: ClassVar[str] = "loosen"
    owner: str
    reason: str
    by: str

    def __post_init__(self) -> None:
        _check(self.owner)

    def on(self, before: State, _at_us: int) -> State:
        return replace(before, tightened=tuple(t for t in before.tightened if not is_held_by(t.owner, self.owner)))


type Change = Trip | Reset | Tighten | Loosen


def _signed(change: Trip | Tighten, at_us: int) -> dict[str, Any]:
    return {
        "reason": change.reason[:TEXT_CHARACTERS],
        "by": change.by[:TEXT_CHARACTERS],
        "at_us": at_us,
        "until_us": change.until_us,
    }


def _check(owner: str | None, scope: str | None = None, until_us: int | None = None) -> None:
    """Refuse what the switch's readers would call corrupt."""
    if owner is not None and not is_owner(owner):
        raise ValueError(f"owner must be one of {', '.join(OWNERS)} or budget:ID, not {owner!r}")
    if scope not in {None, *SCOPES}:
        raise ValueError(f"scope must be one of {', '.join(SCOPES)}, not {scope!r}")
    if until_us is not None and until_us < 0:
        raise ValueError(f"until_us must not be negative, not {until_us}")
