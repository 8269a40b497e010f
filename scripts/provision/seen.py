"""What a look at the project found: pure values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from scripts.provision.budget import Budget
from scripts.provision.grants import Grant


class Part(StrEnum):
    """What can be left out by `--only`, in the order in which it is set up: a budget needs its topic."""

    CAPS = "caps"
    TOPIC = "topic"
    BUDGETS = "budgets"
    RIGHTS = "rights"
    TTL = "ttl"


class Intent(StrEnum):
    """What this tool last set out to do with a budget, written down before it does it."""

    CREATE = "create"
    KEEP = "keep"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is on record of one budget of ours.

    Attributes:
        name: the resource's name; None while a creation is under way, or lost.
        adopted: it was made by somebody else, so `destroy` leaves it.
        service: what it tracks; None where that is not on record, or is all services.
        since: when the intent was written, on Firestore's clock.
        at: when this entry was read, on the same clock.
        mark: random, another one at each write.
    """

    intent: Intent
    name: str | None = None
    adopted: bool = False
    display_name: str = ""
    service: str | None = None
    since: datetime | None = None
    at: datetime | None = None
    mark: str = ""

    @property
    def is_open(self) -> bool:
        """Whether a creation was begun, and nothing is known of its end."""
        return self.intent is Intent.CREATE and self.name is None

    @property
    def age_s(self) -> float:
        """Of the intent; 0 where it is not known."""
        return (self.at - self.since).total_seconds() if self.at and self.since else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Everything that exists and matters.

    Attributes:
        by_hand: resources whose policy the caller may not change.
        absent: services that are not deployed yet.
        unread: why a part could not be looked at.
    """

    budgets: tuple[Budget, ...] = ()
    caps: Mapping[str, Entry] = field(default_factory=dict)
    alerts: Mapping[str, Entry] = field(default_factory=dict)
    topic: bool = False
    publisher: bool = False
    accounts: frozenset[str] = frozenset()
    grants: frozenset[Grant] = frozenset()
    ttl: frozenset[str] = frozenset()
    by_hand: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    unread: Mapping[Part, str] = field(default_factory=dict)
