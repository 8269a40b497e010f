"""Progress of the story: a live line on a terminal, plain lines elsewhere."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.text import Text

PLAIN_LINE_EVERY_S = 2.0


class Screen:
    """What is going on, visible from the first second. Times are seconds since it was made."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._printed = float("-inf")
        self._status = console.status("") if console.is_terminal else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status:
            self._status.stop()

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._began

    def say(self, text: str, style: str = "") -> None:
        """One line that stays."""
        self._console.print(Text.assemble((f"{self.elapsed_s:5.1f} s  ", "dim"), (text, style)), soft_wrap=True)
        self._printed = time.monotonic()

    def now(self, text: str) -> None:
        """What is under way: one line that changes, or one every other second where no line can change."""
        if self._status:
            # Started by the first such line, not before: until then the stack shows a line of its own.
            self._status.start()
            self._status.update(Text(text))
        elif time.monotonic() - self._printed >= PLAIN_LINE_EVERY_S:
            self.say(text)
