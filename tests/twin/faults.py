"""A network that fails as planned: what `tests/fault_proxy.py` is on a real wire, in memory."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from google.api_core.exceptions import GoogleAPICallError, from_grpc_status

from scripts.local.proxy import STREAMS
from tests.fault_proxy import Fault, Way
from tests.twin.wire import Rpc


class Faults:
    """Counters and planned faults of a network; called with each RPC."""

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
        for apply in late:
            try:
                apply()
            except GoogleAPICallError:
                continue

    def __call__(self, rpc: Rpc) -> Any:
        fault = self._next(rpc)
        if fault is None:
            return self._sent(rpc)
        if fault.first is not None:
            fault.first()
            return self._sent(rpc)
        return self._failed(fault, rpc)

    def _sent(self, rpc: Rpc) -> Any:
        answer = rpc.apply()
        with self._lock:
            self.documents[rpc.method] += _documents(rpc.method, answer)
        return answer

    def _failed(self, fault: Fault, rpc: Rpc) -> Any:
        error: GoogleAPICallError = from_grpc_status(fault.status, f"planned: {fault.way.name}")  # type: ignore[no-untyped-call]  # google's
        if fault.way is Way.TWICE:
            self._sent(rpc)
            return self._sent(rpc)
        if fault.way is Way.LOSE_REPLY:
            answer = self._sent(rpc)
            if fault.kept and rpc.method in STREAMS:
                return _broken_off(answer[: fault.kept], error)
        if fault.way is Way.LATE:
            with self._lock:
                self._late.append(lambda: self._sent(rpc))
        raise error

    def _next(self, rpc: Rpc) -> Fault | None:
        with self._lock:
            self.calls[rpc.method] += 1
            for fault in self._faults:
                if fault.method != rpc.method or not fault.matches(rpc.request.SerializeToString()):
                    continue
                if fault.skip:
                    fault.skip -= 1
                    return None
                fault.times -= 1
                if not fault.times:
                    self._faults.remove(fault)
                return fault
            return None


def _documents(method: str, answer: Any) -> int:
    if method == "ListDocuments":
        return len(answer.documents)
    if method == "BatchGetDocuments":
        return len(answer)
    return sum(each.HasField("document") for each in answer) if method == "RunQuery" else 0


def _broken_off(responses: list[Any], error: GoogleAPICallError) -> Iterator[Any]:
    yield from responses
    raise error
