"""move_node: another position."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from firebreak.graph import fields
from firebreak.graph.documents import Content, Key, node
from firebreak.graph.draft import Draft
from firebreak.graph.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveNode:
    """A node's new position."""

    FIELDS = frozenset({"id", "position"})

    place: str
    id: str
    position: Content

    @classmethod
    def parse(cls, asked: Fields, _new_id: Callable[[], str]) -> Self:
        """From its fields: `id`, `position`."""
        id_ = asked.need("id", fields.identifier)
        return cls(place=asked.place, id=id_, position=asked.need("position", fields.position))

    @property
    def mentions(self) -> tuple[Key, ...]:
        """What must be read to know whether it can be."""
        return (node(self.id),)

    def apply(self, draft: Draft) -> None:
        """Move it, on paper."""
        draft.change(node(self.id), {"position": self.position}, self.place)
