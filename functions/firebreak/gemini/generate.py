"""One request to the model, whole or in pieces, and its bill: opened by a reserve, closed by one settle."""

import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from time import monotonic
from typing import Any

from firebreak.bucket.ledger import Ledger
from firebreak.bucket.settle import UNBOOKED
from firebreak.errors import Internal, Refused, ShuttingDown
from firebreak.events import Event, Severity, emit, note, unhandled
from firebreak.gemini import estimate
from firebreak.gemini.admit import Account, account, admit, bounds, report
from firebreak.gemini.answer import Chunk, content
from firebreak.gemini.client import Gemini, Upstream
from firebreak.gemini.failure import ModelFailure, broken, late
from firebreak.gemini.prices import Tally
from firebreak.gemini.request import Request, parse
from firebreak.gemini.request import request_id as request_id_of
from firebreak.limits.pool import Pool
from firebreak.settings.settings import Settings
from firebreak.settings.tiers import User
from firebreak.waiting import DONE, Done, terminating


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
    def model(self) -> str:
        """The model that was asked."""
        return self._request.model

    @property
    def charge(self) -> int:
        """Bucket tokens that the call costs, as far as is known."""
        return 0 if self._free else self._tally.charge

    @property
    def usage(self) -> Mapping[str, int]:
        """Usage as the callable answers it."""
        return self._tally.usage.as_json()

    @property
    def finished(self) -> bool:
        """Whether the model said that its answer is complete."""
        return self._tally.finished

    def see(self, chunk: Chunk) -> None:
        """Take in the answer, or a piece of it."""
        self._chunks.append(chunk)
        self._tally = self._tally.see(chunk.usage, finished=chunk.done)

    def end(self) -> None:
        """The answer came to its end: nothing was cut off.

        Raises:
            ModelFailure: there was nothing in it.
        """
        if all(chunk.says_nothing for chunk in self._chunks):
            raise broken("empty")
        self._tally = self._tally.end()

    def failed(self, failure: ModelFailure) -> Refused:
        """The refusal of a call without an answer; it is free only if nothing of it can have run."""
        report(failure, self._request.model)
        self._free = not failure.may_be_billed and not self._chunks
        return failure.refused(charged=self.charge)

    def refused(self, kind: type[Refused]) -> Refused:
        """A refusal in the middle of a call, which tells what it cost."""
        return kind(charged=self.charge)

    def result(self) -> dict[str, Any]:
        """The whole answer, as the callable gives it."""
        calls = [call for chunk in self._chunks for call in chunk.calls]
        blocked = _last(chunk.block_reason for chunk in self._chunks)
        turn = content(self._chunks)
        return {
            "text": "".join(chunk.text for chunk in self._chunks),
            **({"functionCalls": calls} if calls else {}),
            **({"content": turn} if turn else {}),
            **({"thoughtsOnly": True} if self._thoughts_only(turn) else {}),
            "finishReason": _last(chunk.finish_reason for chunk in self._chunks) or blocked,
            **({"blockReason": blocked} if blocked else {}),
            "model": _last(chunk.model for chunk in self._chunks) or self._request.model,
            "usage": dict(self.usage),
            "charged": self.charge,
            "remaining": self.remaining,
            "requestId": self._request_id,
        }

    def _thoughts_only(self, turn: Mapping[str, Any] | None) -> bool:
        """Whether the model thought until its tokens were used up, and said nothing."""
        parts = (turn or {}).get("parts", ())
        said = any(not part.get("thought") and part.get("text") != "" for part in parts)
        thought = self.usage["thoughtTokens"] > 0 or any(part.get("thought") for part in parts)
        return thought and not said

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


def _last(values: Iterable[str | None]) -> str | None:
    """The last of them that was given."""
    return next((value for value in reversed(list(values)) if value is not None), None)


@contextmanager
def billed(
    request: Request, request_id: str, payer: Account, *, ledger: Ledger, gemini: Gemini, pool: Pool
) -> Iterator[Bill]:
    """Admit a call, and settle it once when the block ends, however it ends.

    Raises:
        Refused: it is not admitted; or it fails in the block, with `charged` in its details.
    """
    admitted = admit(request, request_id, payer, ledger=ledger, gemini=gemini, pool=pool)
    hold = admitted.hold
    estimated = hold.estimated if hold else estimate.most(request, payer.price)
    note(estimated=estimated, model=request.model)
    bill = Bill(request, request_id, estimated, payer)
    try:
        yield bill
    except Refused as refusal:
        refusal.details.setdefault("charged", bill.charge)
        raise
    except Exception as error:
        unhandled(error)
        raise bill.refused(Internal) from error
    finally:
        charge = bill.charge
        counters = {"calls": 1, "charged": charge, **bill.usage}
        settled = ledger.settle(hold, actual=charge, counters=counters) if hold else UNBOOKED
        if admitted.draw is not None:
            pool.give_back(admitted.draw, estimated - charge)
        bill.remaining = settled.remaining
        note(charged=charge, booked=settled.booked)
        bill.audit()


HEARTBEAT_S = 5.0
# How often a stream that waits looks at its deadline, and whether the server is to end.
LOOK_S = 0.25
# How long a stream whose answer is complete may stay open: its last usage may come after the finish reason.
GRACE_S = 2.0

type Pieces = Generator[dict[str, Any] | None, None, dict[str, Any]]
"""Messages of a stream, None for a heartbeat; it returns the whole result."""


def answer(
    data: object,
    *,
    user: User,
    streaming: bool,
    knobs: Settings,
    percent: int,
    ledger: Ledger,
    gemini: Gemini,
    pool: Pool,
) -> dict[str, Any] | Pieces:
    """The `generate` callable: its result, or for a stream its pieces; `percent` of the daily limits hold.

    Raises:
        Refused: a field is wrong, the pool or the bucket refuses, or the model gives no answer.
    """
    request = parse(data, bounds(knobs))
    payer = account(user, request.model, knobs, percent=percent)
    ask = stream if streaming else generate
    return ask(
        request,
        request_id_of(data) or uuid.uuid4().hex,
        payer,
        deadline_s=knobs.gemini_deadline_s,
        ledger=ledger,
        gemini=gemini,
        pool=pool,
    )


def generate(
    request: Request, request_id: str, payer: Account, *, deadline_s: float, ledger: Ledger, gemini: Gemini, pool: Pool
) -> dict[str, Any]:
    """Answer one request with one whole answer.

    Raises:
        Refused: of the pool or the bucket, before the model is called; or of the model, with `charged` in its details.
    """
    with billed(request, request_id, payer, ledger=ledger, gemini=gemini, pool=pool) as bill:
        try:
            bill.see(gemini.generate(request, deadline_s=deadline_s))
            bill.end()
        except ModelFailure as failure:
            raise bill.failed(failure) from failure
    return bill.result()


def stream(
    request: Request, request_id: str, payer: Account, *, deadline_s: float, ledger: Ledger, gemini: Gemini, pool: Pool
) -> Pieces:
    """Answer one request in pieces as the model makes them.

    Raises:
        Refused: as `generate` does, and in the middle of an answer too.
    """
    with billed(request, request_id, payer, ledger=ledger, gemini=gemini, pool=pool) as bill:
        upstream = gemini.stream(request, deadline_s=deadline_s)
        try:
            yield from _pieces(upstream, bill, end=monotonic() + deadline_s)
        except ModelFailure as failure:
            raise bill.failed(failure) from failure
        finally:
            upstream.leave()
    return bill.result()


def _pieces(upstream: Upstream, bill: Bill, *, end: float) -> Generator[dict[str, Any] | None]:
    """The messages of a stream. A complete answer is not lost to what comes after it; then the charge is in doubt."""
    beat = monotonic() + HEARTBEAT_S
    while True:
        now = monotonic()
        if bill.finished and (terminating() or now >= end):
            return
        if terminating():
            raise bill.refused(ShuttingDown)
        if now >= end:
            raise late()
        chunk = _take(upstream, bill, wait_s=min(LOOK_S, end - now))
        if isinstance(chunk, Done):
            return
        if chunk is not None:
            if chunk.done:
                end = min(end, monotonic() + GRACE_S)
            bill.see(chunk)
            if chunk.text:
                yield {"text": chunk.text}
                beat = monotonic() + HEARTBEAT_S
        elif monotonic() >= beat:
            yield None
            beat = monotonic() + HEARTBEAT_S


def _take(upstream: Upstream, bill: Bill, *, wait_s: float) -> Chunk | Done | None:
    try:
        chunk = upstream.take(wait_s=wait_s)
        if isinstance(chunk, Done):
            bill.end()
    except ModelFailure as failure:
        if not bill.finished:
            raise
        report(failure, bill.model)
        return DONE
    return chunk
