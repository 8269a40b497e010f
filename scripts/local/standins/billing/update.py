"""What an update asks of a budget, and whether its cap allows that now; pure."""

from typing import Any

from scripts.local.standins.billing import cap as billing_cap
from scripts.local.standins.billing import patch as billing_patch
from scripts.local.standins.billing import rules as billing_rules
from scripts.local.standins.billing.cap import AWAITING, ENFORCED, Cap
from scripts.local.standins.billing.record import Fields, Record
from scripts.local.standins.billing.rules import Broken
from scripts.local.standins.google import GoogleError

_SPEND_CAP = frozenset({"spendCap", "spendCap.inputState"})


def updated(record: Record, given: Fields, mask: str, *, views: int) -> Record:
    """The budget after it, not judged by any rule of budgets yet, and not in canonical form.

    Raises:
        GoogleError: 400.
    """
    paths = billing_patch.paths(mask)
    if record.cap is not None and paths and _SPEND_CAP.isdisjoint(paths):
        raise Broken("updateMask names spendCap or spendCap.inputState")
    if given.get("name", record.name) != record.name:
        raise Broken("name is that of the request's URL")
    if given.get("etag", record.etag) != record.etag:
        raise precondition()
    cap = _cap(record, given, paths, views)
    if cap is None and record.cap is not None and record.cap.resting == ENFORCED:
        raise precondition()
    return Record(name=record.name, fields=_fields(record, given, paths), cap=cap)


def precondition() -> GoogleError:
    return GoogleError(400, "Precondition check failed.", status="FAILED_PRECONDITION")


def _cap(record: Record, given: Fields, paths: tuple[str, ...], views: int) -> Cap | None:
    """The cap after it; None for a budget that has none then."""
    asked = given.get("spendCap")
    if record.cap is None:
        if asked is not None and (not paths or not _SPEND_CAP.isdisjoint(paths)):
            raise Broken("a budget without a cap never gets one")
        return None
    if asked is None and "spendCap" in paths:
        return None
    if asked is None and not paths and record.cap.resting != AWAITING:
        return record.cap
    state = (asked or {}).get("inputState")
    cap = billing_cap.ask(record.cap, state, billing_rules.amount(record.fields), views=views)
    if cap is None:
        raise Broken(f"inputState {state} is valid while {record.cap.resting}")
    return cap


def _fields(record: Record, given: Fields, paths: tuple[str, ...]) -> dict[str, Any]:
    others = {name: value for name, value in given.items() if name not in {"spendCap", "name", "etag"}}
    if not paths:
        return billing_patch.merged(record.fields, others)
    return billing_patch.masked(record.fields, others, [path for path in paths if path not in _SPEND_CAP | {"etag"}])
