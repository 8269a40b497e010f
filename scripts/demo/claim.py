"""A statement of the demo, and what shows it. Pure."""

from dataclasses import dataclass

from scripts.demo.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One statement, whether it held, and the numbers that show it."""

    text: str
    held: bool
    evidence: str


def refusals(seen: Tally) -> str:
    """How often a caller was refused, by kind."""
    return ", ".join(f"{count} x {kind}" for kind, count in seen.kinds.items()) or "no refusal"
