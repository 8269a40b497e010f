"""The switch's document: one read of it, and its place in a commit."""

from dataclasses import dataclass
from datetime import datetime

from google.cloud import firestore

from firebreak.store import commit
from firebreak.store.times import to_us
from firebreak.switch.state import State, fields_of, parse

OPS = "ops"
SWITCH = "switch"


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchReading:
    """The state as read at `at_us` of the server's time; `updated` is the document's update_time, None without one."""

    state: State
    at_us: int
    updated: datetime | None


def read(client: firestore.Client, *, timeout_s: float) -> SwitchReading:
    """Read the switch; one RPC, never resent by the client.

    Raises:
        Corrupt: it holds something no switch can hold.
        Unreadable: there is no database to read from.
    """
    snapshot = commit.get(_reference(client), timeout_s=timeout_s)
    return SwitchReading(state=parse(snapshot.to_dict()), at_us=to_us(snapshot.read_time), updated=snapshot.update_time)


def write(client: firestore.Client, batch: firestore.WriteBatch, state: State, *, unchanged: datetime | None) -> None:
    """Add the new state to a commit, which fails if the switch is not as it was read; None: there was no document."""
    fields = fields_of(state)
    if unchanged is None:
        batch.create(_reference(client), fields)
    else:
        batch.update(_reference(client), fields, option=client.write_option(last_update_time=unchanged))


def _reference(client: firestore.Client) -> firestore.DocumentReference:
    reference: firestore.DocumentReference = client.collection(OPS).document(SWITCH)
    return reference
