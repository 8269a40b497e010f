"""What the metered client does not do, because it could be neither counted nor bounded; each names what does."""

from typing import NoReturn

INSTEAD = {
    "batch_write": "bulk_writer and recursive_delete are not metered: use client.batch()",
    "listen": "on_snapshot is not metered: read with get() or stream()",
    "partition_query": "get_partitions is not metered: use limit() and start_after()",
    "execute_pipeline": "pipelines are not metered: use a query",
    "find_nearest": "find_nearest is not metered: its index entries are billed, and no answer tells how many",
    "explain": "explain_options are not metered: explain in the console, or with the SDK's own client in a script",
    "retry": "each attempt is billed, so none is made unseen: retry around the call",
}


class Unsupported(NotImplementedError):
    """The metered client refuses this; nothing was sent."""


def unsupported(what: str) -> NoReturn:
    """Refuse it, naming what to use instead."""
    raise Unsupported(INSTEAD.get(what, f"{what} is not metered: use documents, queries, batches and transactions"))
