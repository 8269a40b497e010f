"""One step of a plan, as a value: what is done to what, and how a person reads it."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Verb(StrEnum):
    """What a step does; KEEP and LEAVE do nothing, and REFUSE lets nothing at all be done."""

    CREATE = "create"
    ADOPT = "adopt"
    CHANGE = "change"
    DELETE = "delete"
    KEEP = "keep"
    LEAVE = "leave"
    REFUSE = "refuse"


class Kind(StrEnum):
    """What there is."""

    CAP = "cap"
    BUDGET = "budget"
    TOPIC = "topic"
    PUBLISHER = "publisher"
    ACCOUNT = "account"
    ROLE = "role"
    TTL = "ttl"
    PART = "part"


QUIET = frozenset({Verb.KEEP, Verb.LEAVE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step.

    Attributes:
        key: which of its kind, as the file or the cloud names it.
        text: what a person should know of it.
        name: the resource that is acted on, where it exists.
        mask: for a change of an alert budget, the fields to send.
    """

    verb: Verb
    kind: Kind
    key: str
    text: str
    name: str | None = None
    mask: tuple[str, ...] = ()


def to_do(steps: Iterable[Step]) -> tuple[Step, ...]:
    """The steps that change something."""
    return tuple(step for step in steps if step.verb not in QUIET and step.verb is not Verb.REFUSE)


def refusals(steps: Iterable[Step]) -> tuple[Step, ...]:
    return tuple(step for step in steps if step.verb is Verb.REFUSE)
