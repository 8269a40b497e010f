"""The lines for `functions/.env` by which the functions act on budgets and caps: a start, to be edited."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal

from scripts.provision.budget import percent
from scripts.provision.config import Alert, Config
from scripts.provision.services import FIRESTORE, SERVICES

_TIGHTEN_FROM = Decimal("0.9")
_TRIP_FROM = Decimal(1)


def env(names: Mapping[str, str], config: Config) -> list[str]:
    """The settings for these alert budgets, by their resource names, and for the file's caps."""
    policies = budget_policies(names, config.budgets)
    return [*([policies] if policies else []), *(["WATCH_CAPS=true"] if config.caps else [])]


def budget_policies(names: Mapping[str, str], budgets: Mapping[str, Alert]) -> str:
    """`BUDGET_POLICIES=…` for the budgets of these resource names, by key; empty without any.

    Less than nine tenths of the amount is recorded, from there the limits are halved, and at the amount the scope that
    the money goes to is switched off; a forecast switches nothing off.
    """
    entries = [f"{_id(names[key])}: {' '.join(_policies(budgets[key]))}" for key in sorted(budgets) if key in names]
    return f"BUDGET_POLICIES={'; '.join(entries)}" if entries else ""


def _id(name: str) -> str:
    _, account, _, budget = name.split("/")
    return f"{account}/{budget}"


def _policies(alert: Alert) -> Iterator[str]:
    scope = _scope(alert.service)
    for part in alert.thresholds:
        action = "record" if part < _TIGHTEN_FROM else "tighten(50)" if part < _TRIP_FROM else f"trip({scope})"
        yield f"{percent(part)}={action}"
    yield from _forecasts(alert.forecast)


def _forecasts(parts: Iterable[Decimal]) -> Iterator[str]:
    for part in parts:
        yield f"forecast {percent(part)}=record"


def _scope(service: str | None) -> str:
    if service == FIRESTORE.key:
        return "firestore"
    known = SERVICES.get(service or "")
    return (known.scope if known else None) or "all"
