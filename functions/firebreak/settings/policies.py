"""What a budget's notices set off, by threshold; written by the owner as text."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from firebreak.settings.period import Every, Span, span

SCOPES = ("gemini", "firestore", "all")

_BUDGET = re.compile(r"([0-9A-Fa-f]{6}(?:-[0-9A-Fa-f]{6}){2})/([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})")
_THRESHOLD = re.compile(r"([0-9]{1,4})(?:\.([0-9]{1,2}))?%")
_PERIODS = "month, quarter, year or two days such as 2026-01-15..2026-06-30"
_TIGHTEN = re.compile(r"tighten\(([1-9][0-9]?)\)")
_TRIP = re.compile(r"trip\(([a-z]+)\)")


class ThresholdKind(StrEnum):
    """What a threshold is measured against: what was spent, or what will have been by the end of the period."""

    ACTUAL = "actual"
    FORECAST = "forecast"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPolicy:
    """Tell people; change nothing."""

    def __str__(self) -> str:
        return "record"


@dataclass(frozen=True, slots=True, kw_only=True)
class TightenPolicy:
    """Leave this percent of every daily limit."""

    percent: int

    def __str__(self) -> str:
        return f"tighten({self.percent})"


@dataclass(frozen=True, slots=True, kw_only=True)
class TripPolicy:
    """Switch a scope off."""

    scope: str

    def __str__(self) -> str:
        return f"trip({self.scope})"


type Action = RecordPolicy | TightenPolicy | TripPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A part of a budget, in hundredths of a percent."""

    kind: ThresholdKind
    bp: int

    def __str__(self) -> str:
        return f"{self.kind} {self.percent}%"

    @property
    def percent(self) -> str:
        """As the owner writes it, without the sign."""
        whole, hundredths = divmod(self.bp, 100)
        return f"{whole}.{hundredths:02}".rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What is done, once a period, when a threshold is exceeded."""

    threshold: Threshold
    action: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A budget whose notices may act, and its policies."""

    account: str
    id: str
    period: Span
    policies: tuple[Policy, ...]


def parse(text: str) -> Mapping[str, Budget]:
    """Budgets by their ids, as `account/budget: 50%=tighten(50) 100%=trip(firestore) forecast 120%=record; …`.

    The budget's period stands before its colon: `quarter`, `year`, the two days of a custom one as
    `2026-01-15..2026-06-30`, or nothing for a month. A budget without policies only tells people.
    """
    found: dict[str, Budget] = {}
    for entry in filter(None, map(str.strip, text.split(";"))):
        budget = _budget(entry)
        if budget.id in found:
            raise ValueError(f"must name each budget once, not {budget.id} twice")
        found[budget.id] = budget
    return found


def _budget(entry: str) -> Budget:
    head, _, rest = entry.partition(":")
    name, _, period = (part.strip() for part in head.strip().partition(" "))
    match = _BUDGET.fullmatch(name)
    if match is None:
        example = "01D4EE-079462-DFD6EC/11111111-2222-3333-4444-555555555555"
        raise ValueError(f"must begin each entry with account/budget, such as {example}, not {name!r}")
    known = span(period or Every.MONTH)
    if known is None:
        raise ValueError(f"must have {_PERIODS} before the colon of {match[2]}, not {period!r}")
    return Budget(
        account=match[1].upper(),
        id=match[2].lower(),
        period=known,
        policies=tuple(_policies(rest.split(), match[2])),
    )


def _policies(words: list[str], budget: str) -> Iterator[Policy]:
    seen: set[Threshold] = set()
    kind = ThresholdKind.ACTUAL
    for number, word in enumerate(words):
        if word in (*ThresholdKind,) and number + 1 < len(words) and words[number + 1] not in (*ThresholdKind,):
            kind = ThresholdKind(word)
            continue
        left, equals, right = word.partition("=")
        threshold = Threshold(kind=kind, bp=_bp(left, budget))
        if threshold in seen:
            raise ValueError(f"must name each threshold of {budget} once, not {threshold} twice")
        seen.add(threshold)
        yield Policy(threshold=threshold, action=_action(right, budget) if equals else RecordPolicy())
        kind = ThresholdKind.ACTUAL


def _bp(text: str, budget: str) -> int:
    match = _THRESHOLD.fullmatch(text)
    bp = int(match[1]) * 100 + int((match[2] or "").ljust(2, "0")) if match else 0
    if not bp:
        raise ValueError(f"must have thresholds such as 50%=record or forecast 120%=record in {budget}, not {text!r}")
    return bp


def _action(text: str, budget: str) -> Action:
    if text == "record":
        return RecordPolicy()
    if match := _TIGHTEN.fullmatch(text):
        return TightenPolicy(percent=int(match[1]))
    if (match := _TRIP.fullmatch(text)) and match[1] in SCOPES:
        return TripPolicy(scope=match[1])
    scopes = ", ".join(SCOPES)
    raise ValueError(f"must have actions record, tighten(1 to 99) or trip({scopes}) in {budget}, not {text!r}")
