"""Spend caps, alert budgets, their topic, the functions' rights and TTL policies, as `firebreak.toml` wants them.

Every command may be repeated, and goes on where an earlier run ended, however it ended. What is made is on record in
Firestore, ops/caps. Exit status: 0 done, or nothing to do; 1 not done, or wrong use; 2 `plan` found something to do;
130 interrupted.
"""

import sys
from typing import Any

import typer

from scripts.provision.commands import app
from scripts.provision.running import FAILED, INTERRUPTED
from scripts.provision.session import Making

# Typer does not export it, and its own exit status for wrong use is the one of "something to do".
_WRONG_USE: Any = typer.BadParameter.__bases__[0]


def main(arguments: list[str] | None = None, making: Making | None = None) -> int:
    """Run one command; its exit status."""
    app.info.help = __doc__
    try:
        status = app(arguments, standalone_mode=False, prog_name="python -m scripts.provision", obj=making)
    except typer.Abort:
        return INTERRUPTED
    except _WRONG_USE as error:
        error.show()
        return FAILED
    return status or 0


if __name__ == "__main__":
    sys.exit(main())
