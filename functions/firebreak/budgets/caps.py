"""What the spend caps' states ask of the switch: pure."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from firebreak.switch.state import SCOPES

ENFORCED = "ENFORCED"
# At rest a cap is in one of these; the last is what the console calls lifted.
STATES = frozenset({"CONFIGURED", ENFORCED, "AWAITING_NEXT_PERIOD"})
# A cap of Cloud Run or of functions pauses this backend too, the watch among it, so that it can hardly tell of that.
SCOPE_OF_SERVICE = {
    "services/AEFD-7695-64FA": "gemini",  # Gemini API
    "services/C7E2-9256-1C43": "gemini",  # Agent Platform, formerly Vertex AI
    "services/152E-C115-5142": "all",  # Cloud Run
    "services/29E7-DA93-CA13": "all",  # Cloud Run functions
}
_NAME = re.compile(r"billingAccounts/[0-9A-Za-z-]+/budgets/[0-9A-Za-z-]+")


class NoCap(Exception):
    """What the API shows is not what can be acted on; nothing is changed on a guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """A spend cap on record: its budget's `name`, the scope it is for, its state as last seen, None if it never was."""

    key: str
    name: str
    scope: str
    state: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCaps:
    """All caps on record, and the keys of entries that are none: what they are for is not known."""

    caps: tuple[Cap, ...]
    odd: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CapsDecision:
    """Scopes to be tripped and to be reset, as owner `caps`."""

    trips: tuple[str, ...]
    resets: tuple[str, ...]


def known(entries: object) -> KnownCaps:
    """The caps in the entries on record, by key; one without a name has no budget yet, or none any more."""
    caps, odd = [], []
    if not isinstance(entries, dict):
        return KnownCaps(caps=(), odd=("caps",))
    for key, entry in sorted(entries.items()):
        if not isinstance(entry, dict):
            odd.append(key)
        elif entry.get("name") is not None:
            cap = _cap(key, entry)
            caps.append(cap) if cap else odd.append(key)
    return KnownCaps(caps=tuple(caps), odd=tuple(odd))


def _cap(key: str, entry: Mapping[str, Any]) -> Cap | None:
    name, state = entry["name"], entry.get("outputState")
    scope = entry.get("scope") or SCOPE_OF_SERVICE.get(str(entry.get("service")))
    if not isinstance(name, str) or not _NAME.fullmatch(name) or scope not in SCOPES:
        return None
    return Cap(key=key, name=name, scope=scope, state=state if _is_state(state) else None)


def _is_state(found: object) -> bool:
    return isinstance(found, str) and found in STATES


def resting(budget: Mapping[str, Any]) -> str | None:
    """The state in which a budget's cap is at rest, as the API shows it; None while it moves to another.

    Raises:
        NoCap: it is no spend cap, or in no state that is known.
    """
    cap = budget.get("spendCap")
    if not isinstance(cap, dict):
        raise NoCap("not a spend cap")
    if cap.get("reconciling"):
        return None
    if not _is_state(cap.get("outputState")):
        raise NoCap("in no state that is known")
    return str(cap["outputState"])


def decide(known: KnownCaps, seen: Mapping[str, str], held: Collection[str]) -> CapsDecision:
    """What to change about the switch.

    `seen` are the states at rest, by budget name, of the caps that could be read now; `held` are the scopes that `caps`
    holds already. A cap that could not be read is as it was: it trips nothing anew, and if it was enforced, or was
    never seen, it keeps what is held.
    """
    enforced = {cap.scope for cap in known.caps if seen.get(cap.name) == ENFORCED}
    may_be = {cap.scope for cap in known.caps if seen.get(cap.name, cap.state) in {ENFORCED, None}}
    lifted = set() if known.odd else set(held) - may_be
    return CapsDecision(trips=tuple(sorted(enforced - set(held))), resets=tuple(sorted(lifted)))
