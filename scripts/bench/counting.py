"""A gRPC proxy in front of the emulator that counts round trips, document reads and document writes; adds nothing."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from google.cloud.firestore_v1.types import BatchGetDocumentsResponse, CommitRequest

from scripts.bench.figures import Count
from scripts.local.layout import HOST

SERVICE = "/google.firestore.v1.Firestore/"
READS = "BatchGetDocuments"
FORWARDED = frozenset({"authorization", "google-cloud-resource-prefix", "x-goog-request-params"})
FORWARD_S = 120.0


class CountingProxy:
    """Address and counters of a running proxy; it knows the methods that the contenders use."""

    def __init__(self, target: str) -> None:
        self._channel = grpc.insecure_channel(target)
        self._server = grpc.server(ThreadPoolExecutor(max_workers=64), handlers=[_Handlers(self)])
        self.address = f"{HOST}:{self._server.add_insecure_port(f'{HOST}:0')}"
        self._lock = threading.Lock()
        self._rpcs = self._reads = self._writes = 0
        self._server.start()

    def clear(self) -> None:
        with self._lock:
            self._rpcs = self._reads = self._writes = 0

    def count(self, calls: int) -> Count:
        """What was counted since the last `clear`, for that many calls."""
        with self._lock:
            return Count(calls=calls, rpcs=self._rpcs, reads=self._reads, writes=self._writes)

    def stop(self) -> None:
        self._server.stop(grace=None).wait()
        self._channel.close()

    def forward(self, method: str, request: bytes, context: grpc.ServicerContext) -> list[bytes]:
        """Forward one call and count what it does; a commit that fails writes nothing."""
        metadata = [(key, value) for key, value in context.invocation_metadata() if key in FORWARDED]
        with self._lock:
            self._rpcs += 1
        call = self._channel.unary_stream if method == READS else self._channel.unary_unary
        try:
            reply = call(SERVICE + method)(request, metadata=metadata, timeout=FORWARD_S)
            replies = list(reply) if method == READS else [reply]
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())
        with self._lock:
            self._reads += sum(_is_read(each) for each in replies) if method == READS else 0
            self._writes += len(CommitRequest.deserialize(request).writes) if method == "Commit" else 0
        return replies


def _is_read(reply: bytes) -> bool:
    """A document that is missing was read all the same, and is billed."""
    return BatchGetDocumentsResponse.pb(BatchGetDocumentsResponse.deserialize(reply)).WhichOneof("result") is not None


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc ships no types
    def __init__(self, proxy: CountingProxy) -> None:
        self._proxy = proxy

    def service(self, handler_call_details: Any) -> grpc.RpcMethodHandler:  # noqa: ANN401 - grpc ships no types
        method = str(handler_call_details.method).removeprefix(SERVICE)
        if method == READS:
            return grpc.unary_stream_rpc_method_handler(lambda r, c: iter(self._proxy.forward(method, r, c)))
        return grpc.unary_unary_rpc_method_handler(lambda r, c: self._proxy.forward(method, r, c)[0])


@contextmanager
def counting(target: str) -> Iterator[CountingProxy]:
    """A proxy in front of the emulator at `target`, until the context ends."""
    proxy = CountingProxy(target)
    try:
        yield proxy
    finally:
        proxy.stop()
