"""The status as a person reads it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from rich.console import Console
from rich.table import Table
from rich.text import Text

from scripts.provision.status import AlertStatus, CapStatus

_STYLES = {"CONFIGURED": "green", "ENFORCED": "bold red", "AWAITING_NEXT_PERIOD": "yellow"}
_WORDS = {
    "CONFIGURED": "armed",
    "ENFORCED": "ENFORCED: the service is paused",
    "AWAITING_NEXT_PERIOD": "lifted until the month ends",
}


def show(console: Console, caps: Sequence[CapStatus], alerts: Sequence[AlertStatus]) -> None:
    """Two tables, each only if it has rows."""
    now = datetime.now(UTC)
    if caps:
        table = Table("cap", "state", "amount a month", "on record since", "functions saw it")
        for cap in caps:
            moving = ", and about to change" if cap.reconciling else ""
            state = Text(f"{_WORDS.get(cap.state, cap.state)}{moving}", _STYLES.get(cap.state, "red"))
            key = cap.key if cap.made else f"{cap.key} (made elsewhere)"
            table.add_row(key, state, cap.amount or "", age(cap.since, now), age(cap.seen, now))
        console.print(table)
    if alerts:
        table = Table("alert budget", "spent", "of", "period", "as of", "set off")
        for alert in alerts:
            spent = alert.cost or ("no notice yet" if alert.there else "not there")
            applied = "\n".join(alert.applied)
            table.add_row(alert.key, spent, alert.amount or "", alert.period or "", age(alert.as_of, now), applied)
        console.print(table)


def age(then: datetime | None, now: datetime) -> str:
    """In the largest unit that it fills."""
    if then is None:
        return ""
    passed = max(now - then, timedelta(0))
    for unit, name in ((timedelta(days=1), "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "min")):
        if passed >= unit:
            return f"{passed // unit} {name} ago"
    return f"{passed.seconds} s ago"
