"""The end of the story as a person reads it."""

from collections.abc import Iterable, Iterator
from dataclasses import astuple, fields

from rich.console import Console
from rich.table import Table
from rich.text import Text

from scripts.demo.claim import Claim
from scripts.demo.money import CAP_LAG_S, Comparison, assumptions, dollars
from scripts.demo.result import Result, Row
from scripts.demo.stages import StageRow


def show(console: Console, end: Result) -> None:
    """Prints the tables, every claim with its evidence, and the verdict."""
    console.print("\nTokens of each caller, as the bucket's documents have them:")
    console.print(_callers(end.rows))
    console.print(f"\nThis loop of {end.cost.workers} workers, stopped by:")
    console.print(_costs(end.cost))
    for line in assumptions(end.cost):
        console.print(Text(f"  {line}", style="dim"), soft_wrap=True)
    console.print(f"\nA budget of ${end.budget_usd} for Firestore, reported through Pub/Sub:")
    console.print(_stages(end.stages))
    console.print()
    for text in _verdicts(end.claims):
        console.print(text, soft_wrap=True)
    if end.left_out:
        console.print(Text(f"- {end.left_out}", style="yellow"), soft_wrap=True)
    spent = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in end.seconds.items())
    verdict, style = ("every claim held", "bold green") if end.held else ("NOT every claim held", "bold red")
    console.print(Text(f"\n{verdict} ({spent})", style=style), soft_wrap=True)


def _callers(rows: Iterable[Row]) -> Table:
    table = Table()
    for field in fields(Row):
        table.add_column(field.name, justify="left" if field.name == "caller" else "right")
    for row in rows:
        caller, *numbers = astuple(row)
        table.add_row(caller, *(f"{number:,}" for number in numbers))
    return table


def _costs(cost: Comparison) -> Table:
    table = Table()
    for name in ("", "after", "calls", "cost"):
        table.add_column(name, justify="right" if name else "left")
    table.add_column("who else is stopped")
    lag, until_cap, cap_alone = f"{CAP_LAG_S // 60} min", f"{cost.calls_until_cap:,}", dollars(cost.cap_alone_microusd)
    table.add_row("a spend cap alone", lag, until_cap, cap_alone, "every user of the app")
    table.add_row("Firebreak", "its tokens", f"{cost.bucket_calls:,}", dollars(cost.bucket_microusd), "nobody")
    return table


def _stages(rows: Iterable[StageRow]) -> Table:
    table = Table()
    for name in ("", "notices", "edits", "refused", "Gemini", "switch"):
        table.add_column(name, justify="left" if name in {"", "switch"} else "right")
    for row in rows:
        table.add_row(*(str(value) for value in astuple(row)))
    return table


def _verdicts(claims: Iterable[Claim]) -> Iterator[Text]:
    for claim in claims:
        mark, style = ("✓", "green") if claim.held else ("✗", "bold red")
        yield Text.assemble((f"{mark} {claim.text}", style), f"\n    {claim.evidence}")
