"""How plans and caps are told: to a person as text, to a program as values, to neither if they may not go on."""

from collections.abc import Collection, Sequence
from typing import Any

from scripts.provision import apply, clients, show
from scripts.provision.apply import Planned
from scripts.provision.budget import Budget
from scripts.provision.failure import Failed
from scripts.provision.permissions import ROLES
from scripts.provision.running import Run
from scripts.provision.seen import Part
from scripts.provision.step import Step


def plan(run: Run, only: Collection[Part]) -> Planned:
    """Look, plan, and show it to a person; raises as `apply.look`."""
    with run.terminal.busy():
        planned = apply.look(run.at, only)
    person = run.terminal.person
    show.diff(person, planned.steps)
    show.lines(person, "What this does not do:", show.notes(planned.steps))
    show.lines(person, "Note:", _notes(run, planned))
    lacks = list(map(str, planned.lacks))
    show.lines(person, "You lack these permissions:", [*lacks, ROLES] if lacks else [], "bold red")
    return planned


def _notes(run: Run, planned: Planned) -> list[str]:
    notes = list(planned.ground.notes)
    if ("run" in run.at.config.caps) != ("functions" in run.at.config.caps):
        notes.append(
            "functions run on Cloud Run, and which of the two a bill names is not documented: cap run and functions"
        )
    if clients.knows_spend_caps():
        notes.append(
            "the installed google-cloud-billing-budgets knows spend caps now: scripts/provision/caps.py can use it"
        )
    return notes


def check(planned: Planned) -> None:
    """Let a plan pass that may be carried out.

    Raises:
        Failed: a step is refused, or the caller lacks a permission that it takes.
    """
    stop(planned.refused)
    if planned.to_do and planned.lacks:
        raise Failed(f"nothing was changed; you lack: {'; '.join(map(str, planned.lacks))}. {ROLES}")


def stop(refused: Sequence[Step]) -> None:
    """Raises Failed, if anything is refused."""
    if refused:
        raise Failed("nothing was changed: " + "; ".join(f"{step.kind} {step.key}: {step.text}" for step in refused))


def answer(run: Run, planned: Planned) -> dict[str, Any]:
    """The plan for a program."""
    return {
        "target": run.target | {"number": planned.ground.number, "account": planned.ground.account},
        "steps": show.as_json(planned.steps),
        "lacks": list(map(str, planned.lacks)),
        "notes": [*show.notes(planned.steps), *_notes(run, planned)],
    }


def tell(run: Run, cap: str, found: Budget, advice: str) -> None:
    """How a cap stands after it was lifted or armed, and what to do about it."""
    state = found.cap.state if found.cap else ""
    moving = bool(found.cap and found.cap.reconciling)
    words = f"{cap}: {state}{', and about to change' if moving else ''}, {found.amount} a month"
    run.terminal.person.print(f"{words}{f'; {advice}' if advice else ''}", soft_wrap=True)
    told = {"key": cap, "state": state, "reconciling": moving, "amount": str(found.amount), "name": found.name}
    run.terminal.answer({"target": run.target, "cap": told})
