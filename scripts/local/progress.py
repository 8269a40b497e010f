"""Tells a waiting person what is going on: one live line on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

Say = Callable[[str], None]


@contextmanager
def telling(console: Console | None = None) -> Iterator[Say]:
    """A function that shows what is being done now; on a terminal each line takes the place of the last."""
    console = console or Console(stderr=True)
    begin = time.monotonic()
    if console.is_terminal:
        with console.status("") as status:
            yield lambda text: status.update(f"{text} …")
    else:
        said = ""

        def say(text: str) -> None:
            nonlocal said
            if text != said:
                console.print(f"{time.monotonic() - begin:5.1f} s  {text}", highlight=False, soft_wrap=True)
            said = text

        yield say
