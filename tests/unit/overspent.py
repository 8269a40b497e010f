"""A budget overspent as it should be: what is true of act 4 of the demo."""

from collections.abc import Sequence

from scripts.demo.evidence import Overspend, Stage, SwitchChange
from scripts.demo.tally import Answer, Refusal, Tally

REASON = "The app's budget is used up."
OVER_MS, TRIPPED_MS, RESET_MS = 10_000, 10_400, 20_000
TRIP = SwitchChange(what="trip", scope="firestore", owner="budget", at_ms=TRIPPED_MS)
RESET = SwitchChange(what="reset", scope="firestore", owner="budget", at_ms=RESET_MS)


def stage(*usd: float) -> Stage:
    return Stage(published=len(usd), taken_usd=usd)


def answer(at_ms: int) -> Answer:
    return Answer(at_ms=at_ms, took_ms=50, usage={})


def refusal(at_ms: int, *, message: str = REASON, **details: object) -> Refusal:
    known = {"reason": "switch", "scope": "firestore", "retryAfterSeconds": 1}
    return Refusal(at_ms=at_ms, code="unavailable", details=known | details, message=message)


def seen(answers: Sequence[int], refusals: Sequence[Refusal] = ()) -> Tally:
    return Tally(
        uids=("u",),
        calls=len(answers) + len(refusals),
        waits=0,
        answers=tuple(answer(at_ms) for at_ms in answers),
        refusals=tuple(refusals),
    )


ANSWERED = (1_000, 2_000, 3_000, 10_900, 23_500, 24_000, 24_500)
REFUSED = tuple(refusal(at_ms) for at_ms in (11_100, 14_000, 15_000, 20_500))
ASKED = (14_500, 15_500, 16_500)

OVERSPENT = Overspend(
    budget_usd=100,
    switch_ttl_s=1,
    below=stage(60, 95, 60, *[95] * 4, *[60] * 3),
    over=stage(95, 120, *[60] * 5, *[95] * 4, *[120] * 9),
    after=stage(*[120] * 10),
    over_ms=OVER_MS,
    reason=REASON,
    edits=seen(ANSWERED, REFUSED),
    questions=seen(ASKED),
    reset_status=0,
    changes=(TRIP, RESET),
)
