"""Budget periods: calendar months, quarters and years, which begin at midnight in US Pacific time."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Midnights up to a day before the UTC one begin the same period, whoever's midnight it is.
_SLACK = timedelta(days=1)


class Every(StrEnum):
    """How often a budget begins anew."""

    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"

    @property
    def months(self) -> int:
        return {Every.MONTH: 1, Every.QUARTER: 3, Every.YEAR: 12}[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """One period: its name, as `2026-11`, `2026-q4` or `2026`, and when it begins and ends."""

    name: str
    start_us: int
    end_us: int


def starting(start_us: int, every: Every) -> Period | None:
    """The period that a notice's `costIntervalStart` is the start of; None at the ends of the calendar."""
    try:
        time = _EPOCH + timedelta(microseconds=start_us) + _SLACK
    except OverflowError:
        return None
    if not 1970 <= time.year < 9999:
        return None
    first = (time.month - 1) // every.months * every.months
    return Period(
        name=_name(time.year, first, every),
        start_us=_pacific_midnight_us(time.year, first),
        end_us=_pacific_midnight_us(time.year, first + every.months),
    )


def _name(year: int, first: int, every: Every) -> str:
    names = {Every.MONTH: f"{year}-{first + 1:02}", Every.QUARTER: f"{year}-q{first // 3 + 1}", Every.YEAR: f"{year}"}
    return names[every]


def _pacific_midnight_us(year: int, months: int) -> int:
    """Of the first day of the month that begins `months` months after January."""
    year, month = year + months // 12, months % 12 + 1
    # The image of a function need not have time zones. Daylight saving time holds on the first of these months, from
    # the second Sunday in March to the first one in November.
    hour = 7 if 4 <= month <= 11 else 8
    return (datetime(year, month, 1, hour, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
