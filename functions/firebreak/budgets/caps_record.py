"""The spend caps on record: `ops/caps`, where provisioning puts their names, and the watch what it sees of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from google.api_core.exceptions import FailedPrecondition, NotFound
from google.cloud import firestore

from firebreak.bucket.answers import Unreadable
from firebreak.budgets.caps import Known, known

OPS = "ops"
CAPS = "caps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A read: all caps, and the document's update_time, None where there is no document; the server's time of it."""

    known: Known
    updated: datetime | None
    at: datetime


def read(client: firestore.Client, *, timeout_s: float) -> Record:
    """Read the record, in one RPC.

    Raises:
        Unreadable: there is no database to read from.
    """
    try:
        snapshot = _reference(client).get(retry=None, timeout=timeout_s)
    except (NotFound, FailedPrecondition) as error:
        raise Unreadable from error
    entries = (snapshot.to_dict() or {}).get("caps", {})
    return Record(known=known(entries), updated=snapshot.update_time, at=snapshot.read_time)


def write(client: firestore.Client, batch: firestore.WriteBatch, record: Record, seen: Mapping[str, str]) -> None:
    """Add the states seen, by budget name, to a commit, which fails if the record is not as it was read."""
    fields: dict[str, str | datetime] = {}
    for cap in record.known.caps:
        if cap.name in seen:
            new: dict[str, str | datetime] = {"outputState": seen[cap.name], "seenAt": record.at}
            if seen[cap.name] != cap.state:
                new["changedAt"] = record.at
            fields |= {client.field_path("caps", cap.key, name): value for name, value in new.items()}
    if fields:
        batch.update(_reference(client), fields, option=client.write_option(last_update_time=record.updated))


def _reference(client: firestore.Client) -> firestore.DocumentReference:
    reference: firestore.DocumentReference = client.collection(OPS).document(CAPS)
    return reference
