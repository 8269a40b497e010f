"""How the caps and alert budgets stand: from Google, from the record, and from the notices that the functions noted."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from google.api_core.exceptions import GoogleAPICallError
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter

from scripts.provision.budget import Budget
from scripts.provision.failure import Failed
from scripts.provision.money import Money
from scripts.provision.session import Session
from scripts.provision.step import Kind

_NOTICES = "budget_notices"
_MICRO = 1000
_RPC_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CapStatus:
    """One cap: what Google says now, and when the functions saw it last."""

    key: str
    name: str | None
    state: str
    amount: str | None = None
    reconciling: bool = False
    made: bool = True
    since: datetime | None = None
    seen: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertStatus:
    """One alert budget: what its last notice said, and what it set off."""

    key: str
    name: str | None
    there: bool
    period: str | None = None
    cost: str | None = None
    amount: str | None = None
    as_of: datetime | None = None
    applied: tuple[str, ...] = ()


def caps(at: Session) -> list[CapStatus]:
    """Every cap on record, and those of the file that are not.

    Raises:
        Failed: Google or Firestore does not tell.
    """
    entries = at.edges.record.raw(Kind.CAP)
    missing = [CapStatus(key=key, name=None, state="not made") for key in at.config.caps if key not in entries]
    return [_cap(at, key, entries[key]) for key in sorted(entries)] + missing


def _cap(at: Session, key: str, entry: Mapping[str, Any]) -> CapStatus:
    at.edges.say(f"looking at the cap {key}")
    name = entry.get("name")
    found = at.edges.budgets.get(name) if name else None
    return CapStatus(
        key=key,
        name=name,
        state=_state(found, name),
        amount=str(found.amount) if found and found.amount else None,
        reconciling=bool(found and found.cap and found.cap.reconciling),
        made=not entry.get("adopted", False),
        since=_time(entry.get("createdAt") or entry.get("since")),
        seen=_time(entry.get("seenAt")),
    )


def _state(found: Budget | None, name: str | None) -> str:
    if found is None:
        return "gone" if name else "asked for, unknown"
    return str(found.cap.state) if found.cap else "NO CAP: a plain alert"


def alerts(at: Session) -> list[AlertStatus]:
    """Every alert budget on record, and those of the file that are not; raises as `caps`."""
    entries = at.edges.record.raw(Kind.BUDGET)
    missing = [AlertStatus(key=key, name=None, there=False) for key in at.config.budgets if key not in entries]
    return [_alert(at, key, entries[key]) for key in sorted(entries)] + missing


def _alert(at: Session, key: str, entry: Mapping[str, Any]) -> AlertStatus:
    at.edges.say(f"looking at the alert budget {key}")
    name = entry.get("name")
    there = name is not None and at.edges.budgets.get(name) is not None
    latest = _latest(at.store, name.rpartition("/")[2]) if name else None
    if latest is None:
        return AlertStatus(key=key, name=name, there=there)
    return AlertStatus(
        key=key,
        name=name,
        there=there,
        period=str(latest.get("period")),
        cost=_money(latest.get("costMicros"), latest.get("currency")),
        amount=_money(latest.get("budgetMicros"), latest.get("currency")),
        as_of=_time(latest.get("asOf")),
        applied=tuple(
            f"{threshold} {_action(done)}" for threshold, done in sorted(_mapping(latest.get("applied")).items())
        ),
    )


def _latest(store: firestore.Client, budget: str) -> Mapping[str, Any] | None:
    """The document of a budget's latest period; it has one for each."""
    query = store.collection(_NOTICES).where(filter=FieldFilter("budget", "==", budget))
    try:
        found = [snapshot.to_dict() or {} for snapshot in query.stream(timeout=_RPC_S)]
    except GoogleAPICallError as error:
        raise Failed(f"Firestore does not give {_NOTICES}: {type(error).__name__}: {error}") from error
    epoch = datetime.fromtimestamp(0, UTC)
    return max(found, key=lambda data: _time(data.get("start")) or epoch, default=None)


def _money(micros: object, currency: object) -> str | None:
    return str(Money(nanos=micros * _MICRO, currency=str(currency))) if isinstance(micros, int) else None


def _action(done: object) -> str:
    return str(_mapping(done).get("action", ""))


def _mapping(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, dict) else {}


def _time(found: object) -> datetime | None:
    return found if isinstance(found, datetime) else None
