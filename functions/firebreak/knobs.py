"""A knob: one setting with its name, parser, range and default; and the parsers, whose errors say what is wanted."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

MOST_TOKENS = 10**12
_ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://[^/\s]+")
_MODEL = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """One setting as an owner sees it; `default` None means that it must be set."""

    name: str
    parse: Callable[[str], Any]
    range: str
    doc: str
    default: str | None


def whole(lowest: int, highest: int) -> Callable[[str], int]:
    """A whole number within bounds, in ASCII digits."""

    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit():
            raise ValueError(f"must be a whole number, not {text!r}")
        if len(text) > len(str(highest)) or int(text) > highest:
            raise ValueError(f"must be at most {highest}, not {text[:20]}")
        if int(text) < lowest:
            raise ValueError(f"must be at least {lowest}, not {text}")
        return int(text)

    return parse


def names(text: str) -> tuple[str, ...]:
    """Comma-separated names, or none."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def models(text: str) -> tuple[str, ...]:
    """Model names, at least one; they become part of a path."""
    return _some(text, _MODEL, "models such as gemini-3.8-flash")


def origins(text: str) -> tuple[str, ...]:
    """Web origins, or `*`."""
    return _some(text, _ORIGIN, "origins such as https://app.example, or *")


def _some(text: str, form: re.Pattern[str], wanted: str) -> tuple[str, ...]:
    found = names(text)
    wrong = next((name for name in found if not form.fullmatch(name)), None)
    if wrong is not None or not found:
        raise ValueError(f"must hold {wanted}, not {wrong or 'nothing'!r}")
    return found


def yes_or_no(text: str) -> bool:
    """true or false."""
    if text not in ("true", "false"):
        raise ValueError(f"must be true or false, not {text!r}")
    return text == "true"


def one_of(*words: str) -> Callable[[str], str]:
    """One of some words."""

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"must be one of {', '.join(words)}, not {text!r}")
        return text

    return parse


def tiers(text: str) -> Mapping[str, int]:
    """Tokens a day by name, as name=tokens."""
    found: dict[str, int] = {}
    for entry in names(text):
        name, equals, limit = entry.partition("=")
        if not equals or not name.strip() or name.strip() in found:
            raise ValueError(f"must be name=tokens, each name once, not {entry!r}")
        found[name.strip()] = whole(0, MOST_TOKENS)(limit.strip())
    return found


def text(value: str) -> str:
    """Any text."""
    return value


def location(text: str) -> str:
    """A Google Cloud location."""
    # It becomes part of a host name.
    if not re.fullmatch(r"[a-z0-9-]{1,40}", text):
        raise ValueError(f"must be a location such as global or europe-west4, not {text!r}")
    return text


def number(name: str, lowest: int, highest: int, doc: str, default: int | None) -> Any:  # noqa: ANN401
    """A dataclass field for a whole number."""
    default_text = None if default is None else str(default)
    return knob(name, whole(lowest, highest), f"{lowest} to {highest}", doc, default_text)


def knob(name: str, parse: Callable[[str], Any], range_: str, doc: str, default: str | None) -> Any:  # noqa: ANN401
    """A dataclass field that carries its knob."""
    return field(metadata={"knob": Knob(name=name, parse=parse, range=range_, doc=doc, default=default)})
