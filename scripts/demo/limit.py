"""The daily limit that the emulated functions will use: what the Firebase CLI reads, in its order."""

from pathlib import Path

KNOB = "MAX_DAILY_TOKENS"
LEAST, MOST = 20_000, 500_000


class Unfit(Exception):
    """The demo cannot show an empty bucket with this limit; the message says what to do."""


def daily_limit(functions: Path, project: str) -> int:
    """The knob's value, the last of `.env`, `.env.<project>` and `.env.local` to name it.

    Raises:
        Unfit: it is missing, not a number, or such that the bucket would not be empty within a minute.
    """
    named = [value for name in (".env", f".env.{project}", ".env.local") for value in _values(functions / name)]
    text = named[-1] if named else ""
    if not text.isdecimal():
        raise Unfit(f"{KNOB} must be a whole number in functions/.env, not {text!r}")
    if not LEAST <= int(text) <= MOST:
        raise Unfit(
            f"the demo empties a bucket, which fits its minute with {KNOB} from {LEAST} to {MOST}, not with {text}; "
            f"the line {KNOB}=100000 in functions/.env.local sets it for the emulator alone"
        )
    return int(text)


def _values(file: Path) -> list[str]:
    if not file.is_file():
        return []
    pairs = [line.partition("=") for line in file.read_text().splitlines()]
    return [value.strip().strip("\"'") for name, _, value in pairs if name.strip() == KNOB]
