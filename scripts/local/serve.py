"""Keeps the local stack up until Ctrl-C, for tests and clients to use: `make serve`."""

import argparse
import sys
import time
from typing import NoReturn

from rich.console import Console
from rich.table import Table

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
        ("logs", str(Layout().logs)),
    ):
        table.add_row(service, address)
    return table


def _stay(stack: Stack) -> NoReturn:
    while answers(stack.functions_url) and answers(f"{stack.standins_url}/_health"):
        time.sleep(_LOOK_EVERY_S)
    raise Unavailable(f"the stack has ended by itself.\n{tail(Layout().firebase_log)}")


def main() -> int:
    """Returns the exit status: 0 after Ctrl-C, 1 if the stack did not start or has ended by itself."""
    argparse.ArgumentParser(prog="python -m scripts.local.serve", description=__doc__).parse_args()
    console = Console()
    try:
        with running(share=True) as stack:
            console.print(_table(stack), "Ctrl-C ends it.")
            _stay(stack)
    except KeyboardInterrupt:
        console.print("ended")
        return 0
    except Unavailable as error:
        Console(stderr=True).print(str(error), style="red", highlight=False, markup=False, soft_wrap=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
