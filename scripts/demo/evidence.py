"""Everything the demo measured. Pure."""

from dataclasses import dataclass

from scripts.demo.books import Books
from scripts.demo.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSaw:
    """Requests in the log of the Gemini stand-in: of any kind during the bot's act, and for the runaway's answers."""

    during_bot: int
    runaway: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything measured. `model` is None where the real Gemini answered: it shows nobody its log."""

    limit: int
    bot: Tally
    bot_books: tuple[Books, ...]
    runaway: Tally
    runaway_books: Books
    normal: Tally
    normal_books: Books
    model: ModelSaw | None

    @property
    def began_ms(self) -> float:
        """The runaway's first answer."""
        return min((answer.at_ms for answer in self.runaway.answers), default=float("inf"))

    @property
    def last_admitted_ms(self) -> float:
        """The runaway's last answer: from here on it is refused."""
        return max((answer.at_ms for answer in self.runaway.answers), default=float("-inf"))
