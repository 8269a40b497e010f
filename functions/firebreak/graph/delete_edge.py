"""delete_edge: an edge; one that is gone already may be deleted again."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from firebreak.graph import fields
from firebreak.graph.documents import Key, edge
from firebreak.graph.draft import Draft
from firebreak.graph.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteEdge:
    """An edge that is to go."""

    FIELDS = frozenset({"id"})

    place: str
    id: str

    @classmethod
    def parse(cls, asked: Fields, _new_id: Callable[[], str]) -> Self:
        """From its field: `id`."""
        return cls(place=asked.place, id=asked.need("id", fields.identifier))

    @property
    def mentions(self) -> tuple[Key, ...]:
        """What must be read to know whether there is anything to do."""
        return (edge(self.id),)

    def apply(self, draft: Draft) -> None:
        """Delete it, on paper."""
        draft.delete(edge(self.id))
