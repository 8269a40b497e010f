"""The end of the story as data: who called what, what it cost, which claims held. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from scripts.clients.client import Json
from scripts.demo.books import Books
from scripts.demo.claim import Claim
from scripts.demo.claims import claims
from scripts.demo.evidence import Evidence
from scripts.demo.money import Comparison, assumptions, compare
from scripts.demo.stages import StageRow, stages
from scripts.demo.tally import Tally

NO_MODEL_LOG = "not checked: what Gemini received, and slow calls; the real one shows no log, and has a pace of its own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One caller: what it saw, and what its documents say."""

    caller: str
    calls: int
    admitted: int
    refused: int
    estimated: int
    charged: int
    refunded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """All that the demo shows in the end."""

    rows: tuple[Row, ...]
    cost: Comparison
    budget_usd: int
    stages: tuple[StageRow, ...]
    claims: tuple[Claim, ...]
    left_out: str | None
    seconds: Mapping[str, float]

    @property
    def held(self) -> bool:
        return all(claim.held for claim in self.claims)

    def as_json(self) -> dict[str, Json]:
        """For programs; money in micro-dollars."""
        return {"held": self.held, **asdict(self), "assumed": assumptions(self.cost)}


def result(evidence: Evidence, seconds: Mapping[str, float], *, workers: int) -> Result:
    """Checks every claim and adds everything up."""
    return Result(
        rows=(
            _row("bot", evidence.bot, *evidence.bot_books),
            _row("runaway user", evidence.runaway, evidence.runaway_books),
            _row("normal user", evidence.normal, evidence.normal_books),
        ),
        cost=compare((answer.usage for answer in evidence.runaway.answers), workers=workers),
        budget_usd=evidence.overspend.budget_usd,
        stages=stages(evidence.overspend),
        claims=claims(evidence),
        left_out=None if evidence.model else NO_MODEL_LOG,
        seconds={name: round(spent, 1) for name, spent in seconds.items()},
    )


def _row(caller: str, seen: Tally, *books: Books) -> Row:
    return Row(
        caller=caller,
        calls=seen.calls,
        admitted=sum(each.admitted for each in books),
        refused=seen.refused,
        estimated=sum(each.estimated for each in books),
        charged=sum(each.charged for each in books),
        refunded=sum(each.refunded for each in books),
    )
