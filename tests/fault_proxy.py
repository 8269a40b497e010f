"""The gRPC proxy between the real Firestore client and the emulator, as tests use it: it counts calls, and can fail."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, ClassVar

import grpc
from google.cloud.firestore_v1.types import ListDocumentsResponse, RunQueryResponse

from scripts.local.proxy import Proxy


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


class Plan:
    """Planned faults, late calls and counters of a network, on a real wire or in memory."""

    failed: ClassVar[type[Exception]]
    """What a call raises that the store refuses."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.documents: Counter[str] = Counter()
        """Documents that the store sent, by method."""
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self._late: list[Callable[[], Any]] = []

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
            except self.failed:
                continue

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


class FaultProxy(Plan, Proxy):
    """Counts what passes, and fails what is planned."""

    failed = grpc.RpcError

    def __init__(self, target: str) -> None:
        Plan.__init__(self)
        Proxy.__init__(self, target)

    def forward(self, method: str, request: bytes, context: grpc.ServicerContext) -> list[bytes]:
        """The emulator's messages, or the fault that is planned."""

        def send() -> list[bytes]:
            replies = super(FaultProxy, self).forward(method, request, context)
            with self._lock:
                self.documents[method] += sum(_documents(method, reply) for reply in replies)
            return replies

        fault = self._next(method, request)
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
        context.abort(fault.status, f"planned: {fault.way.name}")
        raise AssertionError("abort raises")


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
