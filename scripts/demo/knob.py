"""A knob as the emulated functions will have it: what the Firebase CLI reads, in its order."""

from pathlib import Path


class Unfit(Exception):
    """The demo cannot be shown with this setting; the message says what to do."""


def text(functions: Path, project: str, knob: str) -> str:
    """The last that `.env`, `.env.<project>` and `.env.local` say; empty if none names it."""
    files = (".env", f".env.{project}", ".env.local")
    named = [value for name in files for value in _values(functions / name, knob)]
    return named[-1] if named else ""


def _values(file: Path, knob: str) -> list[str]:
    if not file.is_file():
        return []
    pairs = [line.partition("=") for line in file.read_text().splitlines()]
    return [value.strip().strip("\"'") for name, _, value in pairs if name.strip() == knob]
