"""The options that commands share."""

from pathlib import Path
from typing import Annotated

import typer

from scripts.provision.money import Money
from scripts.provision.seen import Part

FILE = Path("firebreak.toml")


def _money(text: str | Money) -> Money:
    if isinstance(text, Money):
        return text
    try:
        return Money.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


File = Annotated[Path, typer.Option("--file", help="What is wanted; firebreak.toml.example explains it.")]
Only = Annotated[list[Part] | None, typer.Option("--only", help="Only this part; may be given several times.")]
Local = Annotated[bool, typer.Option("--local", help="The stand-ins of `make serve`, for a demo- project.")]
AsJson = Annotated[bool, typer.Option("--json", help="The result as JSON on stdout; all else goes to stderr.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before a change.")]
Cap = Annotated[str, typer.Argument(metavar="CAP", help="gemini, agent-platform, run or functions.")]
Paths = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]…", help="Such as caps.gemini or budgets.firestore; without: all.")
]
Amount = Annotated[
    Money | None,
    typer.Option("--amount", parser=_money, metavar="AMOUNT", help='Such as "60.00 USD"; without: the file\'s.'),
]


def parts(only: list[Part] | None) -> frozenset[Part]:
    """What is asked for; without a word, everything."""
    return frozenset(only or Part)
