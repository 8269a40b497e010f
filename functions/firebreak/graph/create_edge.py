"""create_edge: a new edge between two nodes that are there, or the same one again."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from firebreak.graph import fields
from firebreak.graph.documents import Content, Key, edge, node
from firebreak.graph.draft import Draft
from firebreak.graph.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateEdge:
    """An edge to be; `given` is whether the client chose its id, so that it may be there already."""

    FIELDS = frozenset({"id", "from", "to", "label"})

    place: str
    id: str
    given: bool
    content: Content

    @classmethod
    def parse(cls, asked: Fields, new_id: Callable[[], str]) -> Self:
        """From its fields: `id?`, `from`, `to`, `label?`."""
        id_ = asked.get("id", fields.identifier)
        content = {
            "from": asked.need("from", fields.identifier),
            "to": asked.need("to", fields.identifier),
            "label": asked.get("label", fields.label) or "",
        }
        return cls(place=asked.place, id=id_ or new_id(), given=id_ is not None, content=content)

    @property
    def mentions(self) -> tuple[Key, ...]:
        """What must be read to know whether it can be."""
        ends = (node(self.content["from"]), node(self.content["to"]))
        return (*ends, edge(self.id)) if self.given else ends

    def apply(self, draft: Draft) -> None:
        """Create it, on paper."""
        for end in ("from", "to"):
            draft.must_be(node(self.content[end]), f"{self.place}.{end}")
        draft.create(edge(self.id), self.content, self.place)
