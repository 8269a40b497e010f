"""Level documents in Firestore: a few named levels under one version; each method is one RPC."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from google.api_core.exceptions import FailedPrecondition, NotFound
from google.cloud import firestore
from google.cloud.firestore_v1.field_path import FieldPath

from firebreak.bucket import writes
from firebreak.bucket.answers import Unreadable
from firebreak.bucket.arithmetic import Level
from firebreak.bucket.record import Corrupt, from_us, read_level, to_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """A level document as read, or as our own commit left it; `updated` is its update_time, None: there is none."""

    levels: Mapping[str, Level]
    version: int | None
    updated: datetime | None


class LevelDocument:
    """One level document; the names of its levels are such as `document_id` makes."""

    __slots__ = ("_path", "client")

    def __init__(self, client: firestore.Client, collection: str, name: str) -> None:
        self.client = client
        self._path = (collection, name)

    @property
    def reference(self) -> firestore.DocumentReference:
        # Made anew each time: most documents that an instance remembers are not asked again.
        reference: firestore.DocumentReference = self.client.document(*self._path)
        return reference

    def commit(
        self, before: Levels, changed: Mapping[str, Level], *, expire_us: int | None, timeout_s: float
    ) -> tuple[Levels, int]:
        """Write the levels that changed, if the document is still as it was before; others stay as they are.

        Returns what it holds now, and the server's time of the commit.
        """
        # An update that changed no field would keep the update_time; a chain that starts anew must fit no other.
        version = secrets.randbits(48) if before.version is None else before.version + 1
        levels: dict[str, writes.Value] = {
            name: {"tokens": level.tokens, "updatedAt": from_us(level.updated_us)} for name, level in changed.items()
        }
        fields: dict[str, writes.Value] = {"levels": levels, "version": version}
        if expire_us is not None:
            fields["expireAt"] = from_us(expire_us)
        batch = self.client.batch()
        if before.updated is None:
            writes.create(batch, self.reference, fields)
        else:
            paths = [*(FieldPath("levels", name).to_api_repr() for name in changed), *(fields.keys() - {"levels"})]
            writes.update(batch, self.reference, fields, unchanged=before.updated, paths=paths)
        # retry=None: the client would resend on UNAVAILABLE, and a copy may have been applied.
        results = batch.commit(retry=None, timeout=timeout_s)
        updated = results[0].update_time
        return Levels(levels={**before.levels, **changed}, version=version, updated=updated), to_us(updated)


def read(documents: Sequence[LevelDocument], *, timeout_s: float) -> Iterator[tuple[int, Levels | Corrupt, int]]:
    """Read documents in one RPC: the number of each, what it holds, and the server's time.

    One that holds something else than levels does not hide the others.

    Raises:
        Unreadable: there is no database to read from.
    """
    numbers = {document.reference: number for number, document in enumerate(documents)}
    try:
        snapshots = list(documents[0].client.get_all(list(numbers), retry=None, timeout=timeout_s))
    except (NotFound, FailedPrecondition) as error:
        raise Unreadable from error
    for snapshot in snapshots:
        try:
            found: Levels | Corrupt = _levels(snapshot.to_dict(), updated=snapshot.update_time)
        except Corrupt as broken:
            found = broken
        yield numbers[snapshot.reference], found, to_us(snapshot.read_time)


def _levels(data: Mapping[str, Any] | None, *, updated: datetime | None) -> Levels:
    fields = data or {}
    levels, version = fields.get("levels", {}), fields.get("version")
    if not isinstance(levels, dict) or not all(isinstance(level, dict) for level in levels.values()):
        raise Corrupt("levels is not a map of maps")
    return Levels(
        levels={name: read_level(level) for name, level in levels.items()},
        version=version if isinstance(version, int) and not isinstance(version, bool) else None,
        updated=updated,
    )
