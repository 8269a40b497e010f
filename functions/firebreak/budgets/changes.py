"""A policy's action as a change of the switch, with the budget as its owner, until the end of the period."""

from dataclasses import replace

from firebreak.budgets.policies import Policy, Tighten, Trip
from firebreak.budgets.standing import Standing
from firebreak.switch import edit
from firebreak.switch.state import State

# Clients see this; what it was exactly is in `by`.
REASON = "The app's budget for this period is used up."


class _Trip(edit.Trip):
    """A trip that does not cut short one that this budget made before."""

    __slots__ = ()

    def on(self, before: State, at_us: int) -> State:
        held = [t.until_us for t in before.trips if (t.scope, t.owner) == (self.scope, self.owner)]
        return edit.Trip.on(replace(self, until_us=_last(self.until_us, held)), before, at_us)


class _Tighten(edit.Tighten):
    """A tightening that does not loosen one that this budget made before: a forecast may have come first."""

    __slots__ = ()

    def on(self, before: State, at_us: int) -> State:
        held = [t for t in before.tightened if t.owner == self.owner]
        percent = min([self.percent, *(t.percent for t in held)])
        until_us = _last(self.until_us, [t.until_us for t in held])
        return edit.Tighten.on(replace(self, percent=percent, until_us=until_us), before, at_us)


def changes(policies: tuple[Policy, ...], standing: Standing) -> list[edit.Change]:
    """The changes that these policies ask for, in order; one that only records asks for none."""
    found = (_change(policy, standing) for policy in policies)
    return [change for change in found if change is not None]


def _change(policy: Policy, standing: Standing) -> edit.Change | None:
    action, until_us = policy.action, standing.period.end_us
    owner, by = f"budget:{standing.budget}", f"budget {standing.budget}, {policy.threshold}"
    if isinstance(action, Trip):
        return _Trip(scope=action.scope, owner=owner, reason=REASON, by=by, until_us=until_us)
    if isinstance(action, Tighten):
        return _Tighten(owner=owner, percent=action.percent, reason=REASON, by=by, until_us=until_us)
    return None


def _last(until_us: int | None, held: list[int | None]) -> int | None:
    """The later end; None is no end."""
    return None if until_us is None or None in held else max([until_us, *(end for end in held if end is not None)])
