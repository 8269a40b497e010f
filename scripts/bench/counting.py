"""Counts what passes between a contender and the emulator: round trips, document reads and document writes."""

import threading

import grpc
from google.cloud.firestore_v1.types import BatchGetDocumentsResponse, CommitRequest

from scripts.bench.figures import Count
from scripts.local.proxy import Proxy


class CountingProxy(Proxy):
    """It knows the methods that the contenders use."""

    forward_s = 120.0

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        self._rpcs = self._reads = self._writes = 0

    def count(self, calls: int) -> Count:
        """What was counted since the last `clear`, for that many calls."""
        return Count(calls=calls, rpcs=self._rpcs, reads=self._reads, writes=self._writes)

    def forward(self, method: str, request: bytes, context: grpc.ServicerContext) -> list[bytes]:
        """Count what the call does; a commit that fails writes nothing."""
        with self._lock:
            self._rpcs += 1
        replies = super().forward(method, request, context)
        with self._lock:
            self._reads += sum(_is_read(each) for each in replies) if method == "BatchGetDocuments" else 0
            self._writes += len(CommitRequest.deserialize(request).writes) if method == "Commit" else 0
        return replies


def _is_read(reply: bytes) -> bool:
    """A document that is missing was read all the same, and is billed."""
    return BatchGetDocumentsResponse.pb(BatchGetDocumentsResponse.deserialize(reply)).WhichOneof("result") is not None
