"""A network that fails as planned: what `tests/fault_proxy.py` is on a real wire, in memory."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from google.api_core.exceptions import GoogleAPICallError, from_grpc_status

from tests.fault_proxy import STREAMS, Fault, Way
from tests.twin.wire import Rpc


class Faults:
    """Counters and planned faults of a network; called with each RPC."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
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
            return rpc.apply()
        if fault.first is not None:
            fault.first()
            return rpc.apply()
        return self._failed(fault, rpc)

    def _failed(self, fault: Fault, rpc: Rpc) -> Any:
        error: GoogleAPICallError = from_grpc_status(fault.status, f"planned: {fault.way.name}")  # type: ignore[no-untyped-call]  # google's
        if fault.way is Way.TWICE:
            rpc.apply()
            return rpc.apply()
        if fault.way is Way.LOSE_REPLY:
            answer = rpc.apply()
            if fault.kept and rpc.method in STREAMS:
                return _broken_off(answer[: fault.kept], error)
        if fault.way is Way.LATE:
            with self._lock:
                self._late.append(rpc.apply)
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


def _broken_off(responses: list[Any], error: GoogleAPICallError) -> Iterator[Any]:
    yield from responses
    raise error
