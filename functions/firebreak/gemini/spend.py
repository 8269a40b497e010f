"""Spend: reserve an upper bound, call the model, settle the real usage; every exit settles once."""

import uuid
from dataclasses import dataclass

from firebreak.attest import User
from firebreak.bucket.ledger import Ledger
from firebreak.bucket.reserve import Ask, Hold
from firebreak.bucket.settle import UNBOOKED
from firebreak.errors import Blocked, BucketEmpty, Contention, StoreUnavailable, TooLarge
from firebreak.events import Event, Severity, emit, note, pseudonym
from firebreak.gemini import estimate, prices
from firebreak.gemini.client import Gemini, ModelFailure, Reply
from firebreak.gemini.request import Bounds, Request, parse
from firebreak.gemini.request import request_id as request_id_of
from firebreak.settings import Settings
from firebreak.tiers import daily_limit

COUNT_DEADLINE_S = 5.0

# What shadow mode admits. A duplicate is not a limit: the client asked for it not to run twice.
LIMITS = (BucketEmpty, TooLarge, Blocked, Contention, StoreUnavailable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who pays: `limit` in tokens a day; with `shadow` a limit is logged, not enforced."""

    uid: str
    limit: int
    shadow: bool


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
        system=knobs.system_instruction,
        allow_client_system=knobs.allow_client_system,
    )
    limit = daily_limit(knobs, tier=user.tier, anonymous=user.anonymous)
    return generate(
        parse(data, bounds),
        account=Account(uid=user.uid, limit=limit, shadow=knobs.enforce == "shadow"),
        request_id=request_id_of(data) or uuid.uuid4().hex,
        deadline_s=knobs.gemini_deadline_s,
        ledger=ledger,
        gemini=gemini,
    )


def generate(
    request: Request, *, account: Account, request_id: str, deadline_s: float, ledger: Ledger, gemini: Gemini
) -> dict[str, object]:
    """Answer one request; the result is the callable's.

    Raises:
        Refused: of the bucket, before the model is called; or of the model, with `charged` in its details.
    """
    hold = _admit(request, account, request_id, ledger, gemini)
    # In doubt, charge: only a proof below lowers this.
    actual = estimated = hold.estimated if hold else estimate.bound(request)
    note(estimated=estimated, model=request.model)
    reply: Reply | None = None
    try:
        reply = gemini.generate(request, deadline_s=deadline_s)
        actual = _cost(reply, estimated)
    except ModelFailure as failure:
        _report(failure, request.model)
        if not failure.may_be_billed:
            actual = 0
        raise failure.refusal(charged=actual) from failure
    finally:
        usage = (reply.usage if reply else prices.Usage()).as_json()
        counters = {"calls": 1, "charged": actual, **usage}
        settled = ledger.settle(hold, actual=actual, counters=counters) if hold else UNBOOKED
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


def _admit(request: Request, account: Account, request_id: str, ledger: Ledger, gemini: Gemini) -> Hold | None:
    """Reserve; None where shadow mode lets a call pass that the limits refuse, and books nothing of it."""
    try:
        return _reserve(request, account, request_id, ledger, gemini)
    except LIMITS as refusal:
        if not account.shadow:
            raise
        emit(Event.SHADOW, severity=Severity.WARNING, reason=refusal.reason.value, user=pseudonym(account.uid))
        return None


def _reserve(request: Request, account: Account, request_id: str, ledger: Ledger, gemini: Gemini) -> Hold:
    """Reserve the byte bound; only if that does not fit, and the answer alone would, ask the model to count."""

    def reserve(bound: int) -> Hold:
        return ledger.reserve(account.uid, request_id, Ask(estimate=bound, limit=account.limit, model=request.model))

    try:
        return reserve(estimate.bound(request))
    except (BucketEmpty, TooLarge) as refusal:
        # A user near the end of the bucket would otherwise have every prompt counted for free.
        if int(refusal.details["remaining"]) <= estimate.output_bound(request):
            raise
        try:
            counted = gemini.count(request, deadline_s=COUNT_DEADLINE_S)
        except ModelFailure as failure:
            _report(failure, request.model)
            raise refusal from failure
        closer = counted + estimate.overhead(request) + estimate.output_bound(request)
        if closer >= estimate.bound(request):
            raise
        return reserve(closer)


def _cost(reply: Reply, estimated: int) -> int:
    """Tokens to book: the usage of a finished answer, else the estimate."""
    billed = prices.billed(reply.usage)
    if reply.finish_reason is None or billed is None:
        return estimated
    if billed > estimated:
        emit(Event.OVERRUN, severity=Severity.WARNING, estimated=estimated, actual=billed, model=reply.model)
    return billed


def _report(failure: ModelFailure, model: str) -> None:
    severity = Severity.ERROR if failure.ours else Severity.WARNING
    emit(Event.MODEL, severity=severity, reason=str(failure), status=failure.status, ours=failure.ours, model=model)
