"""Keeps README.md and functions/.env.example equal to the code: `make docs` writes them, a test compares."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from firebreak.errors import KINDS
from firebreak.settings.settings import KNOBS

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BENCH = ROOT / "docs" / "bench.md"
COSTS = ROOT / "docs" / "costs.md"
DEMO = ROOT / "docs" / "demo.txt"
ENDINGS = ROOT / "docs" / "endings.md"
ENV_EXAMPLE = ROOT / "functions" / ".env.example"

ENV_HEAD = """\
# Every knob and its default. Copy what you change into functions/.env; secrets never go there.
# Written by `make docs`.
"""


def knobs() -> Iterator[str]:
    """The README's table of knobs."""
    yield "| knob | default | range | what it does |"
    yield "|---|---|---|---|"
    for knob in KNOBS:
        default = "*must be set*" if knob.default is None else f"`{knob.default}`" if knob.default else "*empty*"
        yield f"| `{knob.name}` | {default} | {knob.range} | {knob.doc} |"


def refusals() -> Iterator[str]:
    """The README's table of refusals."""
    yield "| reason | code | HTTP | what it means | what the client does |"
    yield "|---|---|---|---|---|"
    for kind in KINDS:
        code = kind.code.name.lower().replace("_", "-")
        yield f"| `{kind.reason}` | `{code}` | {kind.code.http_status} | {kind.text} | {kind.advice} |"


def env_example() -> str:
    """The whole of functions/.env.example."""
    blocks = [ENV_HEAD]
    for knob in KNOBS:
        must = "must be set" if knob.default is None else f"default {knob.default or 'empty'}"
        value = f"{knob.name}={knob.default or ''}"
        line = "MAX_DAILY_TOKENS=100000" if knob.default is None else f"# {value}"
        blocks.append(f"# {knob.doc} {knob.range}; {must}.\n{line}\n")
    return "\n".join(blocks)


def demo() -> Iterator[str]:
    """The output of a real run, as kept in docs/demo.txt."""
    yield "```"
    yield DEMO.read_text().rstrip()
    yield "```"


def bench() -> Iterator[str]:
    """The targets of the last recorded `make bench`, the first table of docs/bench.md."""
    rows = [line for line in BENCH.read_text().split("\n\n") if line.startswith("|")]
    yield rows[0].rstrip()


def endings() -> Iterator[str]:
    """How streams end, as the tests saw it."""
    yield ENDINGS.read_text().rstrip()


def costs() -> Iterator[str]:
    """What calls cost Firestore, as the tests counted it."""
    yield COSTS.read_text().rstrip()


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "bench": bench,
    "costs": costs,
    "demo": demo,
    "endings": endings,
    "knobs": knobs,
    "refusals": refusals,
}


def readme(text: str) -> str:
    """`text` with what stands between the markers of each table written anew.

    Raises:
        ValueError: a marker is missing.
    """
    for name, rows in TABLES.items():
        pattern = re.compile(rf"(<!-- {name}[^>]*-->\n).*?(<!-- /{name} -->)", re.DOTALL)
        parts = pattern.split(text)
        if len(parts) != 4:
            raise ValueError(f"README.md must hold the markers of {name} once")
        before, start, end, after = parts
        text = before + start + "".join(f"{row}\n" for row in rows()) + end + after
    return text


def stale() -> list[str]:
    """Names of the files that `make docs` would change."""
    wanted = {README: readme(README.read_text()), ENV_EXAMPLE: env_example()}
    return [path.name for path, text in wanted.items() if not path.exists() or path.read_text() != text]


app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(help=__doc__)
def main(
    check: Annotated[
        bool, typer.Option("--check", help="Only tell, by exit status 1, if a file would change.")
    ] = False,
) -> None:
    if check:
        names = stale()
        typer.echo(f"stale, run `make docs`: {', '.join(names)}" if names else "docs are as the code has them")
        raise typer.Exit(bool(names))
    README.write_text(readme(README.read_text()))
    ENV_EXAMPLE.write_text(env_example())


if __name__ == "__main__":
    app()
