"""What is to be done about the spend caps: pure."""

from collections.abc import Iterator

from scripts.provision.budget import Budget, State
from scripts.provision.desired import CapWanted, Wanted
from scripts.provision.seen import Entry, Intent, Seen
from scripts.provision.step import Kind, Step, Verb

AFTER_LIFT = "lifting may take an hour, and a lifted cap does not trip again this month unless its amount is raised"


def caps(wanted: Wanted, seen: Seen) -> Iterator[Step]:
    """The steps for each cap that the file names, and for what is on record beside them."""
    for cap in wanted.caps:
        yield from _cap(cap, wanted, seen)
    for key in sorted(seen.caps.keys() - {cap.key for cap in wanted.caps}):
        yield _leave(key, seen.caps[key])


def _cap(cap: CapWanted, wanted: Wanted, seen: Seen) -> Iterator[Step]:
    entry = seen.caps.get(cap.key)
    found = [budget for budget in seen.budgets if is_cap_of(cap, wanted, budget)]
    alerts = [budget for budget in seen.budgets if _should_be(cap, wanted, entry, budget)]
    for budget in alerts:
        yield _step(Verb.DELETE, cap, f"{budget.name} is a plain alert where a cap should be", budget.name)
    if len(found) > 1:
        names = ", ".join(sorted(budget.name for budget in found))
        yield _step(Verb.REFUSE, cap, f"there are {len(found)} caps of this service: {names}; delete all but one")
    elif found:
        yield _existing(cap, entry, found[0])
    elif entry and entry.is_open:
        yield _step(Verb.CREATE, cap, f"{cap.amount} a month; an earlier run may have asked for it: looks again first")
    else:
        yield _step(Verb.CREATE, cap, f"{cap.amount} a month")


def is_cap_of(cap: CapWanted, wanted: Wanted, budget: Budget) -> bool:
    """Whether this budget is the spend cap of that service in this project, whoever made it."""
    return (
        budget.cap is not None
        and budget.filter.services == {f"services/{cap.service}"}
        and budget.filter.is_of(wanted.project_names)
    )


def is_alert_for(cap: CapWanted, wanted: Wanted, budget: Budget) -> bool:
    """Whether this is what a service without caps would make of ours: an alert of its name that tracks the same."""
    ours = budget.cap is None and budget.display_name == cap.display_name
    return ours and budget.filter.services == {f"services/{cap.service}"} and budget.filter.is_of(wanted.project_names)


def _should_be(cap: CapWanted, wanted: Wanted, entry: Entry | None, budget: Budget) -> bool:
    """Whether an alert stands where our cap should: one such as we would have got, or the one on record as ours."""
    ours = entry is not None and not entry.adopted and entry.name == budget.name
    return (ours and budget.cap is None) or is_alert_for(cap, wanted, budget)


def _existing(cap: CapWanted, entry: Entry | None, budget: Budget) -> Step:
    state = budget.cap.state if budget.cap else State.UNKNOWN
    if budget.amount != cap.amount:
        return _other_amount(cap, budget, state)
    if entry is None or entry.name != budget.name or entry.intent is not Intent.KEEP:
        made = "an earlier run of this tool made it" if budget.display_name == cap.display_name else "made elsewhere"
        return _step(Verb.ADOPT, cap, f"{cap.amount} a month, {made}; from now on it is on record", budget.name)
    return _step(Verb.KEEP, cap, f"{cap.amount} a month{_STATES[state]}", budget.name)


def _other_amount(cap: CapWanted, budget: Budget, state: State) -> Step:
    change = f"{budget.amount} → {cap.amount} a month"
    match state:
        case State.CONFIGURED:
            return _step(Verb.CHANGE, cap, change, budget.name)
        case State.ENFORCED:
            why = f"it is enforced, and then only its state can be changed: `lift {cap.key}` first; {AFTER_LIFT}"
        case State.LIFTED:
            why = (
                f"it is lifted until the month ends: `rearm {cap.key} --amount …` arms it at a higher amount, or name "
                f"{budget.amount} in the file until then"
            )
        case State.UNKNOWN:
            why = "its state is unknown; look at it in the console"
    return _step(Verb.REFUSE, cap, f"{change}: {why}", budget.name)


_STATES = {
    State.CONFIGURED: "",
    State.ENFORCED: " — ENFORCED: the service is paused",
    State.LIFTED: " — lifted until the month ends: it stops nothing",
    State.UNKNOWN: " — in an unknown state",
}


def _leave(key: str, entry: Entry) -> Step:
    text = f"on record, but not in the file; `destroy caps.{key}` would delete it"
    return Step(verb=Verb.LEAVE, kind=Kind.CAP, key=key, text=text, name=entry.name)


def _step(verb: Verb, cap: CapWanted, text: str, name: str | None = None) -> Step:
    return Step(verb=verb, kind=Kind.CAP, key=cap.key, text=text, name=name)
