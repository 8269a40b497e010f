"""The operations of `mutate`: which module handles which, and the check of a whole list before any of it is done."""

from collections.abc import Callable
from typing import Protocol

from firebreak.errors import InvalidField
from firebreak.graph.create_edge import CreateEdge
from firebreak.graph.create_node import CreateNode
from firebreak.graph.delete_edge import DeleteEdge
from firebreak.graph.delete_node import DeleteNode
from firebreak.graph.documents import Key
from firebreak.graph.draft import Draft
from firebreak.graph.fields import Fields, fields, items
from firebreak.graph.move_node import MoveNode
from firebreak.graph.update_node import UpdateNode

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
    asked = fields(data, "", frozenset({"operations"}))
    listed = asked.need("operations", lambda value, place: items(value, place, most=MOST_OPERATIONS))
    return [_operation(value, f"operations[{index}]", new_id) for index, value in enumerate(listed)]


def _operation(value: object, place: str, new_id: Callable[[], str]) -> Operation:
    if not isinstance(value, dict):
        raise InvalidField(f"{place}: must be an object")
    handler = Fields(place=place, values=value).need("op", _handler)
    return handler.parse(fields(value, place, handler.FIELDS | {"op"}), new_id)


def _handler(value: object, place: str) -> Handler:
    if not isinstance(value, str) or value not in HANDLERS:
        raise InvalidField(f"{place}: must be one of: {', '.join(HANDLERS)}")
    return HANDLERS[value]
