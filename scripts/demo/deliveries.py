"""The notices that the function has taken, as its log tells."""

import json
from collections.abc import Iterator
from pathlib import Path

from scripts.demo.billing import ID

EVENT = "firebreak.budget"


class Deliveries:
    """Those since this was made, in the log of the functions."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._begin = log.stat().st_size

    def taken_usd(self) -> tuple[float, ...]:
        """What each tells, in the order in which the function took them."""
        with self._log.open("rb") as file:
            file.seek(self._begin)
            return tuple(read(file.read().decode(errors="replace")))


def read(log: str) -> Iterator[float]:
    """What those tell that are in whole lines of a log."""
    for line in log.splitlines():
        _, brace, rest = line.partition("{")
        if EVENT in rest and rest.endswith("}"):
            event = json.loads(brace + rest)
            if event.get("budget") == ID and event.get("cost") is not None:
                yield event["cost"] / 1_000_000
