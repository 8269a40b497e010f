"""The kill switch, the records of its changes and what a budget has set off: as Firestore has them, and put back."""

from datetime import datetime
from typing import Any

from firebreak.switch import change
from firebreak.switch.change import Reset
from firebreak.switch.state import is_held_by
from scripts.demo.billing import ID
from scripts.demo.evidence import SwitchChange
from scripts.local.client import client_at

OWNER = "budget"
TIMEOUT_S = 10.0


class Ops:
    """The documents of the operator, read past every limit."""

    def __init__(self, firestore_host: str) -> None:
        self._client = client_at(firestore_host)

    def reason(self, scope: str) -> str | None:
        """What is told to whoever is refused, while the budget holds this scope switched off."""
        fields = self._client.document("ops/switch").get(timeout=TIMEOUT_S).to_dict() or {}
        held = fields.get("trips", {}).get(scope, {}).items()
        return next((str(trip.get("reason")) for owner, trip in held if is_held_by(owner, OWNER)), None)

    def changes(self, since_ms: float) -> tuple[SwitchChange, ...]:
        """The records of what was changed since, oldest first; the time is that of the commit."""
        records = self._client.collection("ops/changes/log").get(timeout=TIMEOUT_S)
        found = [_change(record.to_dict() or {}, record.create_time) for record in records]
        return tuple(sorted((c for c in found if c.at_ms >= since_ms), key=lambda c: c.at_ms))

    def begin_period(self) -> None:
        """As a new period would: nothing of the budget was done yet, and nothing that it did holds."""
        for standing in self._client.collection("budget_notices").list_documents(timeout=TIMEOUT_S):
            if standing.id.startswith(ID):
                standing.delete(timeout=TIMEOUT_S)
        self.reset()

    def reset(self) -> None:
        """Switch on again what the budget switched off, if it did."""
        if any(is_held_by(trip.owner, OWNER) for trip in change.read(self._client, timeout_s=TIMEOUT_S).trips):
            reset = Reset(scope=None, owner=OWNER, reason="the demo puts everything back", by="scripts.demo")
            change.apply(self._client, [reset], timeout_s=TIMEOUT_S)


def _change(fields: dict[str, Any], committed: datetime) -> SwitchChange:
    return SwitchChange(
        what=str(fields.get("what")),
        scope=str(fields.get("scope")),
        # Which budget it was is in `by`.
        owner=str(fields.get("owner")).partition(":")[0],
        at_ms=committed.timestamp() * 1000,
    )
