"""What a client was told: its answer, or its refusal."""

from collections.abc import Sequence

from scripts.clients.caller import Event, of_kind
from scripts.clients.client import Json


def answer(events: Sequence[Event]) -> Json:
    """The first result; nothing was refused."""
    assert not of_kind(events, "refused"), events
    return of_kind(events, "answered")[0]["result"]


def refusal(events: Sequence[Event]) -> tuple[str, Json]:
    """Code and details of the one refusal."""
    (event,) = of_kind(events, "refused")
    return event["code"], event["details"]
