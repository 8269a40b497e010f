"""Durations as an operator writes them: 90s, 30m, 2h, 1d."""

import re

UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_FORM = re.compile(r"([1-9][0-9]{0,4})([smhd])", re.ASCII)


def seconds(text: str) -> int:
    """The seconds of a duration.

    Raises:
        ValueError: it is none.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"must be a duration such as 90s, 30m, 2h or 1d, not {text!r}")
    return int(match[1]) * UNITS_S[match[2]]


def words(total_s: int) -> str:
    """A duration in its two largest units: 2h 5m."""
    parts = []
    for unit, size_s in sorted(UNITS_S.items(), key=lambda item: -item[1]):
        count, total_s = divmod(total_s, size_s)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"
