"""A budget of Cloud Billing, spend cap or alert, as its JSON (v1, revision 20261011) says it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from scripts.provision.money import Money

EXCLUDE, INCLUDE = "EXCLUDE_ALL_CREDITS", "INCLUDE_ALL_CREDITS"
CURRENT, FORECAST = "CURRENT_SPEND", "FORECASTED_SPEND"
# A filter with any of these tracks something else than one project's use by the month.
_NARROWER = ("customPeriod", "creditTypes", "resourceAncestors", "subaccounts", "labels")

type Threshold = tuple[Decimal, str]


class State(StrEnum):
    """Of a spend cap; whatever else Google may say is UNKNOWN."""

    CONFIGURED = "CONFIGURED"
    ENFORCED = "ENFORCED"
    LIFTED = "AWAITING_NEXT_PERIOD"
    UNKNOWN = "STATE_UNSPECIFIED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """What makes a budget a spend cap: the state it is in, and the one that was asked for last."""

    state: State
    asked: State = State.CONFIGURED
    reconciling: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a budget tracks; `narrowed` if by more than project, service, month and credits."""

    projects: frozenset[str]
    services: frozenset[str] = frozenset()
    credits: str = INCLUDE
    period: str = "MONTH"
    narrowed: bool = False

    def is_of(self, project_names: frozenset[str]) -> bool:
        """Whether it tracks one project, which these are the names of; no project at all would be the whole account."""
        return bool(self.projects) and self.projects <= project_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """One budget; `cap` is None for one that only alerts, `amount` None where it follows the last period."""

    name: str
    display_name: str
    filter: Filter
    amount: Money | None
    thresholds: frozenset[Threshold] = frozenset()
    topic: str = ""
    etag: str = ""
    cap: Cap | None = None

    @classmethod
    def of(cls, wire: Mapping[str, Any]) -> "Budget":
        """From the JSON of the API, which leaves out what is empty."""
        amount = wire.get("amount", {}).get("specifiedAmount")
        return cls(
            name=wire["name"],
            display_name=wire.get("displayName", ""),
            filter=_filter(wire.get("budgetFilter", {})),
            amount=None if amount is None else Money.of(amount),
            thresholds=frozenset(map(_threshold, wire.get("thresholdRules", ()))),
            topic=wire.get("notificationsRule", {}).get("pubsubTopic", ""),
            etag=wire.get("etag", ""),
            cap=_cap(wire.get("spendCap")),
        )


def _filter(wire: Mapping[str, Any]) -> Filter:
    return Filter(
        projects=frozenset(wire.get("projects", ())),
        services=frozenset(wire.get("services", ())),
        credits=_given(wire.get("creditTypesTreatment"), INCLUDE),
        period=_given(wire.get("calendarPeriod"), "MONTH"),
        narrowed=any(wire.get(name) for name in _NARROWER),
    )


def _given(found: str | None, default: str) -> str:
    return default if found is None or found.endswith("_UNSPECIFIED") else found


def _threshold(wire: Mapping[str, Any]) -> Threshold:
    # By way of text: the float 0.9 is not the decimal 0.9.
    return Decimal(str(wire.get("thresholdPercent", 0))).normalize(), _given(wire.get("spendBasis"), CURRENT)


def _cap(wire: Mapping[str, Any] | None) -> Cap | None:
    if wire is None:
        return None
    return Cap(
        state=_state(wire.get("outputState")),
        asked=_state(wire.get("inputState")),
        reconciling=bool(wire.get("reconciling", False)),
    )


def _state(said: object) -> State:
    return next((state for state in State if state == said), State.UNKNOWN)


def percent(part: Decimal) -> str:
    """0.9 as 90%."""
    return f"{(part * 100).normalize():f}%"
