"""What this instance knows of its users' buckets: it may cost a retry, and can never admit too much (rule 8).

A reserve from a known state commits under that state's update_time: if the state is not the bucket's any more, nothing
is applied. So a known state need not be fresh to admit; to refuse, it must be young.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock

from firebreak.bucket.arithmetic import Level
from firebreak.bucket.documents import Bucket, Commit
from firebreak.store.clock import ServerClock

# Users an instance remembers, well under 1 KB each; the one not seen for longest goes first.
USERS = 50_000
KNOWN_S = 600.0
# The longest that a refusal can be behind: what another instance refunds is seen by then.
REFUSE_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBucket:
    """A bucket as last seen, at `seen` on the monotonic clock; not `exact`: only its update_time is."""

    bucket: Bucket
    seen: float
    exact: bool = True


class KnownUsers:
    """A bounded cache by document id, shared by all threads."""

    def __init__(self, monotonic: Callable[[], float], users: int = USERS) -> None:
        self._monotonic = monotonic
        self._users = users
        self._lock = Lock()
        self._entries: OrderedDict[str, KnownBucket] = OrderedDict()

    def get(self, name: str) -> KnownBucket | None:
        """The exact state of a bucket, if it is known."""
        with self._lock:
            entry = self._entries.get(name)
            if entry is None or not entry.exact or self._monotonic() - entry.seen > KNOWN_S:
                return None
            self._entries.move_to_end(name)
            return entry

    def may_refuse(self, entry: KnownBucket) -> bool:
        """Whether the state is young enough for a refusal without asking."""
        return self._monotonic() - entry.seen <= REFUSE_S

    def put(self, name: str, bucket: Bucket) -> None:
        """Remember a state that was read, or that our own reserve made; a newer one that is known already stays."""
        if bucket.updated is not None:
            self._put(name, KnownBucket(bucket=bucket, seen=self._monotonic()))

    def doubt(self, name: str, entry: KnownBucket | None) -> None:
        """After a failure: what it went by is not to be gone by again; what has come since stays."""
        with self._lock:
            if entry is not None and self._entries.get(name) is entry:
                self._entries[name] = replace(entry, exact=False)

    def settling(self, name: str) -> KnownBucket | None:
        """Before a settle is sent: from now on the state is unknown. Returns what it was, if that was exact."""
        with self._lock:
            entry = self._entries.get(name)
            if entry is None or not entry.exact:
                return None
            self._entries[name] = replace(entry, exact=False)
            return entry

    def settled(self, name: str, before: KnownBucket | None, commit: Commit, *, refund: int) -> None:
        """After a settle: if it was applied to the very state that was known, its sums are the new one."""
        if before is None or before.bucket.level is None or before.bucket.version is None:
            return
        tokens, version = commit.sums.get("tokens"), commit.sums.get("version")
        level = Level(tokens=before.bucket.level.tokens + refund, updated_us=before.bucket.level.updated_us)
        after = replace(before.bucket, level=level, version=before.bucket.version + 1, updated=commit.updated)
        exact = tokens == level.tokens and version == after.version
        self._put(name, KnownBucket(bucket=after, seen=self._monotonic(), exact=exact))

    def _put(self, name: str, entry: KnownBucket) -> None:
        with self._lock:
            known = self._entries.get(name)
            if known is not None and _newer(known, entry):
                return
            self._entries[name] = entry
            self._entries.move_to_end(name)
            while len(self._entries) > self._users:
                self._entries.popitem(last=False)


def _newer(known: KnownBucket, entry: KnownBucket) -> bool:
    """Whether what is known is of a later state. Of one state the exact knowledge is kept, and the younger."""
    assert known.bucket.updated is not None  # noqa: S101 - only documents that exist are remembered
    assert entry.bucket.updated is not None  # noqa: S101
    if known.bucket.updated == entry.bucket.updated:
        return known.exact and not entry.exact
    return known.bucket.updated > entry.bucket.updated


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What an instance keeps between calls: the server's time, and its users' last known buckets."""

    time: ServerClock
    known: KnownUsers
