"""Periods of budgets: by the calendar or between two days, always from midnight to midnight in Los Angeles."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from firebreak.settings.period import DAY_US, Dates, Every, Period, Span, containing, span

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONE = ZoneInfo("America/Los_Angeles")


def midnight_us(day: date) -> int:
    """By the time zone database, which a deployed function need not have."""
    local = datetime(day.year, day.month, day.day, tzinfo=ZONE)
    return (local - EPOCH) // timedelta(microseconds=1)


@pytest.mark.parametrize("year", range(2024, 2041))
def test_every_day_begins_at_midnight_in_los_angeles(year: int) -> None:
    for number in range(366):
        day = date(year, 1, 1) + timedelta(days=number)
        dates = Dates(first=day, last=day)

        period = containing(midnight_us(day), dates)

        assert period == Period(
            name=f"{day}..{day}", start_us=midnight_us(day), end_us=midnight_us(day + timedelta(days=1))
        )


HALF = Dates(first=date(2026, 1, 15), last=date(2026, 6, 30))
START_US, END_US = midnight_us(date(2026, 1, 15)), midnight_us(date(2026, 7, 1))


@pytest.mark.parametrize(
    ("start_us", "known"),
    [
        (START_US - DAY_US - 1, False),
        (START_US - DAY_US, True),
        (START_US, True),
        (END_US - 1, True),
        (END_US, False),
        (-(10**30), False),
    ],
)
def test_a_custom_period_ends_with_its_last_day_and_knows_nothing_else(start_us: int, known: bool) -> None:
    period = containing(start_us, HALF)

    assert period == (Period(name="2026-01-15..2026-06-30", start_us=START_US, end_us=END_US) if known else None)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("month", Every.MONTH),
        ("quarter", Every.QUARTER),
        ("year", Every.YEAR),
        ("2026-01-15..2026-06-30", HALF),
        ("2026-01-15..2026-01-15", Dates(first=date(2026, 1, 15), last=date(2026, 1, 15))),
        ("1970-01-01..9998-12-31", Dates(first=date(1970, 1, 1), last=date(9998, 12, 31))),
        ("2026-01-15..2026-01-14", None),
        ("1969-12-31..2026-01-14", None),
        ("2026-01-15..9999-01-01", None),
        ("2026-02-30..2026-06-30", None),
        ("2026-01-15..", None),
        ("2026-01-15", None),
        ("2026-01-15..2026-06-30..2026-07-30", None),
        ("٢٠٢٦-01-15..2026-06-30", None),
        ("week", None),
        ("", None),
    ],
)
def test_a_setting_names_a_period(text: str, meant: Span | None) -> None:
    assert span(text) == meant


@pytest.mark.parametrize(("off_us", "begins"), [(0, True), (DAY_US, True), (-DAY_US, True), (DAY_US + 1, False)])
def test_whichever_midnight_it_is_the_period_begins(off_us: int, begins: bool) -> None:
    assert Period(name="p", start_us=START_US, end_us=END_US).begins_at(START_US + off_us) == begins
