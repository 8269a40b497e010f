"""Admit: the bound that a call reserves, found as cheaply as it can be."""

from dataclasses import dataclass

from firebreak.attest import User
from firebreak.bucket.hold import Ask, Hold
from firebreak.bucket.ledger import Ledger
from firebreak.errors import Blocked, BucketEmpty, Contention, Refused, StoreUnavailable, TooLarge
from firebreak.events import Event, Severity, emit, pseudonym
from firebreak.gemini import estimate
from firebreak.gemini.client import Gemini
from firebreak.gemini.contents import Media
from firebreak.gemini.failure import ModelFailure
from firebreak.gemini.prices import FLAT, Price
from firebreak.gemini.request import Bounds, Request
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
    shadow: bool = False
    price: Price = FLAT


def account(user: User, model: str, knobs: Settings) -> Account:
    """The account of a user's call of this model."""
    return Account(
        uid=user.uid,
        limit=daily_limit(knobs, tier=user.tier, anonymous=user.anonymous),
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


def admit(request: Request, request_id: str, payer: Account, ledger: Ledger, gemini: Gemini) -> Hold | None:
    """Reserve; None where shadow mode lets a call pass that the limits refuse, and books nothing of it.

    Raises:
        Refused: of the bucket; or of the model, if it was asked to count and would not.
    """
    try:
        return _Admission(request, request_id, payer, ledger, gemini).reserve()
    except LIMITS as refusal:
        if not payer.shadow:
            raise
        emit(Event.SHADOW, severity=Severity.WARNING, reason=refusal.reason.value, user=pseudonym(payer.uid))
        return None


def report(failure: ModelFailure, model: str) -> None:
    """Log why the model gave no answer."""
    severity = Severity.ERROR if failure.ours else Severity.WARNING
    emit(Event.MODEL, severity=severity, reason=str(failure), status=failure.status, ours=failure.ours, model=model)


@dataclass(frozen=True, slots=True)
class _Admission:
    request: Request
    request_id: str
    payer: Account
    ledger: Ledger
    gemini: Gemini

    def reserve(self) -> Hold:
        """Reserve the byte bound of a text; ask the model to count only what needs it, at most once."""
        if self.request.has_media:
            # Bytes bound no picture. But nobody whose bucket cannot pay even for the answer gets a count for free.
            least = self._ask(estimate.most_of_the_answer(self.request, self.payer.price))
            self.ledger.check(self.payer.uid, self.request_id, least)
            return self._reserve(counted=self._count(None))
        try:
            return self._reserve(counted=None)
        except (BucketEmpty, TooLarge) as refusal:
            if int(refusal.details["remaining"]) < estimate.most_of_the_answer(self.request, self.payer.price):
                raise
            counted = self._count(refusal)
            if counted >= estimate.prompt_bound(self.request):
                raise
            return self._reserve(counted=counted)

    def _reserve(self, *, counted: int | None) -> Hold:
        bound = estimate.most(self.request, self.payer.price, counted=counted)
        return self.ledger.reserve(self.payer.uid, self.request_id, self._ask(bound))

    def _ask(self, bound: int) -> Ask:
        return Ask(estimate=bound, limit=self.payer.limit, model=self.request.model)

    def _count(self, refusal: Refused | None) -> int:
        try:
            return self.gemini.count(self.request, deadline_s=COUNT_DEADLINE_S)
        except ModelFailure as failure:
            report(failure, self.request.model)
            raise refusal or failure.refusal() from failure
