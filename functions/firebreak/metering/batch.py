"""Batches and transactions whose writes count when they are queued."""

from typing import Any

from google.api_core import gapic_v1
from google.cloud import firestore
from google.cloud.firestore_v1.types import Write, WriteResult

from firebreak.metering.meter import WriteMeter

# Writes that one commit may hold; Firestore itself has taken 500.
FLUSH_AT = 450


class EmptyBatch(ValueError):
    """A batch was committed with nothing in it."""


class TransactionTooLarge(ValueError):
    """A transaction cannot be sent in parts, and this one has more writes than one commit may hold."""


class Queued(list[Write]):
    """Writes, of which so many were counted on one meter and not sent since."""

    _counted = 0
    _meter: WriteMeter | None = None

    def add(self, writes: list[Write], meter: WriteMeter) -> None:
        """Queue writes that `meter` has counted."""
        if meter is not self._meter:
            self._meter, self._counted = meter, 0
        self._counted += len(writes)
        self.extend(writes)

    def claim(self, meter: WriteMeter) -> int:
        """How many `meter` has counted, for the one sending that they were counted for."""
        counted, self._counted = self._counted, 0
        return counted if meter is self._meter else 0


class Batch(firestore.WriteBatch):
    """A batch that sends what it holds when a write more than `FLUSH_AT` is queued.

    Up to `FLUSH_AT` writes it is atomic, as any batch. Beyond, each part is; what an earlier part wrote stays written
    when a later one fails. So a loop that only queues is bounded like one that commits.
    """

    def __init__(self, client: firestore.Client) -> None:
        super().__init__(client)
        self._flushed: list[WriteResult] = []

    def _add_write_pbs(self, write_pbs: list[Write]) -> None:
        for write in write_pbs:
            meter = _count(self, 1)
            # Counted first: a write that may not be must not cause those before it to be sent.
            if len(self._write_pbs) >= FLUSH_AT:
                super().commit()
                self._flushed += self.write_results or []
            _queue(self, [write], meter)

    def commit(
        self,
        retry: Any = gapic_v1.method.DEFAULT,  # noqa: ANN401 - the SDK's own
        timeout: float | None = None,
    ) -> list[WriteResult]:
        """Send what is queued; the results are those of all writes since the last commit.

        Raises:
            EmptyBatch: nothing is queued.
            MeterExceeded: the request has exceeded a meter.
        """
        results: list[WriteResult] = self._flushed + super().commit(retry, timeout)
        self.write_results, self._flushed = results, []
        return results


class Transaction(firestore.Transaction):
    """A transaction that is never sent in parts; each attempt counts what it queues."""

    def _add_write_pbs(self, write_pbs: list[Write]) -> None:
        if self._read_only:
            super()._add_write_pbs(write_pbs)  # which raises
        if len(self._write_pbs) + len(write_pbs) > FLUSH_AT:
            raise TransactionTooLarge(f"a transaction may hold {FLUSH_AT} writes")
        _queue(self, write_pbs, _count(self, len(write_pbs)))

    def _rollback(self) -> None:
        # Without this, an error of the beginning is lost behind "has no transaction ID".
        if self.in_progress:
            super()._rollback()


def _count(batch: firestore.WriteBatch, writes: int) -> WriteMeter:
    meter: WriteMeter = batch._client._firestore_api.writes()  # noqa: SLF001 - our own `Api`
    meter.take(writes)
    return meter


def _queue(batch: firestore.WriteBatch, writes: list[Write], meter: WriteMeter) -> None:
    queued = batch._write_pbs  # noqa: SLF001 - the SDK puts a new list there after each commit
    if not isinstance(queued, Queued):
        queued = batch._write_pbs = Queued(queued)  # noqa: SLF001 - as above
    queued.add(writes, meter)
