"""The options that commands share."""

from collections.abc import Callable
from typing import Annotated

import typer

from scripts.ops import duration

MOST_TEXT = 200
MOST_UID = 128


def seconds(text: str | int) -> int:
    """A duration as a number of seconds; a default is one already."""
    if isinstance(text, int):
        return text
    try:
        return duration.seconds(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def one_of(*words: str) -> Callable[[str], str]:
    """One of some words."""

    def parse(text: str) -> str:
        if text not in words:
            raise typer.BadParameter(f"must be one of {', '.join(words)}, not {text!r}")
        return text

    return parse


def _text(text: str) -> str:
    if not 1 <= len(text.strip()) <= MOST_TEXT:
        raise typer.BadParameter(f"must be 1 to {MOST_TEXT} characters")
    return text.strip()


def _uid(text: str) -> str:
    # As it is: a uid of custom sign-in may hold anything.
    if not 1 <= len(text) <= MOST_UID:
        raise typer.BadParameter(f"must be 1 to {MOST_UID} characters")
    return text


Project = Annotated[str, typer.Option("--project", help="The Firebase project id; it is never guessed.")]
AsJson = Annotated[bool, typer.Option("--json", help="The data as JSON on stdout; all else goes to stderr.")]
Reason = Annotated[str, typer.Option("--reason", parser=_text, metavar="TEXT", help="Why; it is kept for a year.")]
ShownReason = Annotated[
    str,
    typer.Option("--reason", parser=_text, metavar="TEXT", help="Why. Refused callers see it; it is kept for a year."),
]
By = Annotated[
    str | None, typer.Option("--by", parser=_text, metavar="NAME", help="Who; else the user of this machine.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before a change to production.")]
For = Annotated[
    int | None,
    typer.Option("--for", parser=seconds, metavar="DURATION", help="As 90s, 30m, 2h, 1d; without it, until a reset."),
]
Uid = Annotated[str, typer.Argument(metavar="UID", parser=_uid, help="The user's uid, as Firebase Auth has it.")]
Tenant = Annotated[
    str | None,
    typer.Option(
        "--tenant", parser=_uid, metavar="ID", help="The user's tenant of Identity Platform, if they have one."
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        min=1,
        metavar="TOKENS",
        help="Tokens a day of this user, where the settings could give several; without it the most they could.",
    ),
]
