"""Queries page by page: each RPC is bounded, and so is what a long answer costs when it breaks off."""

from collections.abc import Iterator
from typing import Any

from google.cloud import firestore

from scripts.ops.rpc import RPC_S, patiently

PAGE = 300

type Snapshot = firestore.DocumentSnapshot[Any]


def pages(query: firestore.Query, most: int | None = None) -> Iterator[list[Snapshot]]:
    """What a query finds, at most PAGE documents at a time and `most` together; no page is empty."""
    left = most
    while left is None or left > 0:
        size = PAGE if left is None else min(PAGE, left)
        page = _page(query.limit(size))
        if page:
            yield page
        if len(page) < size:
            return
        left = None if left is None else left - size
        query = query.start_after(page[-1])


def _page(query: firestore.Query) -> list[Snapshot]:
    return patiently(lambda: list(query.get(timeout=RPC_S)))
