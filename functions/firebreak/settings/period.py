"""Budget periods: calendar months, quarters and years, or two dates; all begin at midnight in US Pacific time."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

DAY_US = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)
# Midnights up to a day before the UTC one begin the same period, in whichever time zone it is midnight.
_SLACK = _DAY
_DATES = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})\.\.([0-9]{4}-[0-9]{2}-[0-9]{2})", re.ASCII)


class Every(StrEnum):
    """How often a budget starts again."""

    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"

    @property
    def months(self) -> int:
        return {Every.MONTH: 1, Every.QUARTER: 3, Every.YEAR: 12}[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dates:
    """A budget's custom period: its first and its last day."""

    first: date
    last: date

    def __str__(self) -> str:
        return f"{self.first}..{self.last}"


type Span = Every | Dates


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """One period: its name, as `2026-11`, `2026-q4`, `2026` or `2026-01-15..2026-06-30`, its start and its end."""

    name: str
    start_us: int
    end_us: int

    def begins_at(self, start_us: int) -> bool:
        """Whether this is the start of the period, whichever time zone's midnight it is."""
        return abs(start_us - self.start_us) <= DAY_US


def span(text: str) -> Span | None:
    """The period that a setting names: `month`, `quarter`, `year`, or two dates as `2026-01-15..2026-06-30`."""
    if text in (*Every,):
        return Every(text)
    match = _DATES.fullmatch(text)
    try:
        dates = Dates(first=date.fromisoformat(match[1]), last=date.fromisoformat(match[2])) if match else None
    except ValueError:
        return None
    known = dates is not None and dates.first <= dates.last and dates.first.year >= 1970 and dates.last.year < 9999
    return dates if known else None


def containing(start_us: int, span: Span) -> Period | None:
    """The period that a notice's `costIntervalStart` lies in; None where there is none."""
    try:
        time = _EPOCH + timedelta(microseconds=start_us) + _SLACK
    except OverflowError:
        return None
    if not 1970 <= time.year < 9999:
        return None
    return _of_dates(start_us, span) if isinstance(span, Dates) else _of_calendar(time, span)


def _of_dates(start_us: int, dates: Dates) -> Period | None:
    start_of, end_of = _pacific_midnight_us(dates.first), _pacific_midnight_us(dates.last + _DAY)
    if not start_of - DAY_US <= start_us < end_of:
        return None
    return Period(name=str(dates), start_us=start_of, end_us=end_of)


def _of_calendar(time: datetime, every: Every) -> Period:
    first = (time.month - 1) // every.months * every.months
    return Period(
        name=_name(time.year, first, every),
        start_us=_pacific_midnight_us(_month(time.year, first)),
        end_us=_pacific_midnight_us(_month(time.year, first + every.months)),
    )


def _name(year: int, first: int, every: Every) -> str:
    names = {Every.MONTH: f"{year}-{first + 1:02}", Every.QUARTER: f"{year}-q{first // 3 + 1}", Every.YEAR: f"{year}"}
    return names[every]


def _month(year: int, months: int) -> date:
    """The first day of the month that begins `months` months after January."""
    return date(year + months // 12, months % 12 + 1, 1)


def _pacific_midnight_us(day: date) -> int:
    # The image of a function need not have time zones.
    hour = 7 if _second_sunday_of_march(day.year) < day <= _first_sunday(day.year, 11) else 8
    return (datetime(day.year, day.month, day.day, hour, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def _second_sunday_of_march(year: int) -> date:
    return _first_sunday(year, 3) + timedelta(days=7)


def _first_sunday(year: int, month: int) -> date:
    first = date(year, month, 1)
    return first + timedelta(days=6 - first.weekday())
