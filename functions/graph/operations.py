"""The operations of a list: how each is parsed, which documents it mentions, and what it makes of a draft."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

from firebreak.errors import InvalidField
from graph import fields
from graph.documents import Content, Key, edge, node
from graph.draft import Draft
from graph.fields import Fields, items


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteNode:
    """A node that is to go."""

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
        return (node(self.id),)

    def apply(self, draft: Draft) -> None:
        """Delete it, on paper; sweep.py deletes the edges that only the store knows."""
        draft.delete_node(self.id)


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


MOST_OPERATIONS = 100


class Operation(Protocol):
    """One step of a list, checked as far as it can be without reading."""

    @property
    def id(self) -> str:
        """The node's or edge's, the client's own or a new one."""

    @property
    def mentions(self) -> tuple[Key, ...]:
        """The documents that must be read before it can be applied."""

    def apply(self, draft: Draft) -> None:
        """Change the draft; raises InvalidField where that does not fit what is there."""


type Handler = type[CreateNode | CreateEdge | UpdateNode | MoveNode | DeleteNode | DeleteEdge]

HANDLERS: dict[str, Handler] = {
    "create_node": CreateNode,
    "create_edge": CreateEdge,
    "update_node": UpdateNode,
    "move_node": MoveNode,
    "delete_node": DeleteNode,
    "delete_edge": DeleteEdge,
}


def parse(data: object, new_id: Callable[[], str]) -> list[Operation]:
    """Check the `data` of a call; `new_id` makes the ids that the client leaves out.

    Raises:
        InvalidField: a field is unknown, missing, of the wrong type or out of range; the message names its place.
    """
    asked = fields.fields(data, "", frozenset({"operations"}))
    listed = asked.need("operations", lambda value, place: items(value, place, most=MOST_OPERATIONS))
    return [_operation(value, f"operations[{index}]", new_id) for index, value in enumerate(listed)]


def _operation(value: object, place: str, new_id: Callable[[], str]) -> Operation:
    if not isinstance(value, dict):
        raise InvalidField(f"{place}: must be an object")
    handler = Fields(place=place, values=value).need("op", _handler)
    return handler.parse(fields.fields(value, place, handler.FIELDS | {"op"}), new_id)


def _handler(value: object, place: str) -> Handler:
    if not isinstance(value, str) or value not in HANDLERS:
        raise InvalidField(f"{place}: must be one of: {', '.join(HANDLERS)}")
    return HANDLERS[value]
