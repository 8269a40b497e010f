"""Figures of one contender in one scenario: what was measured, and what becomes of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import quantiles

type Figures = dict[str, float | int | None]
type Results = dict[str, dict[str, Figures]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What one contender did in one round: each call's time, the whole time, and what was decided.

    `undecided` calls got neither yes nor no; where it is possible they count as not admitted.
    """

    latencies_ms: list[float]
    seconds: float
    admitted: int
    undecided: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Round trips, document reads and document writes of some calls, as seen at the wire."""

    calls: int
    rpcs: int
    reads: int
    writes: int


@dataclass(slots=True)
class Tally:
    """All rounds of one contender in one scenario."""

    blocks: list[Block] = field(default_factory=list)
    should_admit: int = 0
    counted: Count | None = None

    def add(self, block: Block, should_admit: int) -> None:
        self.blocks.append(block)
        self.should_admit += should_admit

    def figures(self) -> Figures:
        latencies = [ms for block in self.blocks for ms in block.latencies_ms]
        counted = self.counted
        return {
            **percentiles(latencies),
            "per_second": round(len(latencies) / sum(block.seconds for block in self.blocks), 1),
            "rpcs": None if counted is None else round(counted.rpcs / counted.calls, 2),
            "reads": None if counted is None else round(counted.reads / counted.calls, 2),
            "writes": None if counted is None else round(counted.writes / counted.calls, 2),
            "admitted": sum(block.admitted for block in self.blocks),
            "should_admit": self.should_admit,
            "undecided": sum(block.undecided for block in self.blocks),
            "calls": len(latencies),
        }


def percentiles(latencies_ms: list[float]) -> dict[str, float]:
    """Percentiles 50, 95 and 99 in milliseconds, to four digits."""
    cuts = quantiles(latencies_ms, n=100, method="inclusive")
    return {f"p{at}_ms": float(f"{cuts[at - 1]:.4g}") for at in (50, 95, 99)}


def results(tallies: Mapping[tuple[str, str], Tally]) -> Results:
    """By scenario, then by contender."""
    found: Results = {}
    for (scenario, contender), tally in tallies.items():
        if tally.blocks:
            found.setdefault(scenario, {})[contender] = tally.figures()
    return found
