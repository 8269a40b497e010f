"""`make demo`: the whole story on this machine, and a verdict.

Exit status: 0 every claim held; 1 a claim did not hold, or a client broke; 2 not started: wrong use, no consent to
spend, or a setting that the story does not fit; 3 the local stack did not start; 130 interrupted.
"""

import json
import os
import sys
from typing import Annotated

import typer
from rich.console import Console

from scripts.clients.caller import CallerFailed
from scripts.demo import story, table
from scripts.demo.evidence import Evidence
from scripts.demo.gate import NotAllowed, real_gemini_api_key
from scripts.demo.knob import Unfit
from scripts.demo.limit import daily_limit
from scripts.demo.policy import switch_ttl_s
from scripts.demo.result import result
from scripts.demo.screen import Screen
from scripts.local.layout import PROJECT, ROOT
from scripts.local.stack import Unavailable, running

CLAIM_FAILED, NOT_STARTED, NO_STACK, INTERRUPTED = 1, 2, 3, 130

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command(help=__doc__)
def main(
    real: Annotated[
        bool,
        typer.Option("--real", help="Use the real Gemini, with the key in GEMINI_API_KEY; asks before it spends."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON on stdout; progress goes to stderr.")
    ] = False,
) -> None:
    console = Console(stderr=as_json, highlight=False)
    try:
        limit = daily_limit(ROOT / "functions", PROJECT)
        ttl_s = switch_ttl_s(ROOT / "functions", PROJECT)
        key = None
        if real:
            key = real_gemini_api_key(os.environ, limit=limit, console=console, interactive=_interactive())
        evidence, seconds = _perform(console, limit, ttl_s, key)
    except (NotAllowed, Unfit) as error:
        raise _exit(console, str(error), NOT_STARTED) from error
    except Unavailable as error:
        raise _exit(console, str(error), NO_STACK) from error
    except CallerFailed as error:
        raise _exit(console, str(error), CLAIM_FAILED) from error
    except KeyboardInterrupt as error:
        raise _exit(console, "interrupted; all that was started has been ended", INTERRUPTED) from error
    end = result(evidence, seconds, workers=story.RUNAWAY_WORKERS)
    table.show(console, end)
    if as_json:
        typer.echo(json.dumps(end.as_json(), indent=2))
    raise typer.Exit(0 if end.held else CLAIM_FAILED)


def _interactive() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _perform(console: Console, limit: int, ttl_s: int, key: str | None) -> tuple[Evidence, dict[str, float]]:
    """Starts the stack, plays the story on it, ends the stack."""
    with Screen(console) as screen:
        screen.say("starting the local stack: the Firebase emulators, and stand-ins for what has none")
        with running(real_gemini_api_key=key) as stack:
            ready_s = screen.elapsed_s
            screen.say("the stack is up")
            evidence = story.play(stack, screen, limit=limit, switch_ttl_s=ttl_s, real=key is not None)
            played_s = screen.elapsed_s
            screen.now("ending the stack")
        seconds = {"stack": ready_s, "story": played_s - ready_s, "end": screen.elapsed_s - played_s}
        return evidence, seconds | {"total": screen.elapsed_s}


def _exit(console: Console, message: str, status: int) -> typer.Exit:
    console.print(message, style="red", markup=False, soft_wrap=True)
    return typer.Exit(status)


if __name__ == "__main__":
    app()
