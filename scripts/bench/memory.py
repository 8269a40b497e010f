"""How much of an instance's memory one known user takes."""

import time
import tracemalloc
from datetime import UTC, datetime, timedelta

from firebreak.bucket.arithmetic import Level
from firebreak.bucket.documents import Bucket
from firebreak.bucket.memory import KnownUsers

# Large enough that nothing in an entry is a small integer, which Python shares.
BEGAN_US = 1_796_000_000_000_000


def bytes_a_user(users: int) -> float:
    """Remember so many users, each in a state of its own with a uid of 28 characters, and ask the allocator."""
    now = datetime(2026, 11, 29, tzinfo=UTC)
    known = KnownUsers(time.monotonic, users=users)
    tracemalloc.start()
    for number in range(users):
        level = Level(tokens=100_000 + number, updated_us=BEGAN_US + number)
        updated = now + timedelta(microseconds=number)
        known.put(f"{number:028d}", Bucket(level=level, version=2**40 + number, override=None, updated=updated))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / users
