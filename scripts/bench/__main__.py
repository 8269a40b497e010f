"""`make bench`: the bucket beside its alternatives, on one Firestore emulator of its own, in one run.

Writes scripts/bench/results.json, docs/bench.md and docs/bench.png; --quick writes them into .local/bench instead.
Exit status: 0 it ran; 1 with --strict a target was missed; 3 something is missing or did not start; 130 interrupted.
"""

import json
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from scripts.bench import chart, memory, report
from scripts.bench.figures import Results
from scripts.bench.play import play
from scripts.bench.shape import FULL, QUICK
from scripts.bench.targets import Target, targets
from scripts.demo.screen import Screen
from scripts.local.layout import ROOT, Layout
from scripts.local.unavailable import Unavailable

MISSED, NO_START, INTERRUPTED = 1, 3, 130

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command(help=__doc__)
def main(
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the calls: to see that it runs.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the results as JSON on stdout; progress goes to stderr.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if a target was missed.")] = False,
) -> None:
    console = Console(stderr=as_json, highlight=False)
    amount, folder = QUICK if quick else FULL, Layout().local / "bench"
    try:
        with Screen(console) as screen:
            screen.say("measuring what an instance remembers of a user")
            remembered = memory.bytes_a_user(amount.cached_users)
            results = play(amount, folder, screen.now)
            screen.say("done")
    except Unavailable as error:
        console.print(str(error), style="red", markup=False, soft_wrap=True)
        raise typer.Exit(NO_START) from error
    except KeyboardInterrupt as error:
        console.print("interrupted; all that was started has been ended", style="red")
        raise typer.Exit(INTERRUPTED) from error
    reached = targets(results, cache_bytes=remembered)
    if quick:
        _write(results, reached, json_file=folder / "results.json", docs=folder)
    else:
        _write(results, reached, json_file=ROOT / "scripts" / "bench" / "results.json", docs=ROOT / "docs")
    for target in reached:
        met = "met   " if target.met else "MISSED"
        console.print(f"{met} {target.text}: {report.number(target.value)} (bound {report.number(target.bound)})")
    if as_json:
        typer.echo(json.dumps(results, indent=2))
    raise typer.Exit(MISSED if strict and not all(target.met for target in reached) else 0)


def _write(results: Results, reached: list[Target], *, json_file: Path, docs: Path) -> None:
    json_file.write_text(json.dumps(results, indent=2) + "\n")
    (docs / "bench.md").write_text(report.page(results, reached, cores=os.cpu_count() or 1))
    chart.draw(results, docs / "bench.png")


if __name__ == "__main__":
    app()
