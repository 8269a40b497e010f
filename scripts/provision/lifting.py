"""Lifts a cap, and arms it again, by its name on record; in a hurry, so little else is looked at."""

from dataclasses import dataclass
from functools import partial

from scripts.provision import caps
from scripts.provision.budget import Budget, State
from scripts.provision.config import Config
from scripts.provision.desired import CapWanted, Wanted
from scripts.provision.failure import Failed
from scripts.provision.money import Money
from scripts.provision.plan_caps import is_cap_of
from scripts.provision.seen import Entry, Intent
from scripts.provision.services import CAPPED, known
from scripts.provision.session import Session
from scripts.provision.step import Kind

_LOOKS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A cap, what is on record of its service, and whether somebody else made it."""

    name: str
    entry: Entry | None
    adopted: bool


def find(at: Session, key: str) -> Found:
    """The cap of a service: the one on record if it still is one, else one that the lists show.

    Raises:
        Failed: there is no such cap.
    """
    try:
        known(key, CAPPED)
    except ValueError as error:
        raise Failed(f"{key} {error}") from error
    entry = _on_record(at, key)
    if entry is not None and entry.name:
        budget = at.edges.budgets.get(entry.name)
        if budget is not None and budget.cap is not None:
            return Found(name=entry.name, entry=entry, adopted=entry.adopted)
        at.edges.say(f"{entry.name} is not there, or no cap any more; looking for one in lists")
    _, wanted = at.survey()
    for cap in (cap for cap in wanted.caps if cap.key == key):
        for budget in _caps(at, cap, wanted):
            return Found(name=budget.name, entry=entry, adopted=budget.display_name != cap.display_name)
    raise Failed(f"there is no cap {key} on record, and none in {at.edges.budgets.patience.looks} lists; run `plan`")


def _on_record(at: Session, key: str) -> Entry | None:
    """None too while Firestore is away: a paused service cannot wait for it."""
    try:
        return at.edges.record.read().caps.get(key)
    except Failed as error:
        at.edges.say(f"{error}; looking for the cap in lists")
        return None


def _caps(at: Session, cap: CapWanted, wanted: Wanted) -> list[Budget]:
    is_it = partial(is_cap_of, cap, wanted)
    return list(filter(is_it, at.edges.budgets.look((), lambda seen: any(map(is_it, seen)))))


def lift(at: Session, key: str) -> Budget:
    """Ask that the service goes on, and wait a little until it does.

    Raises:
        Failed: the cap is not enforced, or Google did not take it.
    """
    name = find(at, key).name
    at.edges.say(f"lifting {key}")
    found = caps.lift(at.edges.budgets, name)
    for _ in range(_LOOKS):
        if found.cap and found.cap.state is State.LIFTED:
            break
        at.edges.say(f"{key} is to be lifted; Google says that this may take an hour")
        at.api.clock.sleep(at.edges.budgets.patience.between_s)
        found = at.edges.budgets.get(name) or found
    return found


def rearm(at: Session, key: str, amount: Money | None) -> Budget:
    """Arm a lifted cap at a higher amount: the file's, or another one.

    Raises:
        Failed: it is not lifted, the amount is not higher, or Google did not take it.
    """
    cap = find(at, key)
    asked = amount or wanted_amount(at.config, key)
    at.edges.say(f"arming {key} at {asked}")
    found = caps.rearm(at.edges.budgets, cap.name, asked)
    if cap.entry is not None:
        fields = {"name": found.name, "displayName": found.display_name, "adopted": cap.adopted}
        fields |= {"amount": asked.amount, "currency": asked.currency}
        at.edges.record.write(Kind.CAP, key, Intent.KEEP, fields, was=cap.entry)
    return found


def wanted_amount(config: Config, key: str) -> Money:
    """The file's.

    Raises:
        Failed: it has none.
    """
    if key not in config.caps:
        raise Failed(f"caps.{key} is not in the file; name an amount with --amount")
    return config.caps[key]
