"""The limit put into a query before it is sent, so that the server reads no more than the meter allows."""

from dataclasses import dataclass
from typing import Any

from firebreak.metering.hold import Hold
from firebreak.metering.unsupported import unsupported

MOST_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """How a query goes out: `offset` results skipped, at most `limit` sent; `cut` if it had asked for more."""

    offset: int
    limit: int | None
    cut: bool


def bound(query: Any, hold: Hold, *, per_read: int = 1) -> Bound:  # noqa: ANN401 - a bare StructuredQuery
    """Set aside what `query` can read at most, and limit it to that; `per_read` results are billed as one read.

    Raises:
        MeterExceeded: nothing is left, or no more than it skips.
        Unsupported: a vector search.
    """
    if query.HasField("find_nearest"):
        unsupported("find_nearest")
    asked = query.limit.value if query.HasField("limit") else None
    offset = query.offset
    least = _reads(offset + (1 if asked is None else min(asked, 1)), per_read)
    granted = hold.open(None if asked is None else _reads(offset + asked, per_read), least=least)
    if granted is None:
        return Bound(offset=offset, limit=asked, cut=False)
    limit = min(granted * per_read - offset, MOST_LIMIT)
    if asked is not None and asked <= limit:
        return Bound(offset=offset, limit=asked, cut=False)
    query.limit.value = limit
    return Bound(offset=offset, limit=limit, cut=True)


def _reads(results: int, per_read: int) -> int:
    return max(1, -(-results // per_read))
