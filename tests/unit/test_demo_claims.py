"""The demo's verdicts: each claim fails on the evidence that contradicts it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from scripts.demo.books import Books, Bucket, CallDocument
from scripts.demo.claim import Claim
from scripts.demo.claims import claims
from scripts.demo.evidence import Crowd, Evidence, ModelSaw
from scripts.demo.tally import Answer, Refusal, Tally
from tests.unit.overspent import OVERSPENT

LIMIT = 10_000
SECOND_US = 1_000_000
TOLD = {"reason": "tokens", "remaining": 1_000, "limit": LIMIT, "retryAfterSeconds": 9_000}


def answers(*at_ms: int) -> tuple[Answer, ...]:
    return tuple(Answer(at_ms=at, took_ms=50, usage={}) for at in at_ms)


def out_of_tokens(at_ms: int, **details: object) -> Refusal:
    return Refusal(at_ms=at_ms, code="resource-exhausted", details={**TOLD, **details})


def unattested(at_ms: int) -> Refusal:
    return Refusal(at_ms=at_ms, code="unauthenticated", details={"reason": "app-check"})


def seen(uid: str, *, answered: Sequence[Answer] = (), refused: Sequence[Refusal] = ()) -> Tally:
    return Tally(
        uids=(uid,),
        calls=len(answered) + len(refused),
        waits=0,
        answers=tuple(answered),
        refusals=tuple(refused),
    )


def books(*charged: int, level: int, status: str = "settled", seconds: int = 10) -> Books:
    calls = tuple(CallDocument(status=status, estimated=2_000, actual=actual) for actual in charged)
    return Books(bucket=Bucket(level=level, opened_us=0, updated_us=seconds * SECOND_US), calls=calls)


def contended(at_ms: int) -> Refusal:
    return Refusal(at_ms=at_ms, code="resource-exhausted", details={"reason": "contention"})


# Eight calls, of which four are still held.
CROWD = replace(seen("slow", refused=[contended(50)] * 4), calls=8)
TRUE = Evidence(
    limit=LIMIT,
    bot=seen("bot", refused=[unattested(1), unattested(2)]),
    bot_books=(Books(bucket=None),),
    runaway=seen("runaway", answered=answers(10, 20, 30), refused=[out_of_tokens(25), out_of_tokens(40)]),
    runaway_books=books(3_000, 3_000, 3_000, level=1_001),
    normal=seen("normal", answered=answers(5, 10, 15, 20, 25, 30, 35, 40, 45, 50)),
    normal_books=books(100, 200, level=9_700),
    overspend=OVERSPENT,
    crowd=Crowd(threads=8, slow=CROWD, other=seen("other", answered=answers(60))),
    model=ModelSaw(during_bot=0, runaway=3),
)


def failed(evidence: Evidence) -> list[str]:
    return [claim.text for claim in claims(evidence) if not claim.held]


def claim(evidence: Evidence, part: str) -> Claim:
    return next(claim for claim in claims(evidence) if part in claim.text)


def test_every_claim_holds_on_a_true_story() -> None:
    assert failed(TRUE) == []


@pytest.mark.parametrize(
    ("part", "lie"),
    [
        ("bot is refused", replace(TRUE, bot=seen("bot", answered=answers(1), refused=[unattested(2)]))),
        ("bot is refused", replace(TRUE, bot=seen("bot", refused=[out_of_tokens(2)]))),
        ("bot is refused", replace(TRUE, bot=seen("bot"))),
        ("never reaches Gemini", replace(TRUE, model=ModelSaw(during_bot=1, runaway=3))),
        ("leaves nothing", replace(TRUE, bot_books=(books(level=10_000),))),
        ("leaves nothing", replace(TRUE, bot_books=(books(9, level=9_000),))),
        ("leaves nothing", replace(TRUE, bot_books=())),
    ],
)
def test_a_bot_that_gets_anything_is_noticed(part: str, lie: Evidence) -> None:
    assert not claim(lie, part).held


@pytest.mark.parametrize("missing", ["remaining", "retryAfterSeconds", "limit"])
def test_a_refusal_without_data_is_noticed(missing: str) -> None:
    vague = [out_of_tokens(40, **{missing: None})]

    assert not claim(replace(TRUE, runaway=seen("runaway", answered=answers(10), refused=vague)), "act on").held


@pytest.mark.parametrize(("status", "held"), [("void", True), ("settled", False), ("held", False), (None, False)])
def test_a_call_sent_again_may_be_told_that_it_never_ran(status: str | None, held: bool) -> None:
    again = Refusal(at_ms=40, code="already-exists", details={"reason": "duplicate", "status": status})
    runaway = replace(TRUE.runaway, calls=TRUE.runaway.calls + 1, refusals=(*TRUE.runaway.refusals, again))

    assert claim(replace(TRUE, runaway=runaway), "act on").held is held


def test_a_runaway_that_is_never_refused_is_noticed() -> None:
    lie = replace(TRUE, runaway=seen("runaway", answered=answers(10, 20, 30)))

    assert {"the runaway is refused with a reason it can act on"} < set(failed(lie))


@pytest.mark.parametrize("level", [999, 1_003])
def test_one_token_given_away_or_lost_is_noticed(level: int) -> None:
    """Ten seconds refill one token of 10,000 a day, and rounding may show one more."""
    lie = replace(TRUE, runaway_books=books(3_000, 3_000, 3_000, level=level))

    assert not claim(lie, "to the token").held


def test_a_call_that_would_still_have_fitted_is_noticed() -> None:
    lie = replace(TRUE, runaway_books=books(2_000, 2_000, 2_000, level=4_000))

    assert not claim(lie, "exactly as far").held


def test_a_refusal_with_enough_left_is_noticed() -> None:
    early = seen("runaway", answered=answers(10, 20, 30), refused=[out_of_tokens(40, remaining=2_000)])

    assert not claim(replace(TRUE, runaway=early), "exactly as far").held


def test_an_answer_without_a_charge_is_noticed() -> None:
    lie = replace(TRUE, runaway_books=books(3_000, 3_000, level=4_000))

    assert not claim(lie, "accounted for").held


def test_a_call_left_held_is_noticed() -> None:
    lie = replace(TRUE, runaway_books=books(3_000, 3_000, 3_000, level=1_000, status="held"))

    assert not claim(lie, "accounted for").held


def test_a_model_request_beyond_the_admitted_is_noticed() -> None:
    lie = replace(TRUE, model=ModelSaw(during_bot=0, runaway=4))

    assert not claim(lie, "no other").held


def test_a_refused_normal_user_is_noticed() -> None:
    lie = replace(TRUE, normal=seen("normal", answered=TRUE.normal.answers, refused=[out_of_tokens(30)]))

    assert not claim(lie, "never refused").held


@pytest.mark.parametrize("at_ms", [(10, 20, 30, 31), (40, 41, 42, 43, 44, 45)])
def test_a_normal_user_starved_on_either_side_is_noticed(at_ms: tuple[int, ...]) -> None:
    lie = replace(TRUE, normal=seen("normal", answered=answers(*at_ms)))

    assert not claim(lie, "while the runaway burns").held


@pytest.mark.parametrize(
    "slow",
    [
        replace(CROWD, calls=4),
        replace(CROWD, refusals=(), calls=8),
        replace(CROWD, refusals=(out_of_tokens(50),) * 4),
        replace(CROWD, answers=answers(55)),
    ],
)
def test_a_user_who_holds_more_or_less_than_half_is_noticed(slow: Tally) -> None:
    lie = replace(TRUE, crowd=Crowd(threads=8, slow=slow, other=seen("other", answered=answers(60))))

    assert not claim(lie, "half of an instance").held


def test_another_user_who_waits_for_them_is_noticed() -> None:
    lie = replace(TRUE, crowd=Crowd(threads=8, slow=CROWD, other=seen("other", refused=[contended(60)])))

    assert not claim(lie, "while they are held").held


def test_without_the_models_log_nothing_is_claimed_of_it() -> None:
    texts = [claim.text for claim in claims(replace(TRUE, model=None, crowd=None))]

    assert len(texts) == len(claims(TRUE)) - 4
    assert [text for text in texts if "Gemini" in text] == ["Gemini goes on meanwhile"]
