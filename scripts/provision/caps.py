"""Spend caps over REST v1: created, changed, lifted, armed again; after each step the answer must still hold a cap."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scripts.provision.budget import Budget, Cap, State
from scripts.provision.budgets import Budgets
from scripts.provision.desired import CapWanted
from scripts.provision.failure import Failed, NoAnswer, Refusal
from scripts.provision.money import Money
from scripts.provision.plan_caps import AFTER_LIFT

_TRIES = 6
_STATE_MASK = "spendCap.inputState"
_UNIT = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What is asked of a cap.

    Attributes:
        state: the input state to send.
        done: whether a cap is as asked for.
        refuse: why a cap in this state may not be asked so; None if it may.
        amount: the new amount; None leaves it.
    """

    state: State
    done: Callable[[Budget, Cap], bool]
    refuse: Callable[[Budget, Cap], str | None]
    amount: Money | None = None

    @property
    def mask(self) -> str:
        """A mask without the state is refused for a cap."""
        return _STATE_MASK if self.amount is None else f"amount,{_STATE_MASK}"

    @property
    def fields(self) -> dict[str, Any]:
        amount = {} if self.amount is None else {"amount": {"specifiedAmount": self.amount.wire()}}
        return amount | {"spendCap": {"inputState": self.state.value}}


def create(budgets: Budgets, cap: CapWanted) -> Budget:
    """Send the one request that makes it; raises as `Api.send`."""
    return Budget.of(budgets.api.send("POST", budgets.collection, cap.body()))


def change(budgets: Budgets, name: str, amount: Money) -> Budget:
    """Give a cap that stands ready another amount.

    Raises:
        Failed: its state does not allow it, or Google did not take it.
    """

    def refuse(_budget: Budget, cap: Cap) -> str | None:
        match cap.state:
            case State.CONFIGURED:
                return None
            case State.ENFORCED:
                return f"it is enforced, and then only its state can be changed: `lift` it first; {AFTER_LIFT}"
            case _:
                return f"it is {cap.state}: `rearm` it"

    update = Update(state=State.CONFIGURED, amount=amount, done=lambda found, _: found.amount == amount, refuse=refuse)
    return _update(budgets, name, update)


def lift(budgets: Budgets, name: str) -> Budget:
    """Let the service of an enforced cap go on; raises as `change`."""

    def refuse(_budget: Budget, cap: Cap) -> str | None:
        moving = ", and about to change" if cap.reconciling else ""
        return None if cap.state is State.ENFORCED else f"it is {cap.state}{moving}: there is nothing to lift"

    return _update(budgets, name, Update(state=State.LIFTED, done=_is_lifted, refuse=refuse))


def _is_lifted(_budget: Budget, cap: Cap) -> bool:
    """The state last asked for may be that of an earlier month: alone it says nothing."""
    moving = cap.state is State.ENFORCED and cap.asked is State.LIFTED and cap.reconciling
    return moving or cap.state is State.LIFTED


def rearm(budgets: Budgets, name: str, amount: Money) -> Budget:
    """Arm a lifted cap at a higher amount before the month ends; raises as `change`."""

    def refuse(found: Budget, cap: Cap) -> str | None:
        if cap.state is State.ENFORCED:
            return f"it is enforced: `lift` it first; {AFTER_LIFT}"
        if cap.state is not State.LIFTED:
            return f"it is {cap.state}, not lifted: the file and `apply` change its amount"
        if found.amount is None or found.amount.currency != amount.currency or amount.nanos <= found.amount.nanos:
            return f"a lifted cap trips again this month only above its amount, {found.amount}; {amount} is not"
        return None

    def done(found: Budget, cap: Cap) -> bool:
        moving = cap.state is State.LIFTED and cap.asked is State.CONFIGURED and cap.reconciling
        return found.amount == amount and (moving or cap.state is State.CONFIGURED)

    return _update(budgets, name, Update(state=State.CONFIGURED, amount=amount, done=done, refuse=refuse))


def _update(budgets: Budgets, name: str, update: Update) -> Budget:
    """Ask, look, and ask again with a fresh etag, until a read shows it done: asking twice for the same is harmless."""
    unseen = Failed(f"{name}: Google takes the change, and reads do not show it; run `status` later")
    masked, sent, last = True, False, unseen
    for number in range(_TRIES):
        if number:
            budgets.api.clock.sleep(budgets.patience.between_s)
        wire = budgets.fetch(name)
        if wire is None:
            raise Failed(f"{name} is not there, after {budgets.patience.gets} reads; run `plan`")
        found = Budget.of(wire)
        cap = _still_a_cap(found)
        if update.done(found, cap):
            return found
        # Once sent, the new amount may be there before the new state: then one waits, and does not refuse it.
        ours = sent and cap.state is State.LIFTED and found.amount == update.amount
        if not ours and (why := update.refuse(found, cap)):
            raise Failed(f"{found.display_name}: {why}")
        try:
            _still_a_cap(Budget.of(_send(budgets, wire, update, masked=masked)))
        except NoAnswer as error:
            sent, last = True, error
        except Refusal as error:
            last, masked = error, _go_on(error, found, update, masked=masked)
        else:
            sent, last = True, unseen
    raise last


def _go_on(error: Refusal, found: Budget, update: Update, *, masked: bool) -> bool:
    """Whether the next try is masked.

    Known names answer 404 at times, and FAILED_PRECONDITION may be no more than an old etag: the next look tells.
    INVALID_ARGUMENT for a mask has been reported; then the whole budget goes without one, unless that could set
    another amount.

    Raises:
        Failed: trying again would be no use, or wrong.
    """
    if error.status == 404 or error.code == "FAILED_PRECONDITION":
        return masked
    if not masked or error.status != 400:
        raise error
    if update.amount is not None and _may_lose(found.amount, update.amount):
        raise Failed(
            f"{error}. Without its mask, Google could take {found.amount} → {update.amount} for another amount: "
            "set the amount in the console, then run `plan`"
        ) from error
    return False


def _may_lose(before: Money | None, after: Money) -> bool:
    """Whether an update without a mask, which sets nothing to 0, could keep the units or the fraction of before."""
    if before is None:
        return True
    return any(
        old and not new for old, new in zip(divmod(before.nanos, _UNIT), divmod(after.nanos, _UNIT), strict=True)
    )


def _send(budgets: Budgets, wire: Mapping[str, Any], update: Update, *, masked: bool) -> dict[str, Any]:
    etag = {"etag": wire["etag"]} if wire.get("etag") else {}
    url = budgets.url(wire["name"])
    if masked:
        return budgets.api.send("PATCH", url, etag | update.fields, params={"updateMask": update.mask})
    whole = {name: value for name, value in wire.items() if name != "name"}
    return budgets.api.send("PATCH", url, whole | update.fields | {"ownershipScope": "ALL_USERS"})


def _still_a_cap(found: Budget) -> Cap:
    if found.cap is None:
        raise Failed(
            f"{found.name} ({found.display_name}) is no spend cap any more: it stops nothing. "
            "Run `apply`: it puts a cap in its place, after asking you"
        )
    return found.cap
