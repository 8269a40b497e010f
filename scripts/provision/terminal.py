"""What a command prints and asks: a person's text or a program's JSON on stdout, progress on stderr."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from scripts.local.progress import Say, telling
from scripts.provision.failure import Failed


class Terminal:
    """One command's; `person` is where text for people goes: nowhere they would disturb a program."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.person = Console(highlight=False, quiet=as_json)
        self._progress = Console(stderr=True, highlight=False)
        self._say: Say | None = None

    def say(self, text: str) -> None:
        """What is being done now; shown while `busy`."""
        if self._say:
            self._say(text)

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Show what is being done."""
        with telling(self._progress) as say:
            self._say = say
            try:
                yield
            finally:
                self._say = None

    def target(self, words: str) -> None:
        """First of all: what this is about to look at or change."""
        self._progress.print(Text(words, "bold"), soft_wrap=True)

    def fail(self, faults: list[str], **data: object) -> None:
        """Say why it was not done."""
        for fault in faults:
            self._progress.print(Text(fault, "red"), soft_wrap=True)
        self.answer({**data, "errors": faults})

    def answer(self, data: Mapping[str, Any]) -> None:
        """The result for a program, if one asked."""
        if self.as_json:
            typer.echo(json.dumps(data, indent=2, default=str))

    def agree(self, question: str, *, yes: bool) -> None:
        """Ask before a change.

        Raises:
            Failed: nobody agreed.
        """
        if yes:
            return
        if not sys.stdin.isatty():
            raise Failed("this changes things, and asks first: run it in a terminal, or add --yes")
        if not typer.confirm(question, default=False, err=True):
            raise Failed("nothing was changed")
