"""A knob: one setting with its name, parser, range and default; and the parsers, whose errors say what is wanted."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from firebreak.settings.weights import BELIEVABLE, EVEN, ONE, Price, Weights

# With more, a microsecond would buy whole tokens, and the bucket counts in both.
MOST_TOKENS = 10**10
MOST_REQUESTS = 10**6
# As browsers send it; CORS would take other characters as a pattern.
_ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://[a-z0-9._-]+(:[0-9]{1,5})?")
_KINDS = frozenset({"prompt", "output", "thought", "cached", "tool"})
_WEIGHT = re.compile(r"[0-9]{1,6}(\.[0-9]{1,3})?")
_APP_ID = re.compile(r"[0-9]+:[0-9]+:(web|ios|android):[0-9a-zA-Z]+")
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")
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
    found = tuple(map(str.strip, text.split(","))) if text else ()
    if not all(found):
        raise ValueError(f"must hold a name between its commas, not {text!r}")
    return found


def app_ids(text: str) -> tuple[str, ...]:
    """Firebase app ids, or none."""
    return _some(text, _APP_ID, "app ids such as 1:1234567890:web:0a1b2c") if text else ()


def tenants(text: str) -> tuple[str, ...]:
    """Tenant ids of Identity Platform, or none."""
    return _some(text, _TENANT, "tenant ids such as customers-a1b2c") if text else ()


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
        raise ValueError(f"must be {wanted}, not {wrong or 'nothing'!r}")
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


def per_tier(lowest: int, highest: int) -> Callable[[str], Mapping[str, int]]:
    """A number for all, then name=number for those who differ, as `600,anonymous=60`; the first is under `default`."""

    def parse(text: str) -> Mapping[str, int]:
        number = whole(lowest, highest)
        default, *others = names(text) or ("",)
        found = {"default": number(default)}
        for entry in others:
            name, equals, value = (part.strip() for part in entry.partition("="))
            if not equals or not name or name in found:
                raise ValueError(f"must be a number, then name=number, each name once, not {entry!r}")
            found[name] = number(value)
        return found

    return parse


def shares(text: str) -> Mapping[str, int]:
    """Percents by name, as name=percent, at most 100 in total."""
    found: dict[str, int] = {}
    for entry in names(text):
        name, equals, percent = (part.strip() for part in entry.partition("="))
        if not equals or not name or name in found or name == "common":
            raise ValueError(f"must be name=percent, each name once and none of them common, not {entry!r}")
        found[name] = whole(0, 100)(percent)
    if sum(found.values()) > 100:
        raise ValueError(f"must add up to at most 100, not {sum(found.values())}")
    return found


def some_of(*words: str) -> Callable[[str], frozenset[str]]:
    """Some of these words, or none."""

    def parse(text: str) -> frozenset[str]:
        wrong = next((name for name in names(text) if name not in words), None)
        if wrong is not None:
            raise ValueError(f"must be any of {', '.join(words)}, separated by commas, not {wrong!r}")
        return frozenset(names(text))

    return parse


def prices(text: str) -> Mapping[str, Price]:
    """Prices by model, as `gemini-a prompt=1 output=5 | 200000 prompt=2 output=7.5; gemini-b output=4`.

    Behind the bar: the weights of prompts longer than that, where they differ. What is not named costs 1.
    """
    found: dict[str, Price] = {}
    for entry in filter(None, map(str.strip, text.split(";"))):
        model, _, rest = entry.partition(" ")
        short, bar, long = rest.partition("|")
        if not _MODEL.fullmatch(model) or model in found:
            raise ValueError(f"must begin each entry with a model's name, once, not {model!r}")
        weights = _weighed(short, EVEN)
        long_from, _, long = long.strip().partition(" ")
        price = Price(
            short=weights, long_from=whole(1, BELIEVABLE)(long_from) if bar else None, long=_weighed(long, weights)
        )
        if not all(each.prompt + each.output for each in (price.short, price.long)):
            raise ValueError(f"must not make both prompt and output of {model} free, whether short or long")
        found[model] = price
    return found


def _weighed(text: str, base: Weights) -> Weights:
    for entry in text.split():
        kind, _, weight = entry.partition("=")
        if kind not in _KINDS or not _WEIGHT.fullmatch(weight):
            kinds = ", ".join(sorted(_KINDS))
            raise ValueError(f"must hold kind=weight, of {kinds}, with at most 3 decimals, not {entry!r}")
        before, _, after = weight.partition(".")
        base = replace(base, **{kind: int(before) * ONE + int(after.ljust(3, "0"))})
    return base


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
