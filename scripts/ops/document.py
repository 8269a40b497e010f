"""A user's bucket as an operator reads it, and its place in a commit."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from google.cloud import firestore

from firebreak.bucket.documents import BUCKETS, Bucket, Read, read_bucket
from firebreak.store.documents import Corrupt
from firebreak.store.times import to_us
from scripts.ops.failure import NotDone
from scripts.ops.rpc import RPC_S, patiently


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A bucket's document as read; `data` None: there is none."""

    reference: firestore.DocumentReference
    data: Mapping[str, Any] | None
    updated: datetime | None
    read: datetime

    @property
    def at_us(self) -> int:
        return to_us(self.read)

    def parsed(self, **instead: object) -> Read:
        """The document as a value, with some of its fields replaced.

        Raises:
            NotDone: a field holds what no bucket can hold.
        """
        data = None if self.data is None else {**self.data, **instead}
        try:
            return read_bucket(data, updated=self.updated, read=self.read)
        except Corrupt as error:
            fix = "user limit UID N" if "override" in str(error) else "user reset UID"
            raise NotDone(f"the bucket is damaged ({error}) and refuses every call; fix it with `{fix}`") from error

    def mended(self, **instead: object) -> Bucket:
        """The bucket with a level in any case, and with some of its fields replaced."""
        return self.parsed(tokens=0, updatedAt=self.read, **instead).bucket


def see(client: firestore.Client, user_key: str) -> Seen:
    """Read a user's bucket."""
    reference = client.collection(BUCKETS).document(user_key)
    snapshot = patiently(lambda: reference.get(timeout=RPC_S))
    return Seen(reference=reference, data=snapshot.to_dict(), updated=snapshot.update_time, read=snapshot.read_time)


def next_version(bucket: Bucket) -> int:
    """Rule 3: a chain of versions that starts anew must not fit another's."""
    return secrets.randbits(48) if bucket.version is None else bucket.version + 1


def update(
    reference: firestore.DocumentReference,
    fields: Mapping[str, Any],
    unchanged: datetime | None,
    batch: firestore.WriteBatch,
) -> None:
    condition = None if unchanged is None else firestore.Client.write_option(last_update_time=unchanged)
    batch.update(reference, dict(fields), option=condition)
