"""The bill of one call: opened by a reserve, written as the answer comes in, closed by one settle."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from firebreak.bucket.ledger import Ledger
from firebreak.bucket.settle import UNBOOKED
from firebreak.errors import Refused
from firebreak.events import Event, Severity, emit, note
from firebreak.gemini import estimate
from firebreak.gemini.admit import Account, admit, report
from firebreak.gemini.client import Gemini
from firebreak.gemini.failure import ModelFailure
from firebreak.gemini.message import Chunk
from firebreak.gemini.prices import Tally
from firebreak.gemini.request import Request
from firebreak.pool import Pool


class Bill:
    """What an admitted call has said and cost so far. In doubt it costs the estimate."""

    def __init__(self, request: Request, request_id: str, estimated: int, payer: Account) -> None:
        self._request = request
        self._request_id = request_id
        self._tally = Tally(estimate=estimated, price=payer.price)
        self._chunks: list[Chunk] = []
        self._free = False
        self.remaining: int | None = None

    @property
    def charge(self) -> int:
        """Bucket tokens that the call costs, as far as is known."""
        return 0 if self._free else self._tally.charge

    @property
    def usage(self) -> Mapping[str, int]:
        """Usage as the callable answers it."""
        return self._tally.usage.as_json()

    def see(self, chunk: Chunk) -> None:
        """Take in the answer, or a piece of it."""
        self._chunks.append(chunk)
        self._tally = self._tally.see(chunk.usage, finished=chunk.finish_reason is not None)

    def failed(self, failure: ModelFailure) -> Refused:
        """The refusal of a call without an answer; it is free only if nothing of it can have run."""
        report(failure, self._request.model)
        self._free = not failure.may_be_billed and not self._chunks
        return self.refused(failure.refusal)

    def refused(self, kind: type[Refused]) -> Refused:
        """A refusal in the middle of a call, which tells what it cost."""
        return kind(charged=self.charge)

    def result(self) -> dict[str, Any]:
        """The whole answer, as the callable gives it."""
        calls = [call for chunk in self._chunks for call in chunk.calls]
        finished = [chunk.finish_reason for chunk in self._chunks if chunk.finish_reason is not None]
        return {
            "text": "".join(chunk.text for chunk in self._chunks),
            **({"functionCalls": calls} if calls else {}),
            "finishReason": finished[-1] if finished else None,
            "model": self._chunks[-1].model if self._chunks else self._request.model,
            "usage": dict(self.usage),
            "charged": self.charge,
            "remaining": self.remaining,
            "requestId": self._request_id,
        }

    def audit(self) -> None:
        """Log what does not fit: usage that cannot be, and bounds that did not hold."""
        usage, estimated = self._tally.usage, self._tally.estimate
        if not usage.believable or not usage.adds_up:
            emit(Event.USAGE, severity=Severity.WARNING, model=self._request.model, **asdict(usage))
        if self.charge > estimated:
            emit(Event.OVERRUN, severity=Severity.WARNING, estimated=estimated, actual=self.charge)
        bound = estimate.prompt_bound(self._request)
        if usage.believable and not self._request.has_media and (usage.prompt or 0) > bound:
            emit(Event.PROMPT_BOUND, severity=Severity.WARNING, bound=bound, actual=usage.prompt)


@contextmanager
def billed(
    request: Request, request_id: str, payer: Account, *, ledger: Ledger, gemini: Gemini, pool: Pool
) -> Iterator[Bill]:
    """Admit a call, and settle it once when the block ends, however it ends.

    Raises:
        Refused: it is not admitted.
    """
    admitted = admit(request, request_id, payer, ledger=ledger, gemini=gemini, pool=pool)
    hold = admitted.hold
    estimated = hold.estimated if hold else estimate.most(request, payer.price)
    note(estimated=estimated, model=request.model)
    bill = Bill(request, request_id, estimated, payer)
    try:
        yield bill
    finally:
        charge = bill.charge
        counters = {"calls": 1, "charged": charge, **bill.usage}
        settled = ledger.settle(hold, actual=charge, counters=counters) if hold else UNBOOKED
        if admitted.draw is not None:
            pool.give_back(admitted.draw, estimated - charge)
        bill.remaining = settled.remaining
        note(charged=charge, booked=settled.booked)
        bill.audit()
