"""update_node: another label, other properties."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from firebreak.errors import InvalidField
from firebreak.graph import fields
from firebreak.graph.documents import Content, Key, node
from firebreak.graph.draft import Draft
from firebreak.graph.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateNode:
    """Fields of a node to be replaced, whole: properties are not merged."""

    FIELDS = frozenset({"id", "label", "properties"})

    place: str
    id: str
    changed: Content

    @classmethod
    def parse(cls, asked: Fields, _new_id: Callable[[], str]) -> Self:
        """From its fields: `id`, and `label` or `properties` or both."""
        id_ = asked.need("id", fields.identifier)
        changed = {"label": asked.get("label", fields.label), "properties": asked.get("properties", fields.properties)}
        changed = {name: value for name, value in changed.items() if value is not None}
        if not changed:
            raise InvalidField(f"{asked.place}: must have a label or properties")
        return cls(place=asked.place, id=id_, changed=changed)

    @property
    def mentions(self) -> tuple[Key, ...]:
        """What must be read to know whether it can be."""
        return (node(self.id),)

    def apply(self, draft: Draft) -> None:
        """Change it, on paper."""
        draft.change(node(self.id), self.changed, self.place)
