"""What is to be done about the alerts-only budgets: pure."""

from collections.abc import Iterator

from scripts.provision.budget import CURRENT, Budget, Filter, percent
from scripts.provision.desired import AlertWanted, Wanted
from scripts.provision.seen import Entry, Intent, Seen
from scripts.provision.step import Kind, Step, Verb


def alerts(wanted: Wanted, seen: Seen) -> Iterator[Step]:
    """The steps for each alert budget that the file names, and for what is on record beside them."""
    for alert in wanted.alerts:
        yield from _alert(alert, wanted, seen)
    for key in sorted(seen.alerts.keys() - {alert.key for alert in wanted.alerts}):
        text = f"on record, but not in the file; `destroy budgets.{key}` would delete it"
        yield Step(verb=Verb.LEAVE, kind=Kind.BUDGET, key=key, text=text, name=seen.alerts[key].name)


def _alert(alert: AlertWanted, wanted: Wanted, seen: Seen) -> Iterator[Step]:
    entry = seen.alerts.get(alert.key)
    named = [budget for budget in seen.budgets if is_alert_of(alert, wanted, budget)]
    on_record = [budget for budget in seen.budgets if entry is not None and budget.name == entry.name]
    if any(budget.cap is not None for budget in on_record):
        yield _step(Verb.REFUSE, alert, "the budget on record has become a spend cap; delete one of the two by hand")
    elif on_record or len(named) == 1:
        yield _existing(alert, wanted, entry, (on_record or named)[0])
    elif named:
        names = ", ".join(sorted(budget.name for budget in named))
        yield _step(Verb.REFUSE, alert, f"there are {len(named)} of them: {names}; delete all but one")
    else:
        again = "; an earlier run may have asked for it: looks again first" if entry and entry.is_open else ""
        yield _step(Verb.CREATE, alert, f"{_words(alert)}{again}")
    for budget in named if on_record else ():
        if budget not in on_record:
            yield _step(
                Verb.LEAVE, alert, f"another budget of this name: {budget.name}; delete it by hand", budget.name
            )


def is_alert_of(alert: AlertWanted, wanted: Wanted, budget: Budget) -> bool:
    """Whether this budget is the one that we would have made."""
    ours = budget.cap is None and budget.display_name == alert.display_name
    return ours and budget.filter.is_of(wanted.project_names)


def _existing(alert: AlertWanted, wanted: Wanted, entry: Entry | None, budget: Budget) -> Step:
    changes = dict(_changes(alert, wanted, budget))
    if changes:
        return _step(Verb.CHANGE, alert, "; ".join(changes.values()), budget.name, tuple(changes))
    if entry is None or entry.name != budget.name or entry.intent is not Intent.KEEP:
        return _step(Verb.ADOPT, alert, f"{_words(alert)}; from now on it is on record", budget.name)
    return _step(Verb.KEEP, alert, _words(alert), budget.name)


def _changes(alert: AlertWanted, wanted: Wanted, budget: Budget) -> Iterator[tuple[str, str]]:
    """Each field that differs, as the update mask names it, and how."""
    if budget.amount != alert.amount:
        yield "amount", f"{budget.amount} → {alert.amount} a month"
    if not _same(budget.filter, alert.filter, wanted.project_names):
        yield "budget_filter", "tracks what the file says"
    if budget.thresholds != alert.thresholds:
        yield "threshold_rules", f"thresholds {_parts(budget)} → {_parts(alert)}"
    if budget.topic != alert.topic:
        yield "notifications_rule.pubsub_topic", f"topic {budget.topic or 'none'} → {alert.topic}"


def _same(found: Filter, asked: Filter, project_names: frozenset[str]) -> bool:
    rest = (found.services, found.credits, found.period) == (asked.services, asked.credits, asked.period)
    return found.is_of(project_names) and rest and not found.narrowed


def _words(alert: AlertWanted) -> str:
    return f"{alert.amount} a month, at {_parts(alert)}, to {alert.topic.rpartition('/')[2]}"


def _parts(budget: Budget | AlertWanted) -> str:
    parts = sorted(budget.thresholds, key=lambda threshold: (threshold[1], threshold[0]))
    return ", ".join(f"{percent(part)}{'' if basis == CURRENT else ' forecast'}" for part, basis in parts) or "none"


def _step(verb: Verb, alert: AlertWanted, text: str, name: str | None = None, mask: tuple[str, ...] = ()) -> Step:
    return Step(verb=verb, kind=Kind.BUDGET, key=alert.key, text=text, name=name, mask=mask)
