"""Runs one command: its session, its terminal, and what its failures come to."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from scripts.provision.failure import Failed
from scripts.provision.fields import BadFile
from scripts.provision.ground import Unfit
from scripts.provision.hosts import WrongTarget
from scripts.provision.session import Making, Session, connect
from scripts.provision.terminal import Terminal

FAILED, TO_DO, INTERRUPTED = 1, 2, 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One command at work."""

    at: Session
    terminal: Terminal

    @property
    def target(self) -> dict[str, str]:
        config = self.at.config
        return {"project": config.project, "billingAccount": config.billing_account, "where": str(self.at.hosts)}


@contextmanager
def running(making: Making | None, file: Path, *, local: bool, as_json: bool) -> Iterator[Run]:
    """A command's whole work; what it could not do ends it with the reasons and an exit status.

    Raises:
        typer.Exit: it was not done (1) or interrupted (130).
    """
    terminal, making = Terminal(as_json=as_json), making or Making()
    try:
        at = connect(file, local=local, say=terminal.say, making=making)
        run = Run(at=at, terminal=terminal)
        terminal.target(f"project {at.config.project}, billing account {at.config.billing_account}, {at.hosts}; {file}")
        yield run
    except (BadFile, Unfit) as error:
        prefix = f"{file}: " if isinstance(error, BadFile) else ""
        terminal.fail([f"{prefix}{fault}" for fault in error.faults])
        raise typer.Exit(FAILED) from error
    except (Failed, WrongTarget) as error:
        terminal.fail([str(error)])
        raise typer.Exit(FAILED) from error
    except (KeyboardInterrupt, typer.Abort) as error:
        terminal.fail(["interrupted; what was done stays done, and a new run goes on from there"])
        raise typer.Exit(INTERRUPTED) from error
