"""A plan as a person reads it, and as a program does."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from scripts.provision.step import QUIET, Kind, Step, Verb

_SIGNS = {
    Verb.CREATE: ("+", "green"),
    Verb.ADOPT: (">", "cyan"),
    Verb.CHANGE: ("~", "yellow"),
    Verb.DELETE: ("-", "red"),
    Verb.KEEP: ("=", "dim"),
    Verb.LEAVE: ("·", "dim"),
    Verb.REFUSE: ("!", "bold red"),
}
_COUNTED = {
    Verb.CREATE: "to create",
    Verb.ADOPT: "to take over",
    Verb.CHANGE: "to change",
    Verb.DELETE: "to delete",
    Verb.KEEP: "kept",
    Verb.LEAVE: "not touched",
    Verb.REFUSE: "refused",
}
NOTES = (
    "A cap acts minutes late, and what is used until then is billed.",
    "What a cap pauses is the whole service in this project, for everybody, until it is lifted.",
    "The cap on functions pauses this backend too, its alerts and its kill switch included; so may the one on run.",
    "A cap counts gross cost: free tier and credits do not help. It sees one calendar month, in US Pacific time.",
    "An alert stops nothing, and may be a day late; Firestore can have no more than that from Google.",
)


def diff(console: Console, steps: Sequence[Step]) -> None:
    """One line for each step, then how many of which."""
    width = max((len(step.kind) for step in steps), default=0)
    for step in steps:
        sign, style = _SIGNS[step.verb]
        quiet = style if step.verb in QUIET else ""
        what = (f"{step.kind:{width}}  ", quiet), (step.key, quiet or "bold")
        console.print(Text.assemble((f"{sign} ", style), *what, (f"  {step.text}", quiet)), soft_wrap=True)
    counted = Counter(step.verb for step in steps)
    words = ", ".join(f"{counted[verb]} {words}" for verb, words in _COUNTED.items() if counted[verb])
    console.print(Text(words or "there is nothing here", "bold"))


def lines(console: Console, title: str, texts: Iterable[str], style: str = "") -> None:
    """A title, and a list under it; nothing without any."""
    listed = list(texts)
    if listed:
        console.print(Text(f"\n{title}", style=style or "bold"))
    for text in listed:
        console.print(Text(f"  - {text}"), soft_wrap=True)


def notes(steps: Sequence[Step]) -> list[str]:
    """What the caps of this plan do not do."""
    return list(NOTES) if any(step.kind is Kind.CAP for step in steps) else [NOTES[-1]]


def as_json(steps: Sequence[Step]) -> list[dict[str, Any]]:
    return [
        {"do": step.verb, "kind": step.kind, "key": step.key, "text": step.text}
        | ({"name": step.name} if step.name else {})
        for step in steps
    ]
