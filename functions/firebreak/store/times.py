"""Times: their units, as microseconds since the epoch, and as text."""

from datetime import UTC, datetime, timedelta

SECOND_US = 1_000_000
HOUR_US = 3_600 * SECOND_US
DAY_US = 24 * HOUR_US

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LAST_US = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // _MICROSECOND
# Before the last years that can be written: what is computed from a time must be one too.
_END_US = (datetime(9999, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND


def to_us(stamp: datetime) -> int:
    """Microseconds since the epoch, exactly."""
    return (stamp - _EPOCH) // _MICROSECOND


def from_us(us: int) -> datetime:
    """The time that is `us` microseconds after the epoch, or the last one there is: a debt can outlast the calendar."""
    return _EPOCH + timedelta(microseconds=min(us, _LAST_US))


def parse(text: object) -> int | None:
    """Microseconds since the epoch of a time with a zone, however fine it is, in 1970 to 9998; None for all else."""
    if not isinstance(text, str) or not text.isascii() or len(text) > 40:
        return None
    try:
        time = datetime.fromisoformat(text)
        us = None if time.tzinfo is None else to_us(time)
    except (ValueError, OverflowError):
        return None
    return us if us is not None and 0 <= us < _END_US else None


def second(us: int) -> str:
    """To the second, as `2026-12-01T08:00:00Z`."""
    return f"{from_us(us):%Y-%m-%dT%H:%M:%SZ}"


def hour(us: int) -> str:
    """To the hour, as `2026-11-29T14Z`."""
    return f"{from_us(us):%Y-%m-%dT%HZ}"
