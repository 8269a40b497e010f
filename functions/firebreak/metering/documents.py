"""The documents of one query, as they come: counted one by one, and never more than were set aside."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from google.cloud.firestore_v1.types import RunQueryRequest, RunQueryResponse

from firebreak.metering.bounds import bound
from firebreak.metering.counter import ReadMeter
from firebreak.metering.hold import Hold

type Send = Callable[[RunQueryRequest], Any]


class Documents(Hold):
    """Iterates over the responses; if what it has set aside is wanted elsewhere, it reads on ahead of its consumer.

    Left before its end, the rpc is cancelled with the last reference to this, and all that was set aside stays counted:
    nobody can tell what the server had read by then.
    """

    def __init__(self, meter: ReadMeter, request: RunQueryRequest, send: Send) -> None:
        super().__init__(meter)
        self._ahead: deque[RunQueryResponse] = deque()
        self._ended: BaseException | None = None
        with self.lock:
            self._bound = bound(RunQueryRequest.pb(request).structured_query, self)
            try:
                self._responses = send(request)
            except BaseException as error:
                self.fail(error)
                raise
            if self._bound.offset:
                self.spend(self._bound.offset)

    def __iter__(self) -> Iterator[RunQueryResponse]:
        return self

    def __next__(self) -> RunQueryResponse:
        with self.lock:
            if self._ahead:
                return self._ahead.popleft()
            if self._ended is not None:
                raise self._ended
            return self._receive()

    def settle(self) -> None:
        """Read to the end, or wait until whoever is reading has."""
        with self.lock:
            while self._ended is None:
                try:
                    self._ahead.append(self._receive())
                except Exception:  # noqa: BLE001 - the consumer's: it is raised where that comes to it
                    return

    def _receive(self) -> RunQueryResponse:
        try:
            self.meter.check()
            self._stop_at_bound()
            response: RunQueryResponse = next(self._responses)
            if RunQueryResponse.pb(response).HasField("document"):
                self.spend(1)
        except StopIteration as end:
            self._ended = end
            self.end()
            raise
        except BaseException as error:
            self._responses.cancel()
            self.fail(error)
            raise
        return response

    def _stop_at_bound(self) -> None:
        if self._bound.cut and not self.left:
            raise self.meter.exceed()

    def fail(self, error: BaseException) -> None:
        self._ended = error
        super().fail(error)
