"""The daily limit that the emulated functions will use."""

from pathlib import Path

from scripts.demo import knob
from scripts.demo.knob import Unfit

KNOB = "MAX_DAILY_TOKENS"
LEAST, MOST = 20_000, 500_000


def daily_limit(functions: Path, project: str) -> int:
    """The knob's value.

    Raises:
        Unfit: it is missing, not a number, or such that the bucket would not be empty within a minute.
    """
    text = knob.text(functions, project, KNOB)
    if not text.isdecimal():
        raise Unfit(f"{KNOB} must be a whole number in functions/.env, not {text!r}")
    if not LEAST <= int(text) <= MOST:
        raise Unfit(
            f"the demo empties a bucket, which fits its minute with {KNOB} from {LEAST} to {MOST}, not with {text}; "
            f"the line {KNOB}=100000 in functions/.env.local sets it for the emulator alone"
        )
    return int(text)
