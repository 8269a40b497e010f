"""Files in docs/ that tests produce: they compare what they saw with the file, or write it anew."""

import os
from pathlib import Path

from scripts.local.layout import ROOT

DOCS = ROOT / "docs"


def recording() -> bool:
    """Whether this run writes the files anew."""
    return "FIREBREAK_RECORD" in os.environ


def rows(name: str) -> list[str]:
    """The lines of docs/`name`."""
    return (DOCS / name).read_text().splitlines()


def recorded(name: str, text: str) -> None:
    """Fail unless docs/`name` holds `text`; with FIREBREAK_RECORD in the environment write it instead."""
    path: Path = DOCS / name
    if recording():
        path.write_text(text)
    assert path.exists(), f"docs/{name} is missing; `make record` writes it"
    assert path.read_text() == text, f"docs/{name} is not what was seen; `make record` writes it anew"
