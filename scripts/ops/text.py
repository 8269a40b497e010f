"""Times and tables as a person reads them, times as programs do."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from rich.table import Table
from rich.text import Text

from firebreak.store.times import SECOND_US, from_us
from scripts.ops import duration


def stamp(time: object) -> str | None:
    """A time, or microseconds since the epoch, as RFC 3339 to the second; of anything else what it prints."""
    if isinstance(time, int):
        time = from_us(time)
    if isinstance(time, datetime):
        return f"{time:%Y-%m-%dT%H:%M:%SZ}"
    return None if time is None else str(time)


def ago(then_us: int, now_us: int) -> str:
    """How long ago, in words."""
    return duration.words(max(0, now_us - then_us) // SECOND_US)


def table(title: str, columns: str, rows: Iterable[Iterable[object]]) -> Table:
    """A table; a column whose name ends in `>` is of numbers."""
    drawn = Table(title=Text(title), title_justify="left", title_style="bold")
    for name in columns.split(","):
        drawn.add_column(name.strip(" >"), justify="right" if ">" in name else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*(_cell(value) for value in row))
    return drawn


def lines(title: str, rows: Iterable[tuple[str, object]]) -> Table:
    """Names and what they have, without a frame."""
    drawn = Table.grid(padding=(0, 2))
    drawn.title, drawn.title_justify, drawn.title_style = Text(title), "left", "bold"
    for name, value in rows:
        drawn.add_row(Text(name, style="dim"), _cell(value))
    return drawn


def _cell(value: object) -> Text:
    """A value; what would steer a terminal, as a uid of custom sign-in may hold, is not shown."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Text(f"{value:,}")
    if isinstance(value, Mapping):
        return Text(", ".join(f"{name} {_cell(each)}" for name, each in value.items()))
    return Text("".join(c if c.isprintable() else "?" for c in stamp(value) or "none"))
