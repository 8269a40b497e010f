"""App Check tokens that this instance has verified: a client sends the same one for up to an hour.

Verifying one takes longer than all other layers together, and the SDK's second lock does it anew for every request.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

TOKENS = 10_000


class Attested:
    """App ids by token, each as long as its token holds; a bounded cache, shared by all threads."""

    def __init__(self, now: Callable[[], float] = time.time, tokens: int = TOKENS) -> None:
        self._now = now
        self._tokens = tokens
        self._lock = Lock()
        self._known: OrderedDict[bytes, tuple[str, int]] = OrderedDict()

    def get(self, token: str) -> str | None:
        """The app id of a token that was verified before and has not expired since."""
        known = self._known.get(_digest(token))
        return None if known is None or self._now() >= known[1] else known[0]

    def put(self, token: str, app_id: str, expires_s: int) -> None:
        """Remember a token that was verified just now; `expires_s` is its `exp`."""
        with self._lock:
            self._known[_digest(token)] = (app_id, expires_s)
            while len(self._known) > self._tokens:
                self._known.popitem(last=False)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
