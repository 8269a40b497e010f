"""What the demo claims of the overspent budget, checked against what was measured. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence

from scripts.demo.claim import Claim, refusals
from scripts.demo.evidence import Overspend, Stage, SwitchChange
from scripts.demo.stages import changes, late, notices
from scripts.demo.tally import Answer, Refusal

SCOPE, OWNER = "firestore", "budget"
TIMES = 10
EDITS = 3
QUESTIONS = 3


def overspend_claims(act: Overspend) -> Iterator[Claim]:
    """Each, in its order."""
    yield _below(act)
    yield _once(act)
    yield _refused(act)
    yield _gemini(act)
    yield _reset(act)


def _below(act: Overspend) -> Claim:
    made = [change for change in act.changes if change.at_ms < act.over_ms]
    answered = act.edits.answered_between(0, act.over_ms)
    within = all(usd <= act.budget_usd for usd in act.below.taken_usd)
    return Claim(
        text="while the budget lasts, its notices switch nothing off",
        held=_came(act.below) and within and not made and answered >= EDITS,
        evidence=f"{notices(act.below.taken_usd)}, of ${act.budget_usd}: {changes(made)}; {answered} edits answered",
    )


def _once(act: Overspend) -> Claim:
    told = act.below.taken_usd + act.over.taken_usd
    each = Counter(told)
    made = [change for change in act.changes if change.at_ms < act.reset_ms]
    return Claim(
        text="over it, they switch Firestore off once, though each comes ten times and in any order",
        held=(
            _came(act.below)
            and _came(act.over)
            and max(each) > act.budget_usd
            and min(each.values()) >= TIMES
            and late(told) > 0
            and _is_once("trip", made)
        ),
        evidence=f"{notices(told)}, {late(told)} of them after a notice of a higher cost: {changes(made)}",
    )


def _refused(act: Overspend) -> Claim:
    refused = act.edits.refusals
    past = [answer for answer in act.edits.answers if _is_while_off(act, answer)]
    soon_s = min((refusal.at_ms - act.tripped_ms for refusal in refused), default=0) / 1000
    first = f', the first {soon_s:.1f} s after the trip, "{refused[0].message}"' if refused else ""
    return Claim(
        text="while it is off, the graph is refused with the reason that the switch holds",
        held=len(refused) >= EDITS and all(_tells(refusal, act.reason) for refusal in refused) and not past,
        evidence=f"{refusals(act.edits)}{first}; {len(past)} edits answered that began {_seen(act)} after it",
    )


def _gemini(act: Overspend) -> Claim:
    asked, meanwhile = act.questions, [answer for answer in act.questions.answers if _is_while_off(act, answer)]
    return Claim(
        text="Gemini goes on meanwhile",
        held=len(meanwhile) == asked.calls >= QUESTIONS,
        evidence=f"{len(meanwhile)} answers to {asked.calls} questions, {refusals(asked)}",
    )


def _reset(act: Overspend) -> Claim:
    made = [change for change in act.changes if change.at_ms >= act.reset_ms]
    answered = act.edits.answered_between(act.reset_ms + act.seen_ms, float("inf"))
    refused = sum(refusal.at_ms >= act.reset_ms + act.seen_ms for refusal in act.edits.refusals)
    over = all(usd > act.budget_usd for usd in act.after.taken_usd)
    return Claim(
        text="the operator switches it on again, and the notices that follow leave it so",
        held=(
            act.reset_status == 0
            and _is_once("reset", made)
            and _came(act.after)
            and act.after.published >= TIMES
            and over
            and answered >= EDITS
            and not refused
        ),
        evidence=f"{notices(act.after.taken_usd)}: {changes(made)}; {answered} edits answered and {refused} refused "
        f"from {_seen(act)} after the reset",
    )


def _came(stage: Stage) -> bool:
    return len(stage.taken_usd) == stage.published > 0


def _is_once(what: str, made: Sequence[SwitchChange]) -> bool:
    return [(change.what, change.scope, change.owner) for change in made] == [(what, SCOPE, OWNER)]


def _is_while_off(act: Overspend, answer: Answer) -> bool:
    """Whether the call began when every process knew of the trip, and was answered before anybody knew of a reset."""
    return act.tripped_ms + act.seen_ms <= answer.at_ms - answer.took_ms and answer.at_ms < act.reset_ms


def _seen(act: Overspend) -> str:
    return f"{act.seen_ms / 1000:.0f} s"


def _tells(refusal: Refusal, reason: str | None) -> bool:
    return (refusal.code, refusal.reason) == ("unavailable", "switch") and (
        (refusal.message, refusal.details.get("scope")) == (reason, SCOPE)
    )
