"""What one caller saw: its calls, answers and refusals, counted from its events. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scripts.clients.caller import Event
from scripts.clients.client import Json

# The SDK adds the HTTP status to what the backend said.
_STATUS = re.compile(r" \[\d{3}\]$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answered call; `at_ms` is the client's clock, epoch; `usage` is empty where the model was not asked."""

    at_ms: int
    took_ms: int
    usage: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One refused call, as the client's FunctionsError told it."""

    at_ms: int
    code: str
    details: Mapping[str, Json]
    message: str = ""

    @property
    def reason(self) -> str:
        return str(self.details.get("reason", "none"))

    @property
    def remaining(self) -> int | None:
        value = self.details.get("remaining")
        return value if isinstance(value, int) else None

    @property
    def out_of_tokens(self) -> bool:
        return self.code == "resource-exhausted" and self.reason == "tokens"

    @property
    def never_ran(self) -> bool:
        """Whether a call that was sent again is told to take a new `requestId`, for nothing was charged."""
        return self.reason == "duplicate" and self.details.get("status") == "void"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """All calls of one caller. `waits`: how often it was told to send the same again, which is no call of its own."""

    uids: tuple[str, ...]
    calls: int
    waits: int
    answers: tuple[Answer, ...]
    refusals: tuple[Refusal, ...]

    @property
    def answered(self) -> int:
        return len(self.answers)

    @property
    def refused(self) -> int:
        return len(self.refusals)

    @property
    def unanswered(self) -> int:
        return self.calls - self.answered - self.refused

    @property
    def out_of_tokens(self) -> tuple[Refusal, ...]:
        return tuple(refusal for refusal in self.refusals if refusal.out_of_tokens)

    @property
    def kinds(self) -> Counter[str]:
        """Refusals by code and reason."""
        return Counter(f"{refusal.code} ({refusal.reason})" for refusal in self.refusals)

    def answered_between(self, since_ms: float, until_ms: float) -> int:
        return sum(since_ms <= answer.at_ms <= until_ms for answer in self.answers)


def tally(events: Iterable[Event]) -> Tally:
    """Counts the events of one caller."""
    seen = list(events)
    kinds = Counter(str(event["event"]) for event in seen)
    return Tally(
        uids=tuple(str(event["uid"]) for event in seen if event["event"] == "signed-in"),
        calls=kinds["started"],
        waits=kinds["waiting"],
        answers=tuple(_answer(event) for event in seen if event["event"] == "answered"),
        refusals=tuple(_refusal(event) for event in seen if event["event"] == "refused"),
    )


def join(tallies: Sequence[Tally]) -> Tally:
    """Several accounts of one caller, as one."""
    return Tally(
        uids=tuple(uid for seen in tallies for uid in seen.uids),
        calls=sum(seen.calls for seen in tallies),
        waits=sum(seen.waits for seen in tallies),
        answers=tuple(answer for seen in tallies for answer in seen.answers),
        refusals=tuple(refusal for seen in tallies for refusal in seen.refusals),
    )


def _answer(event: Event) -> Answer:
    usage = {name: int(count) for name, count in event["result"].get("usage", {}).items()}
    return Answer(at_ms=int(event["at"]), took_ms=int(event["ms"]), usage=usage)


def _refusal(event: Event) -> Refusal:
    details = event["details"] if isinstance(event["details"], dict) else {}
    message = _STATUS.sub("", str(event.get("message", "")))
    return Refusal(at_ms=int(event["at"]), code=str(event["code"]), details=details, message=message)
