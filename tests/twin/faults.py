"""A network that fails as planned: what `tests/fault_proxy.py` is on a real wire, in memory."""

from collections.abc import Iterator
from typing import Any

from google.api_core.exceptions import GoogleAPICallError, from_grpc_status

from scripts.local.proxy import STREAMS
from tests.fault_proxy import Fault, Plan, Way
from tests.twin.wire import Rpc


class Faults(Plan):
    """Counters and planned faults of a network; called with each RPC."""

    failed = GoogleAPICallError

    def __call__(self, rpc: Rpc) -> Any:
        fault = self._next(rpc.method, rpc.request.SerializeToString())
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


def _documents(method: str, answer: Any) -> int:
    if method == "ListDocuments":
        return len(answer.documents)
    if method == "BatchGetDocuments":
        return len(answer)
    return sum(each.HasField("document") for each in answer) if method == "RunQuery" else 0


def _broken_off(responses: list[Any], error: GoogleAPICallError) -> Iterator[Any]:
    yield from responses
    raise error
