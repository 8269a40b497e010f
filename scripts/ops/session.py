"""One command at work: which project, through which client, what it prints where, and what its errors mean."""

import getpass
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from typing import Any, TextIO

import typer
from google.cloud import firestore
from rich.console import Console, RenderableType
from rich.text import Text

from firebreak.metering.client import Metered
from firebreak.metering.meter import Meters, unmetered
from scripts.ops.failure import STORE, NotDone, told
from scripts.ops.target import Target, WrongTarget, target
from scripts.ops.text import stamp

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """What is kept of each change beside what it changed."""

    reason: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a command works with: data goes to `out`, all else to stderr."""

    target: Target
    client: firestore.Client
    as_json: bool
    out: TextIO
    console: Console = field(default_factory=lambda: Console(stderr=True, highlight=False))

    def say(self, text: str, style: str = "") -> None:
        """One line to the operator."""
        self.console.print(Text(text, style=style), soft_wrap=True)

    def show(self, data: Mapping[str, Any], *tables: RenderableType) -> None:
        """The result: its data for a program, or its tables for a person."""
        if self.as_json:
            self.out.write(json.dumps(data, indent=2, default=stamp) + "\n")
            return
        console = Console(file=self.out, highlight=False)
        for table in tables:
            console.print(table)

    def agree(self, what: str, *, yes: bool) -> None:
        """Ask before a change to production.

        Raises:
            NotDone: the answer was no.
            typer.BadParameter: there is nobody to ask.
        """
        if yes or self.target.emulator:
            return
        if not sys.stdin.isatty():
            raise typer.BadParameter("a change to production asks first: run it in a terminal, or add --yes")
        if not typer.confirm(f"{what} in {self.target}?", default=False, err=True):
            raise NotDone("nothing was changed")


def why(reason: str, by: str | None) -> Why:
    """Reason and author of a change.

    Raises:
        NotDone: nobody knows who asks.
    """
    try:
        return Why(reason=reason, by=by or getpass.getuser())
    except (OSError, KeyError) as error:
        raise NotDone("this machine does not know its user: say who, with --by") from error


@contextmanager
def session(project: str, *, as_json: bool) -> Iterator[Session]:
    """A command's whole work; what it could not do ends it with one line and an exit status.

    Raises:
        typer.Exit: it was not done (1), was meant for another target (2) or interrupted (130).
    """
    console = Console(stderr=True, highlight=False)
    # The product logs its events to stdout, which is for the data here.
    out = sys.stdout
    with redirect_stdout(sys.stderr):
        try:
            named = target(project, os.environ)
            console.print(Text(str(named), style="bold"), soft_wrap=True)
            with _counted(console):
                client = Metered(project=project)
                yield Session(target=named, client=client, as_json=as_json, out=out, console=console)
        except WrongTarget as error:
            raise _ended(console, str(error), WRONG_USE) from error
        except NotDone as error:
            raise _ended(console, str(error), FAILED) from error
        except STORE as error:
            raise _ended(console, told(error, named), FAILED) from error
        except KeyboardInterrupt as error:
            raise _ended(console, "interrupted; what was done stays done", INTERRUPTED) from error


@contextmanager
def _counted(console: Console) -> Iterator[None]:
    with unmetered("an operator's own command") as meters:
        try:
            yield
        except STORE:
            # What was asked was not answered: nobody knows what of it was billed.
            raise
        except BaseException:
            _tell(console, meters)
            raise
        _tell(console, meters)


def _tell(console: Console, meters: Meters) -> None:
    console.print(Text(f"read {meters.reads.used:,}, wrote {meters.writes.used:,}", style="dim"))


def _ended(console: Console, message: str, status: int) -> typer.Exit:
    console.print(Text(message, style="red"), soft_wrap=True)
    return typer.Exit(status)
