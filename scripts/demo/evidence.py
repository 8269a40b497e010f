"""Everything the demo measured. Pure."""

from dataclasses import dataclass

from scripts.demo.books import Books
from scripts.demo.tally import Tally

# How late a process may be to see the switch on a busy machine, beyond its TTL.
SLACK_S = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSaw:
    """Requests in the log of the Gemini stand-in: of any kind during the bot's act, and for the runaway's answers."""

    during_bot: int
    runaway: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Notices of a budget: how many went out, and what those tell that the function took, in its order."""

    published: int
    taken_usd: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchChange:
    """A record of a change of the switch; `at_ms` is when it was committed."""

    what: str
    scope: str
    owner: str
    at_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Overspend:
    """A budget overspent: before it is (`below`), from then on (`over`), and after the operator's reset (`after`).

    `over_ms` is when the first notice of too much went out, `reason` what the switch holds for whoever is refused. An
    edit changes the graph, a question asks Gemini.
    """

    budget_usd: int
    switch_ttl_s: int
    below: Stage
    over: Stage
    after: Stage
    over_ms: float
    reason: str | None
    edits: Tally
    questions: Tally
    reset_status: int | None
    changes: tuple[SwitchChange, ...]

    @property
    def tripped_ms(self) -> float:
        """The first trip."""
        return self._first("trip")

    @property
    def reset_ms(self) -> float:
        """The first reset."""
        return self._first("reset")

    @property
    def seen_ms(self) -> float:
        """How long after a change every process goes by it."""
        return (self.switch_ttl_s + SLACK_S) * 1000

    def _first(self, what: str) -> float:
        return min((change.at_ms for change in self.changes if change.what == what), default=float("inf"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """One user's slow calls on an instance of so many threads, as they were when another user had been answered."""

    threads: int
    slow: Tally
    other: Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything measured. `model` and `crowd` are None where the real Gemini answered: it has a pace and no log."""

    limit: int
    bot: Tally
    bot_books: tuple[Books, ...]
    runaway: Tally
    runaway_books: Books
    normal: Tally
    normal_books: Books
    overspend: Overspend
    crowd: Crowd | None
    model: ModelSaw | None

    @property
    def began_ms(self) -> float:
        """The runaway's first answer."""
        return min((answer.at_ms for answer in self.runaway.answers), default=float("inf"))

    @property
    def last_admitted_ms(self) -> float:
        """The runaway's last answer: from here on it is refused."""
        return max((answer.at_ms for answer in self.runaway.answers), default=float("-inf"))
