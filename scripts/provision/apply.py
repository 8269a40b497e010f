"""Plans and carries out, until a new look finds nothing left to do."""

from collections.abc import Collection
from dataclasses import dataclass

from scripts.provision.desired import Wanted
from scripts.provision.failure import Failed
from scripts.provision.ground import Ground
from scripts.provision.permissions import GRANTS, Lack, lacks
from scripts.provision.plan import plan
from scripts.provision.seen import Part, Seen
from scripts.provision.session import Session
from scripts.provision.step import Kind, Step, Verb, refusals, to_do

_ROUNDS = 3
_PARTS = {
    Kind.CAP: Part.CAPS,
    Kind.BUDGET: Part.BUDGETS,
    Kind.TOPIC: Part.TOPIC,
    Kind.PUBLISHER: Part.TOPIC,
    Kind.ACCOUNT: Part.RIGHTS,
    Kind.ROLE: Part.RIGHTS,
    Kind.TTL: Part.TTL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan, and what it was made from."""

    ground: Ground
    wanted: Wanted
    seen: Seen
    steps: tuple[Step, ...]
    lacks: tuple[Lack, ...]

    @property
    def to_do(self) -> tuple[Step, ...]:
        return to_do(self.steps)

    @property
    def refused(self) -> tuple[Step, ...]:
        return refusals(self.steps)


def look(at: Session, only: Collection[Part]) -> Planned:
    """Look at everything, and plan.

    Raises:
        Failed: it cannot be planned; the message says why.
    """
    ground, wanted = at.survey()
    granted = at.granted()
    by_hand = frozenset({wanted.account} if granted is not None and GRANTS not in granted else ())
    seen = at.edges.look(wanted, only, by_hand=by_hand)
    steps = plan(wanted, seen, only)
    parts = dict.fromkeys(_PARTS[step.kind] for step in to_do(steps))
    missing = () if granted is None else lacks(granted, parts)
    return Planned(ground=ground, wanted=wanted, seen=seen, steps=steps, lacks=missing)


def carry_out(at: Session, planned: Planned, only: Collection[Part]) -> Planned:
    """Carry the plan out, look again, and do what is left over; what the last look found.

    Raises:
        Failed: a step failed; all before it are done.
    """
    for _ in range(_ROUNDS):
        if not planned.to_do:
            return planned
        at.worker.carry_out(planned.to_do, planned.wanted, planned.seen)
        at.edges.say("looking whether everything is as planned")
        seen = at.edges.look(planned.wanted, only, by_hand=planned.seen.by_hand)
        steps = plan(planned.wanted, seen, only)
        planned = Planned(ground=planned.ground, wanted=planned.wanted, seen=seen, steps=steps, lacks=planned.lacks)
        # Nobody has agreed to a deletion that was not in the plan they saw.
        if planned.refused or any(step.verb is Verb.DELETE for step in planned.to_do):
            break
    if planned.to_do or planned.refused:
        left = "; ".join(f"{step.kind} {step.key}: {step.text}" for step in (*planned.refused, *planned.to_do))
        raise Failed(f"done, but something is left over: {left}; run `plan`")
    return planned
