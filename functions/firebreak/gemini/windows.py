"""Windows in which the model is not asked: it said how long it will refuse, and each try would cost time and writes."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from threading import Lock

from firebreak.gemini.failure import ModelFailure, Window

ACCOUNT = ""
# The longest that a model stays unasked: whoever pays, lifts a cap or raises a quota need not wait for the whole time
# that was told before.
UNASKED_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    failure: ModelFailure
    until: float
    asked_again: float


class Windows:
    """The windows that an instance knows of, by key: a model, a model with paid tools, its counts, or the account."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._known: dict[str, _Known] = {}
        self._lock = Lock()

    def note(self, failure: ModelFailure, key: str, *, alone: bool = False) -> None:
        """Remember a failure that is known to last; `key` is what it is about, unless it is about the account.

        With `alone` it is about nothing else, whatever it says.
        """
        if failure.window is Window.NONE or failure.retry_after_s is None:
            return
        now, wait_s = self._monotonic(), failure.retry_after_s
        known = _Known(failure=failure, until=now + wait_s, asked_again=now + min(wait_s, UNASKED_S))
        with self._lock:
            self._known[ACCOUNT if failure.window is Window.ACCOUNT and not alone else key] = known

    def look(self, *keys: str) -> ModelFailure | None:
        """The failure that a request would meet, with what is left of its window; None: ask."""
        with self._lock:
            now = self._monotonic()
            self._known = {key: known for key, known in self._known.items() if known.asked_again > now}
            met = [self._known[key] for key in (ACCOUNT, *keys) if key in self._known]
        if not met:
            return None
        longest = max(met, key=lambda known: known.until)
        return longest.failure.after(ceil(longest.until - now))
