"""Admit: the bound that a call reserves, found as cheaply as it can be."""

from dataclasses import dataclass

from firebreak.bucket.ledger import Ledger
from firebreak.bucket.reserve import Ask, Hold
from firebreak.errors import (
    Blocked,
    BucketEmpty,
    Contention,
    DeadlineExceeded,
    ModelUnavailable,
    PoolEmpty,
    Refused,
    StoreUnavailable,
    TooLarge,
)
from firebreak.events import Event, Severity, emit, shadowed
from firebreak.gemini import estimate
from firebreak.gemini.client import Gemini
from firebreak.gemini.contents import Media
from firebreak.gemini.failure import ModelFailure
from firebreak.gemini.request import Bounds, Request
from firebreak.limits.pool import Draw, Pool
from firebreak.settings.settings import Settings
from firebreak.settings.tiers import User, daily_limit, tier_name
from firebreak.settings.weights import FLAT, Price

COUNT_DEADLINE_S = 5.0
# When to try again where the model could not count for a moment.
COUNT_RETRY_S = 2

# What shadow mode admits. A duplicate is not a limit: the client asked for it not to run twice.
LIMITS = (PoolEmpty, BucketEmpty, TooLarge, Blocked, Contention, StoreUnavailable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who pays: `limit` in tokens a day, tightened to `percent`, `share` of the pool.

    With `shadow` a limit is logged, not enforced.
    """

    user_key: str
    limit: int
    share: str
    percent: int = 100
    shadow: bool = False
    price: Price = FLAT


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """What an admitted call holds; None where shadow mode let it pass a limit, and nothing is booked of it there."""

    hold: Hold | None
    draw: Draw | None


def account(user: User, model: str, knobs: Settings, *, percent: int) -> Account:
    """The account of a user's call of this model, while `percent` of the daily limits hold."""
    return Account(
        user_key=user.key,
        limit=daily_limit(knobs, tier=user.tier, anonymous=user.anonymous, percent=percent),
        percent=percent,
        share=tier_name(knobs, tier=user.tier, anonymous=user.anonymous),
        shadow=knobs.enforce == "shadow",
        price=knobs.weights.get(model, FLAT),
    )


def bounds(knobs: Settings) -> Bounds:
    """What the settings allow a request to be."""
    return Bounds(
        models=knobs.models,
        max_output_tokens=knobs.max_output_tokens,
        default_output_tokens=knobs.default_output_tokens,
        max_prompt_bytes=knobs.max_prompt_bytes,
        max_turns=knobs.max_turns,
        media=Media(types=knobs.allowed_mime_types, most_bytes=knobs.max_inline_bytes),
        tools=knobs.allowed_tools,
        system=knobs.system_instruction,
        allow_client_system=knobs.allow_client_system,
    )


def admit(request: Request, request_id: str, payer: Account, *, ledger: Ledger, gemini: Gemini, pool: Pool) -> Admitted:
    """Draw from the pool and reserve; in shadow mode a call passes that the limits refuse.

    Raises:
        Refused: of the pool or the bucket; or of the model, if it was asked to count and would not, or is known to
            refuse for a while yet. Nothing is drawn.
    """
    try:
        gemini.look(request)
    except ModelFailure as known:
        raise known.refused(charged=0) from known
    try:
        return _Admission(request, request_id, payer, ledger, gemini, pool).reserve()
    except LIMITS as refusal:
        if not payer.shadow:
            raise
        shadowed(refusal, payer.user_key)
        return Admitted(hold=None, draw=None)


def report(failure: ModelFailure, model: str) -> None:
    """Log why the model gave no answer."""
    severity = Severity.ERROR if failure.ours else Severity.WARNING
    emit(
        Event.MODEL,
        severity=severity,
        reason=str(failure),
        status=failure.status,
        ours=failure.ours,
        model=model,
        cause=failure.cause,
    )


@dataclass(frozen=True, slots=True)
class _Admission:
    request: Request
    request_id: str
    payer: Account
    ledger: Ledger
    gemini: Gemini
    pool: Pool

    def reserve(self) -> Admitted:
        """Reserve the byte bound of a text; ask the model to count only what needs it, at most once."""
        if self.request.has_media:
            return self._reserve(counted=self._count_media())
        try:
            return self._reserve(counted=None)
        except (BucketEmpty, TooLarge) as refusal:
            if int(refusal.details["remaining"]) < estimate.most_of_the_answer(self.request, self.payer.price):
                raise
            counted = self._count()
            if counted >= estimate.prompt_bound(self.request):
                raise
            return self._reserve(counted=counted)

    def _reserve(self, *, counted: int | None) -> Admitted:
        bound = estimate.most(self.request, self.payer.price, counted=counted)
        reservation = self.ledger.reservation(self.payer.user_key, self.request_id, self._ask(bound))
        # Whom the bucket refuses must not take the pool's tokens from others, even for long enough to be refused.
        reservation.look()
        draw = self._draw(bound)
        try:
            hold = reservation.run()
        except BaseException:
            self._give_back(draw, bound)
            raise
        return Admitted(hold=hold, draw=draw)

    def _count_media(self) -> int:
        """Bytes bound no picture. But nobody who cannot pay even for the answer gets a count for free."""
        least = estimate.most_of_the_answer(self.request, self.payer.price)
        self.ledger.check(self.payer.user_key, self.request_id, self._ask(least))
        draw = self._draw(least)
        try:
            return self._count()
        finally:
            self._give_back(draw, least)

    def _draw(self, tokens: int) -> Draw | None:
        try:
            return self.pool.take(self.payer.share, tokens)
        except (PoolEmpty, StoreUnavailable) as refusal:
            if not self.payer.shadow:
                raise
            shadowed(refusal, self.payer.user_key)
            return None

    def _give_back(self, draw: Draw | None, tokens: int) -> None:
        if draw is not None:
            self.pool.give_back(draw, tokens)

    def _ask(self, bound: int) -> Ask:
        payer = self.payer
        return Ask(estimate=bound, limit=payer.limit, model=self.request.model, percent=payer.percent)

    def _count(self) -> int:
        try:
            return self.gemini.count(self.request, deadline_s=COUNT_DEADLINE_S)
        except ModelFailure as failure:
            report(failure, self.request.model)
            raise _uncounted(failure) from failure


def _uncounted(failure: ModelFailure) -> Refused:
    """The refusal of a call that could not be counted: it cost nothing, and says nothing of what the user has left."""
    if failure.refusal not in (ModelUnavailable, DeadlineExceeded) or failure.retry_after_s is not None:
        return failure.refused(charged=0)
    return ModelUnavailable(retry_after_s=None if failure.ours else COUNT_RETRY_S, charged=0)
