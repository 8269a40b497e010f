"""The states of a spend cap, and what moves it from one to another; pure."""

from dataclasses import dataclass, replace
from decimal import Decimal

CONFIGURED, ENFORCED, AWAITING = "CONFIGURED", "ENFORCED", "AWAITING_NEXT_PERIOD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """One cap.

    Attributes:
        wanted: the state its owner asked for last.
        resting: the state it is in.
        heading: the state it is moving to; None at rest.
        views: how many more answers show it moving.
        lifted: the amount at which it was lifted in this period; up to that amount it does not trip again.
    """

    wanted: str = CONFIGURED
    resting: str = CONFIGURED
    heading: str | None = None
    views: int = 0
    lifted: Decimal | None = None

    @property
    def shown(self) -> dict[str, object]:
        """The `spendCap` of an answer."""
        moving = {} if self.heading is None else {"reconciling": True}
        return {"inputState": self.wanted, "outputState": self.resting, **moving}


def spent(cap: Cap, cost: Decimal, amount: Decimal, *, views: int) -> Cap:
    """Trip it if the cost is over the amount, unless it was lifted at this amount or a higher one."""
    spared = cap.lifted is not None and amount <= cap.lifted
    armed = CONFIGURED in {cap.resting, cap.heading} and cap.heading != ENFORCED
    return _move(cap, ENFORCED, views) if armed and cost > amount and not spared else cap


def ask(cap: Cap, state: str | None, amount: Decimal, *, views: int) -> Cap | None:
    """What becomes of it if its owner asks for this state; None if that is not valid now."""
    if state not in {CONFIGURED, AWAITING}:
        return None
    if cap.heading == state:
        return cap
    if cap.resting == AWAITING:
        return _move(replace(cap, wanted=state), state, views) if state == CONFIGURED else None
    if state == CONFIGURED:
        return replace(cap, wanted=state)
    return _lift(cap, amount, views) if cap.resting == ENFORCED else None


def _lift(cap: Cap, amount: Decimal, views: int) -> Cap:
    highest = amount if cap.lifted is None else max(amount, cap.lifted)
    return _move(replace(cap, wanted=AWAITING, lifted=highest), AWAITING, views)


def renew(cap: Cap, *, lifts_enforced: bool) -> Cap:
    """The first day of the next month: a lifted cap is armed again. Of an enforced one the sources say both.

    What its owner asked for last stays, as far as anybody knows: nobody has asked for anything else.
    """
    state = cap.heading or cap.resting
    stays = state == ENFORCED and not lifts_enforced
    return Cap(wanted=cap.wanted, resting=ENFORCED if stays else CONFIGURED)


def viewed(cap: Cap) -> Cap:
    """After one answer that showed it."""
    if cap.heading is None:
        return cap
    return replace(cap, views=cap.views - 1) if cap.views > 1 else _rest(cap, cap.heading)


def _move(cap: Cap, state: str, views: int) -> Cap:
    return replace(cap, heading=state, views=views) if views else _rest(cap, state)


def _rest(cap: Cap, state: str) -> Cap:
    return replace(cap, resting=state, heading=None, views=0)
