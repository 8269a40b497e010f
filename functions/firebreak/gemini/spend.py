"""Spend: one request to the model, whole or in pieces, paid for by a user; every exit settles once."""

import uuid
from collections.abc import Generator
from time import monotonic
from typing import Any

from firebreak.attest import User
from firebreak.bucket.ledger import Ledger
from firebreak.errors import ShuttingDown
from firebreak.gemini.admit import Account, account, bounds, report
from firebreak.gemini.answer import Chunk
from firebreak.gemini.bill import Bill, billed
from firebreak.gemini.client import Gemini, Upstream
from firebreak.gemini.failure import ModelFailure, late
from firebreak.gemini.request import Request, parse
from firebreak.gemini.request import request_id as request_id_of
from firebreak.pool import Pool
from firebreak.reading import DONE, Done
from firebreak.settings import Settings
from firebreak.terminating import terminating

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
