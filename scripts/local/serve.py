"""Keeps the local stack up until Ctrl-C, for tests and clients to use: `make serve`."""

import argparse
import os
import signal
import sys
import time

from rich.console import Console
from rich.table import Table

from scripts.local import claim
from scripts.local.layout import Layout
from scripts.local.ready import answers, tail
from scripts.local.stack import Stack, Unavailable, running

_LOOK_EVERY_S = 2


def _table(stack: Stack) -> Table:
    table = Table(title=f"Local stack, project {stack.project}", title_justify="left")
    table.add_column("service")
    table.add_column("address", overflow="fold")
    for service, address in (
        ("functions", stack.functions_url),
        ("firestore", stack.firestore_host),
        ("auth", f"http://{stack.auth_host}"),
        ("pubsub", stack.pubsub_host),
        ("App Check, mint a token", f"POST {stack.standins_url}/appcheck/mint"),
        ("Gemini stand-in, its log", f"GET {stack.standins_url}/_log/gemini"),
        ("your functions' output", str(Layout().firebase_log)),
        ("other logs", str(Layout().logs)),
    ):
        table.add_row(service, address)
    return table


def end_on_signals() -> None:
    """Take SIGINT and SIGTERM as Ctrl-C, also where a shell without job control started this with SIGINT ignored."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)


def _stay(stack: Stack) -> str:
    """Until the stack is gone; returns who ended it, if that was the process that served it to this one.

    Raises:
        Unavailable: it was this one's own.
    """
    owner = claim.owner(Layout())
    while answers(stack.functions_url) and answers(f"{stack.standins_url}/_health"):
        time.sleep(_LOOK_EVERY_S)
    if owner == os.getpid():
        raise Unavailable(f"the stack has ended by itself.\n{tail(Layout().firebase_log)}")
    return f"process {owner} has ended the stack"


def _how_to_end() -> str:
    owner = claim.owner(Layout())
    return "Ctrl-C ends it." if owner == os.getpid() else f"Process {owner} serves it, and goes on after a Ctrl-C here."


def main() -> int:
    """Returns the exit status: 0 after Ctrl-C or SIGTERM, 1 if the stack did not start or has ended by itself."""
    argparse.ArgumentParser(prog="python -m scripts.local.serve", description=__doc__).parse_args()
    console = Console()
    end_on_signals()
    try:
        with running(share=True) as stack:
            console.print(_table(stack), _how_to_end())
            console.print(_stay(stack))
            return 0
    except KeyboardInterrupt:
        console.print("ended")
        return 0
    except Unavailable as error:
        Console(stderr=True).print(str(error), style="red", highlight=False, markup=False, soft_wrap=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
