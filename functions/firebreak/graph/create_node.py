"""create_node: a new node, or the same one again."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from firebreak.graph import fields
from firebreak.graph.documents import Content, Key, node
from firebreak.graph.draft import Draft
from firebreak.graph.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateNode:
    """A node to be; `given` is whether the client chose its id, so that it may be there already."""

    FIELDS = frozenset({"id", "label", "properties", "position"})

    place: str
    id: str
    given: bool
    content: Content

    @classmethod
    def parse(cls, asked: Fields, new_id: Callable[[], str]) -> Self:
        """From its fields: `id?`, `label?`, `properties?`, `position?`."""
        id_ = asked.get("id", fields.identifier)
        position = asked.get("position", fields.position)
        content = {
            "label": asked.get("label", fields.label) or "",
            "properties": asked.get("properties", fields.properties) or {},
        }
        return cls(
            place=asked.place,
            id=id_ or new_id(),
            given=id_ is not None,
            content=content if position is None else content | {"position": position},
        )

    @property
    def mentions(self) -> tuple[Key, ...]:
        """What must be read to know whether it can be."""
        return (node(self.id),) if self.given else ()

    def apply(self, draft: Draft) -> None:
        """Create it, on paper."""
        draft.create(node(self.id), self.content, self.place)
