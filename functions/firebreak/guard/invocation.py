"""One invocation of a function: its audit event and its meters, opened first and closed last."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from firebreak.events import Field, audited
from firebreak.metering.meter import Meters, metered


@contextmanager
def invocation(function: str, *, reads: int, writes: int, **fields: Field) -> Iterator[tuple[dict[str, Field], Meters]]:
    """Meter what the function reads and writes, and log it with the rest; `fields` are the event's first."""
    with (
        audited(function=function, id=uuid.uuid4().hex, **fields) as audit,
        metered(reads=reads, writes=writes) as meters,
    ):
        try:
            yield audit, meters
        finally:
            audit |= {"reads": meters.reads.used, "writes": meters.writes.used}
            audit |= {"guard_reads": meters.guard_reads.used, "guard_writes": meters.guard_writes.used}
