"""The overspent budget from stage to stage: what was told, who was answered, what became of the switch. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from scripts.demo.evidence import Overspend, Stage, SwitchChange


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRow:
    """One stage: notices taken, edits of the graph, answers of Gemini, changes of the switch."""

    stage: str
    notices: int
    edits: int
    refused: int
    gemini: int
    switch: str


def stages(act: Overspend) -> tuple[StageRow, ...]:
    """The budget lasts; it is overspent; the operator has switched on again."""
    return (
        _row("within", act.below, act, 0, act.over_ms),
        _row("overspent", act.over, act, act.over_ms, act.reset_ms),
        _row("reset", act.after, act, act.reset_ms, float("inf")),
    )


def notices(taken_usd: Sequence[float]) -> str:
    """How many the function took of each, as `$60 x 10, $95 x 10`."""
    return ", ".join(f"${usd:g} x {count}" for usd, count in sorted(Counter(taken_usd).items())) or "no notice"


def late(taken_usd: Sequence[float]) -> int:
    """How many came after one that told of more."""
    return sum(usd < most for usd, most in zip(taken_usd, accumulate(taken_usd, max), strict=True))


def changes(made: Sequence[SwitchChange]) -> str:
    """What was changed about the switch."""
    return ", ".join(f"{change.what} {change.scope} ({change.owner})" for change in made) or "no change"


def _row(stage: str, told: Stage, act: Overspend, since_ms: float, until_ms: float) -> StageRow:
    return StageRow(
        stage=stage,
        notices=len(told.taken_usd),
        edits=act.edits.answered_between(since_ms, until_ms),
        refused=sum(since_ms <= refusal.at_ms < until_ms for refusal in act.edits.refusals),
        gemini=act.questions.answered_between(since_ms, until_ms),
        switch=changes([change for change in act.changes if since_ms <= change.at_ms < until_ms]),
    )
