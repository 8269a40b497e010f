"""What is to be done to take away what this tool made, and nothing else: pure."""

from collections.abc import Collection, Iterator

from scripts.provision.budget import Budget, State
from scripts.provision.desired import CapWanted, Wanted
from scripts.provision.plan_alerts import is_alert_of
from scripts.provision.plan_caps import AFTER_LIFT, is_alert_for, is_cap_of
from scripts.provision.seen import Entry, Seen
from scripts.provision.step import Kind, Step, Verb

WORDS = {Kind.CAP: "caps", Kind.BUDGET: "budgets"}


def destroy(wanted: Wanted, seen: Seen, only: Collection[str], *, settle_s: float) -> tuple[Step, ...]:
    """The steps for all caps and alert budgets of ours, or for those named as `caps.gemini`.

    Args:
        wanted: what the file wants; by it, what is ours is known even if it is not on record.
        seen: what exists.
        only: paths; none means all.
        settle_s: how old an unanswered creation must be to be given up.
    """
    entries: dict[tuple[Kind, str], Entry | None] = {(Kind.CAP, cap.key): None for cap in wanted.caps}
    entries |= {(Kind.BUDGET, alert.key): None for alert in wanted.alerts}
    entries |= {(Kind.CAP, key): entry for key, entry in seen.caps.items()}
    entries |= {(Kind.BUDGET, key): entry for key, entry in seen.alerts.items()}
    steps = [
        step
        for (kind, key), entry in sorted(entries.items())
        if not only or f"{WORDS[kind]}.{key}" in only
        for step in _of(kind, key, entry, wanted, seen, settle_s)
    ]
    known = {f"{WORDS[kind]}.{key}" for kind, key in entries}
    unknown = [path for path in only if path not in known]
    return (*steps, *(_unknown(path, sorted(known)) for path in unknown))


def _of(kind: Kind, key: str, entry: Entry | None, wanted: Wanted, seen: Seen, settle_s: float) -> Iterator[Step]:
    found = [budget for budget in seen.budgets if _is_ours(kind, key, entry, wanted, budget)]
    if entry is not None and entry.adopted:
        text = "made elsewhere, so it stays; delete it in the console (Billing, Budgets & alerts)"
        yield Step(verb=Verb.LEAVE, kind=kind, key=key, text=text, name=entry.name)
    elif any(budget.cap is not None and budget.cap.state is State.ENFORCED for budget in found):
        text = f"it is enforced, and then only its state can be changed: `lift {key}` first; {AFTER_LIFT}"
        yield Step(verb=Verb.REFUSE, kind=kind, key=key, text=text, name=found[0].name)
    elif found:
        for budget in found:
            text = f"{budget.amount} a month; from then on nothing bounds it"
            yield Step(verb=Verb.DELETE, kind=kind, key=key, text=text, name=budget.name)
    elif entry is not None and entry.is_open and entry.age_s < settle_s:
        age = f"{entry.age_s:.0f} s ago"
        text = f"an earlier run asked for it {age}, and it may still be made; try again in {settle_s:.0f} s"
        yield Step(verb=Verb.REFUSE, kind=kind, key=key, text=text)
    elif entry is not None:
        text = "is not there any more; it is taken off the record"
        yield Step(verb=Verb.DELETE, kind=kind, key=key, text=text, name=entry.name)


def _is_ours(kind: Kind, key: str, entry: Entry | None, wanted: Wanted, budget: Budget) -> bool:
    """Whether we made it: the one on record, or one that has our name and tracks what ours does."""
    if entry is not None and entry.name:
        return budget.name == entry.name
    if entry is not None and entry.display_name:
        return budget.display_name == entry.display_name and _tracks(budget, wanted, entry.service)
    if kind is Kind.CAP:
        caps = [cap for cap in wanted.caps if cap.key == key]
        return any(_is_made_as(cap, wanted, budget) for cap in caps)
    alerts = [alert for alert in wanted.alerts if alert.key == key]
    return any(
        is_alert_of(alert, wanted, budget) and budget.filter.services == alert.filter.services for alert in alerts
    )


def _is_made_as(cap: CapWanted, wanted: Wanted, budget: Budget) -> bool:
    ours = is_cap_of(cap, wanted, budget) and budget.display_name == cap.display_name
    return ours or is_alert_for(cap, wanted, budget)


def _tracks(budget: Budget, wanted: Wanted, service: str | None) -> bool:
    services = frozenset({service} if service else ())
    return budget.filter.is_of(wanted.project_names) and budget.filter.services == services


def _unknown(path: str, known: list[str]) -> Step:
    text = f"there is no such cap or budget; there are {', '.join(known) or 'none'}"
    return Step(verb=Verb.REFUSE, kind=Kind.PART, key=path, text=text)
