"""A gRPC proxy between the real Firestore client and the emulator: it forwards bytes, counts calls, and can fail."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import grpc
from google.cloud.firestore_v1.types import ListDocumentsResponse, RunQueryResponse

SERVICE = "/google.firestore.v1.Firestore/"
STREAMS = frozenset({"BatchGetDocuments", "RunQuery", "RunAggregationQuery", "ListDocuments"})
FORWARDED = frozenset({"authorization", "google-cloud-resource-prefix", "x-goog-request-params"})
FORWARD_S = 20.0


class Way(Enum):
    """How a call can fail."""

    BEFORE = auto()
    """Answer with the status; nothing reaches the store."""
    LOSE_REPLY = auto()
    """The store does it; the client gets the status instead of the reply."""
    LATE = auto()
    """The client gets the status now; the store gets the call when `release` is called."""
    TWICE = auto()
    """The store gets the call twice, as a resend would have it; the client gets the second answer."""


@dataclass(slots=True)
class Fault:
    """One call that fails: the first of `method` that `matches` its bytes, after `skip` that do not fail."""

    method: str
    way: Way
    status: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE
    skip: int = 0
    times: int = 1
    kept: int = 0
    """Of a stream whose reply is lost: the messages of it that reach the client before the status."""
    matches: Callable[[bytes], bool] = field(default=lambda _: True)
    first: Callable[[], None] | None = None
    """Done before the call is forwarded; the call itself then does not fail."""


class FaultProxy:
    """Address, counters and planned faults of a running proxy."""

    def __init__(self, target: str) -> None:
        self.calls: Counter[str] = Counter()
        self.documents: Counter[str] = Counter()
        """Documents that the store sent, by method."""
        self.address = ""
        self._channel = grpc.insecure_channel(target, options=[("grpc.max_receive_message_length", -1)])
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self._late: list[Callable[[], Any]] = []
        self._server = grpc.server(ThreadPoolExecutor(max_workers=64), handlers=[_Handlers(self)])

    def plan(self, *faults: Fault) -> None:
        """Let these calls fail, in addition to those planned before."""
        with self._lock:
            self._faults.extend(faults)

    def clear(self) -> None:
        """Forget planned faults, late calls and counters."""
        with self._lock:
            self._faults.clear()
            self._late.clear()
            self.calls.clear()
            self.documents.clear()

    def forget(self) -> None:
        """Forget what is planned and has not come about."""
        with self._lock:
            self._faults.clear()

    def release(self) -> None:
        """Let every late call reach the store now, in order; their answers reach nobody."""
        with self._lock:
            late, self._late = self._late, []
        for send in late:
            try:
                send()
            except grpc.RpcError:
                continue

    def start(self) -> None:
        port = self._server.add_insecure_port("127.0.0.1:0")
        self.address = f"127.0.0.1:{port}"
        self._server.start()

    def stop(self) -> None:
        self._server.stop(grace=None).wait()
        self._channel.close()

    def serve(self, method: str, request: bytes, context: grpc.ServicerContext) -> list[bytes]:
        """Forward one call, or fail it as planned."""
        metadata = [(key, value) for key, value in context.invocation_metadata() if key in FORWARDED]

        def send() -> list[bytes]:
            if method in STREAMS:
                stream = self._channel.unary_stream(SERVICE + method)
                replies = list(stream(request, metadata=metadata, timeout=FORWARD_S))
                with self._lock:
                    self.documents[method] += sum(_documents(method, reply) for reply in replies)
                return replies
            return [self._channel.unary_unary(SERVICE + method)(request, metadata=metadata, timeout=FORWARD_S)]

        fault = self._next(method, request)
        try:
            if fault is None:
                return send()
            if fault.first is not None:
                fault.first()
                return send()
            if fault.way is Way.LOSE_REPLY:
                return _broken_off(send(), fault, context)
            if fault.way is Way.TWICE:
                send()
                return send()
            if fault.way is Way.LATE:
                with self._lock:
                    self._late.append(send)
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())
        else:
            context.abort(fault.status, f"planned: {fault.way.name}")
        raise AssertionError("abort raises")

    def _next(self, method: str, request: bytes) -> Fault | None:
        with self._lock:
            self.calls[method] += 1
            for fault in self._faults:
                if fault.method != method or not fault.matches(request):
                    continue
                if fault.skip:
                    fault.skip -= 1
                    return None
                fault.times -= 1
                if not fault.times:
                    self._faults.remove(fault)
                return fault
            return None


def _broken_off(replies: list[bytes], fault: Fault, context: grpc.ServicerContext) -> list[bytes]:
    """What the client gets before the status."""
    if not fault.kept:
        context.abort(fault.status, f"planned: {fault.way.name}")
    context.set_code(fault.status)
    return replies[: fault.kept]


def _documents(method: str, reply: bytes) -> int:
    if method == "RunQuery":
        return int(RunQueryResponse.pb(RunQueryResponse.deserialize(reply)).HasField("document"))
    if method == "ListDocuments":
        return len(ListDocumentsResponse.deserialize(reply).documents)
    return int(method == "BatchGetDocuments")


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc ships no types
    def __init__(self, proxy: FaultProxy) -> None:
        self._proxy = proxy

    def service(self, handler_call_details: Any) -> grpc.RpcMethodHandler:
        method = str(handler_call_details.method).removeprefix(SERVICE)
        if method in STREAMS:
            return grpc.unary_stream_rpc_method_handler(lambda r, c: iter(self._proxy.serve(method, r, c)))
        return grpc.unary_unary_rpc_method_handler(lambda r, c: self._proxy.serve(method, r, c)[0])


@contextmanager
def proxying(target: str) -> Iterator[FaultProxy]:
    """A proxy in front of the emulator at `target`, until the end of the block."""
    proxy = FaultProxy(target)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
