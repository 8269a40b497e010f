"""Tries under one deadline, with full jitter in between, on a clock that tests can hold."""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from firebreak.store.documents import Corrupt
from firebreak.store.outcome import PERMANENT, STORE_ERRORS, Unreadable

RPC_S = 2.0
RPC_LEAST_S = 0.05
BACKOFF_S = 0.02
BACKOFF_MOST_S = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Time and chance; `monotonic` in seconds."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    uniform: Callable[[float, float], float] = random.uniform


class OutOfTries(Exception):
    """No attempt gave a result; `error` is the last failure, None if none failed."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__(type(error).__name__)
        self.error = error


class Tries:
    """Iterates over the numbers of the tries that fit into `seconds`, sleeping before each but the first."""

    def __init__(self, seconds: float, clock: Clock) -> None:
        self._clock = clock
        self._end = clock.monotonic() + seconds

    def __iter__(self) -> Iterator[int]:
        yield 0
        number = 1
        while True:
            pause = self._clock.uniform(0, min(BACKOFF_MOST_S, BACKOFF_S * 2 ** min(number, 16)))
            if self._clock.monotonic() + pause >= self._end:
                return
            self._clock.sleep(pause)
            yield number
            number += 1

    @property
    def left_s(self) -> float:
        """Seconds until the deadline."""
        return max(0.0, self._end - self._clock.monotonic())

    @property
    def rpc_s(self) -> float:
        """The timeout of the next RPC: what is left, within bounds."""
        return min(RPC_S, max(RPC_LEAST_S, self.left_s))


def repeat[T](
    attempt: Callable[[], T | None], tries: Tries, *, final: tuple[type[Exception], ...] = (Corrupt, Unreadable)
) -> T:
    """Attempt until there is a result; None asks for another attempt, as does an error that may pass.

    An error that waiting does not fix ends it, as do those of `final`. Each attempt reads again what it goes by, and
    looks for what an earlier one may have done after all.

    Raises:
        OutOfTries: there is no result.
    """
    error: Exception | None = None
    for _ in tries:
        try:
            result = attempt()
        except (*STORE_ERRORS, Corrupt, Unreadable) as failed:
            error = failed
            if isinstance(failed, (*PERMANENT, *final)):
                break
        else:
            if result is not None:
                return result
    raise OutOfTries(error) from error
