"""A clock that a test can move."""

import time


class Shifted:
    """A monotonic clock that a test can move."""

    def __init__(self) -> None:
        self.by = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.by
