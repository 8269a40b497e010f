"""The demo's verdicts on the overspent budget: each claim fails on the evidence that contradicts it."""

import json
from dataclasses import replace

import pytest

from scripts.demo.billing import ID
from scripts.demo.claim import Claim
from scripts.demo.deliveries import read
from scripts.demo.evidence import Overspend, Stage
from scripts.demo.overspend_claims import overspend_claims
from scripts.demo.stages import StageRow, late, stages
from tests.unit.overspent import (
    ANSWERED,
    ASKED,
    OVERSPENT,
    REFUSED,
    RESET,
    RESET_MS,
    TRIP,
    TRIPPED_MS,
    refusal,
    seen,
    stage,
)


def claim(act: Overspend, part: str) -> Claim:
    return next(claim for claim in overspend_claims(act) if part in claim.text)


def failed(act: Overspend) -> list[str]:
    return [claim.text for claim in overspend_claims(act) if not claim.held]


def test_every_claim_holds_on_a_true_act() -> None:
    assert failed(OVERSPENT) == []


@pytest.mark.parametrize(
    "lie",
    [
        replace(OVERSPENT, changes=(replace(TRIP, at_ms=9_000), RESET)),
        replace(OVERSPENT, changes=(replace(TRIP, what="tighten", at_ms=9_000), TRIP, RESET)),
        replace(OVERSPENT, below=stage()),
        replace(OVERSPENT, below=replace(OVERSPENT.below, published=11)),
        replace(OVERSPENT, below=stage(60, 120)),
        replace(OVERSPENT, edits=seen(ANSWERED[1:], REFUSED)),
    ],
)
def test_a_notice_that_acts_too_early_is_noticed(lie: Overspend) -> None:
    assert not claim(lie, "while the budget lasts").held


@pytest.mark.parametrize(
    "lie",
    [
        replace(OVERSPENT, changes=(TRIP, TRIP, RESET)),
        replace(OVERSPENT, changes=(RESET,)),
        replace(OVERSPENT, changes=(replace(TRIP, what="tighten"), RESET)),
        replace(OVERSPENT, changes=(replace(TRIP, scope="all"), RESET)),
        replace(OVERSPENT, changes=(replace(TRIP, owner="operator"), RESET)),
        replace(OVERSPENT, below=replace(OVERSPENT.below, published=11)),
        replace(OVERSPENT, over=replace(OVERSPENT.over, published=21)),
        replace(OVERSPENT, over=stage()),
        replace(OVERSPENT, over=stage(95, 120, *[60] * 5, *[95] * 4, *[120] * 8)),
        replace(OVERSPENT, over=stage(95, 100, *[60] * 5, *[95] * 4, *[100] * 9)),
        replace(OVERSPENT, below=stage(*[60] * 10), over=stage(*[95] * 10, *[120] * 10)),
    ],
)
def test_a_second_trip_and_a_tidy_delivery_are_noticed(lie: Overspend) -> None:
    assert not claim(lie, "once").held


@pytest.mark.parametrize(
    "lie",
    [
        replace(OVERSPENT, edits=seen([*ANSWERED, 14_000], REFUSED)),
        replace(OVERSPENT, edits=seen(ANSWERED, REFUSED[:2])),
        replace(OVERSPENT, edits=seen(ANSWERED, [*REFUSED, refusal(15_500, message="Something else.")])),
        replace(OVERSPENT, edits=seen(ANSWERED, [*REFUSED, refusal(15_500, scope="all")])),
        replace(OVERSPENT, edits=seen(ANSWERED, [*REFUSED, refusal(15_500, reason="store")])),
        replace(OVERSPENT, edits=seen(ANSWERED, [*REFUSED, replace(refusal(15_500), code="internal")])),
        replace(OVERSPENT, reason=None),
        replace(OVERSPENT, edits=seen(ANSWERED)),
    ],
)
def test_an_edit_that_passes_and_a_refusal_that_says_something_else_are_noticed(lie: Overspend) -> None:
    assert not claim(lie, "the graph is refused").held


@pytest.mark.parametrize(
    "lie",
    [
        replace(OVERSPENT, questions=seen(ASKED[:2])),
        replace(OVERSPENT, questions=seen(ASKED, [refusal(17_000)])),
        replace(OVERSPENT, questions=seen([5_000, *ASKED[1:]])),
        replace(OVERSPENT, questions=seen([TRIPPED_MS + 100, *ASKED[1:]])),
        # Answered in time, and begun too early to tell.
        replace(OVERSPENT, questions=seen([TRIPPED_MS + 3_020, *ASKED[1:]])),
        replace(OVERSPENT, questions=seen([RESET_MS + 100, *ASKED[1:]])),
    ],
)
def test_a_question_that_is_not_answered_while_the_switch_is_tripped_is_noticed(lie: Overspend) -> None:
    assert not claim(lie, "Gemini goes on").held


@pytest.mark.parametrize(
    "lie",
    [
        replace(OVERSPENT, changes=(TRIP, RESET, replace(TRIP, at_ms=RESET_MS + 500))),
        replace(OVERSPENT, changes=(TRIP,)),
        replace(OVERSPENT, reset_status=1),
        replace(OVERSPENT, reset_status=None),
        replace(OVERSPENT, after=stage(*[120] * 9)),
        replace(OVERSPENT, after=stage(*[120] * 9, 95)),
        replace(OVERSPENT, after=replace(OVERSPENT.after, published=11)),
        replace(OVERSPENT, edits=seen([*ANSWERED[:-1], RESET_MS + 1_000], REFUSED)),
        replace(OVERSPENT, edits=seen(ANSWERED, [*REFUSED, refusal(25_000)])),
    ],
)
def test_a_reset_that_does_not_last_is_noticed(lie: Overspend) -> None:
    assert not claim(lie, "the operator").held


def test_an_act_in_which_nothing_came_holds_no_claim_and_can_be_shown() -> None:
    nothing = Stage(published=0, taken_usd=())
    act = replace(OVERSPENT, below=nothing, over=nothing, after=nothing, over_ms=float("inf"), reset_status=None)
    act = replace(act, edits=seen([]), questions=seen([]), reason=None, changes=())

    assert len(failed(act)) == 5
    assert [row.notices for row in stages(act)] == [0, 0, 0]


def test_the_stages_are_counted_apart() -> None:
    within, overspent, reset = stages(OVERSPENT)

    assert within == StageRow(stage="within", notices=10, edits=3, refused=0, gemini=0, switch="no change")
    assert (overspent.notices, overspent.edits, overspent.refused, overspent.gemini) == (20, 1, 3, 3)
    assert (reset.notices, reset.edits, reset.refused, reset.gemini) == (10, 3, 1, 0)
    assert (overspent.switch, reset.switch) == ("trip firestore (budget)", "reset firestore (budget)")


def test_a_notice_is_late_if_one_of_more_came_before() -> None:
    assert late((60, 120, 95, 120, 60)) == 2


def event(**fields: object) -> str:
    known = {"severity": "INFO", "message": "firebreak.budget", "outcome": "recorded", "budget": ID, "cost": 95_000_000}
    return f">  {json.dumps(known | fields)}"


def test_the_notices_that_were_taken_are_read_from_the_log() -> None:
    log = [
        "i  functions: Beginning execution",
        event(cost=60_500_000, outcome="applied"),
        event(budget="another"),
        event(message="firebreak.request"),
        event(cost=None, outcome="not-a-notice"),
        event(),
        event()[:-5],
    ]

    assert list(read("\n".join(log))) == [60.5, 95]
