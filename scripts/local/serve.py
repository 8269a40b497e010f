"""Keeps the local stack up until Ctrl-C: `make serve`."""

import argparse
import signal
import sys

from rich.console import Console
from rich.table import Table

from scripts.local.binaries import BinaryMissing
from scripts.local.layout import Layout
from scripts.local.ready import NotReady
from scripts.local.stack import Stack, Unavailable, running


def _table(stack: Stack) -> Table:
    table = Table(title=f"Local stack, project {stack.project}", title_justify="left")
    table.add_column("service")
    table.add_column("address")
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


def main() -> int:
    argparse.ArgumentParser(prog="python -m scripts.local.serve", description=__doc__).parse_args()
    console = Console()
    try:
        with running() as stack:
            console.print(_table(stack), "Ctrl-C ends it.")
            signal.pause()
    except KeyboardInterrupt:
        console.print("ended")
        return 0
    except (BinaryMissing, NotReady, Unavailable) as error:
        Console(stderr=True).print(f"[red]{error}[/red]", highlight=False, soft_wrap=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
