"""Spend: reserve an upper bound, call the model, settle the real usage; every exit settles once."""

import uuid

from firebreak.attest import User
from firebreak.bucket.ledger import Ledger
from firebreak.bucket.reserve import Ask, Hold
from firebreak.errors import BucketEmpty, TooLarge
from firebreak.events import Event, Severity, emit, note
from firebreak.gemini import estimate, prices
from firebreak.gemini.client import Gemini, ModelFailure, Reply
from firebreak.gemini.request import Bounds, Request, parse
from firebreak.gemini.request import request_id as request_id_of
from firebreak.settings import Settings

COUNT_DEADLINE_S = 5.0


def answer(data: object, *, user: User, knobs: Settings, ledger: Ledger, gemini: Gemini) -> dict[str, object]:
    """The `generate` callable: its fields checked, its answer charged to the user's bucket.

    Raises:
        Refused: a field is wrong, the bucket refuses, or the model gives no answer.
    """
    bounds = Bounds(
        models=knobs.models,
        max_output_tokens=knobs.max_output_tokens,
        default_output_tokens=knobs.default_output_tokens,
        max_prompt_bytes=knobs.max_prompt_bytes,
    )
    return generate(
        parse(data, bounds),
        uid=user.uid,
        request_id=request_id_of(data) or uuid.uuid4().hex,
        limit=knobs.max_daily_tokens,
        deadline_s=knobs.gemini_deadline_s,
        ledger=ledger,
        gemini=gemini,
    )


def generate(
    request: Request,
    *,
    uid: str,
    request_id: str,
    limit: int,
    deadline_s: float,
    ledger: Ledger,
    gemini: Gemini,
) -> dict[str, object]:
    """Answer one request; the result is the callable's.

    Raises:
        Refused: of the bucket, before the model is called; or of the model, with `charged` in its details.
    """
    hold = _reserve(request, uid, request_id, limit, ledger, gemini)
    note(estimated=hold.estimated, model=request.model)
    # In doubt, charge: only a proof below lowers this.
    actual, reply = hold.estimated, None
    try:
        reply = gemini.generate(request, deadline_s=deadline_s)
        actual = _cost(reply, hold)
    except ModelFailure as failure:
        _report(failure, request.model)
        if not failure.may_be_billed:
            actual = 0
        raise failure.refusal(charged=actual) from failure
    finally:
        usage = (reply.usage if reply else prices.Usage()).as_json()
        settled = ledger.settle(hold, actual=actual, counters={"calls": 1, "charged": actual, **usage})
        note(charged=actual, booked=settled.booked)
    return {
        "text": reply.text,
        "finishReason": reply.finish_reason,
        "model": reply.model,
        "usage": usage,
        "charged": actual,
        "remaining": settled.remaining,
        "requestId": request_id,
    }


def _reserve(request: Request, uid: str, request_id: str, limit: int, ledger: Ledger, gemini: Gemini) -> Hold:
    """Reserve the byte bound; only if that does not fit, and the answer alone would, ask the model to count."""

    def reserve(prompt_tokens: int) -> Hold:
        bound = prompt_tokens + estimate.output_bound(request)
        return ledger.reserve(uid, request_id, Ask(estimate=bound, limit=limit, model=request.model))

    try:
        return reserve(estimate.prompt_bound(request))
    except (BucketEmpty, TooLarge) as refusal:
        # A user near the end of the bucket would otherwise have every prompt counted for free.
        if int(refusal.details["remaining"]) <= estimate.output_bound(request):
            raise
        try:
            counted = gemini.count(request, deadline_s=COUNT_DEADLINE_S)
        except ModelFailure as failure:
            _report(failure, request.model)
            raise refusal from failure
        closer = counted + estimate.overhead(request)
        if closer >= estimate.prompt_bound(request):
            raise
        return reserve(closer)


def _cost(reply: Reply, hold: Hold) -> int:
    """Tokens to book: the usage of a finished answer, else the estimate."""
    billed = prices.billed(reply.usage)
    if reply.finish_reason is None or billed is None:
        return hold.estimated
    if billed > hold.estimated:
        emit(Event.OVERRUN, severity=Severity.WARNING, estimated=hold.estimated, actual=billed, model=reply.model)
    return billed


def _report(failure: ModelFailure, model: str) -> None:
    severity = Severity.ERROR if failure.ours else Severity.WARNING
    emit(Event.MODEL, severity=severity, reason=str(failure), status=failure.status, ours=failure.ours, model=model)
