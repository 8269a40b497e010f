"""The documents that are there, by name and by collection, and what of them expires."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.twin import fields, values
from tests.twin.clock import micros
from tests.twin.paths import document_name, field_path, parent


@dataclass(frozen=True, slots=True)
class Stored:
    """A document as it stands: a bare `Document`, which nobody changes any more."""

    document: Any

    @property
    def updated_us(self) -> int:
        return micros(self.document.update_time)


class Documents:
    """All documents of all databases, by their full names."""

    def __init__(self) -> None:
        self._collections: dict[str, dict[str, Stored]] = defaultdict(dict)

    def get(self, name: str) -> Stored | None:
        collection = self._collections.get(parent(name))
        return None if collection is None else collection.get(name)

    def put(self, name: str, stored: Stored | None) -> None:
        """Let this be the document of that name; None: let there be none."""
        if stored is not None:
            self._collections[parent(name)][name] = stored
            return
        collection = self._collections[parent(name)]
        collection.pop(name, None)
        if not collection:
            del self._collections[parent(name)]

    def collection(self, name: str) -> Iterator[Stored]:
        """The documents of one collection, in no order."""
        yield from self._collections.get(name, {}).values()

    def group(self, root: str, collection_id: str) -> Iterator[Stored]:
        """The documents of all collections of that id below `root`, in no order."""
        for name, collection in self._collections.items():
            if name.startswith(root + "/") and name.rpartition("/")[2] == collection_id:
                yield from collection.values()

    def missing(self, collection: str) -> set[str]:
        """Names in a collection where no document is, but documents are below."""
        below = {
            "/".join(name.split("/")[: collection.count("/") + 2])
            for name in self._collections
            if name.startswith(collection + "/")
        }
        return below - set(self._collections.get(collection, ()))

    def collection_ids(self, root: str) -> list[str]:
        """The ids of the collections right below a document, or a database's documents."""
        below = (name[len(root) + 1 :] for name in self._collections if name.startswith(root + "/"))
        return sorted({name.split("/")[0] for name in below})

    def expired(self, policies: Mapping[str, str], now_us: int) -> list[str]:
        """Names of the documents that a TTL policy, a field by collection group, lets go at that time.

        Only a timestamp that is past counts; what lies below such a document stays.
        """
        return sorted(
            (
                name
                for collection, found in self._collections.items()
                for name, stored in found.items()
                if _is_past(stored, policies.get(collection.rpartition("/")[2]), now_us)
            ),
            key=document_name,
        )


def _is_past(stored: Stored, field: str | None, now_us: int) -> bool:
    value = None if field is None else fields.at(stored.document.fields, field_path(field))
    if value is None or values.kind(value) != "timestamp_value":
        return False
    return micros(value.timestamp_value) <= now_us
