"""What a client may ask of `traverse`: where from, how far, how much; and where to go on, in the same words."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from firebreak.errors import InvalidField
from firebreak.graph.fields import fields, identifier, items, label, whole

MOST_STARTS = 30
MOST_DEPTH = 5
MOST_NODES = 200
DEFAULT_NODES = 50
# At which end of its edges a node is.
ENDS = {"out": ("from",), "in": ("to",), "both": ("from", "to")}
DIRECTIONS = {"from": "out", "to": "in"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Edges to be read: those with `node` at `end`, behind the edge `after`; `depth` steps are left from there."""

    node: str
    end: str
    depth: int
    after: str = ""

    def shown(self) -> dict[str, Any]:
        """As an item of `next`, which is one of `start`."""
        start = {"id": self.node, "direction": DIRECTIONS[self.end], "depth": self.depth}
        return start | ({"after": self.after} if self.after else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Traversal:
    """A checked request; `limit` bounds the nodes that are found, beside those it starts from."""

    tasks: tuple[Task, ...]
    ends: tuple[str, ...]
    label: str | None
    limit: int


def parse(data: object) -> Traversal:
    """Check the `data` of a call.

    Raises:
        InvalidField: a field is unknown, missing, of the wrong type or out of range; the message names its place.
    """
    asked = fields(data, "", frozenset({"start", "depth", "limit", "direction", "label"}))
    depth = asked.get("depth", _depth) or 1
    ends = asked.get("direction", _ends) or ENDS["out"]
    start = asked.need("start", _listed)
    tasks = [task for place, value in start for task in _tasks(value, place, depth, ends)]
    return Traversal(
        tasks=tuple(dict.fromkeys(tasks)),
        ends=ends,
        label=asked.get("label", label),
        limit=asked.get("limit", partial(whole, lowest=1, highest=MOST_NODES)) or DEFAULT_NODES,
    )


def _listed(value: object, place: str) -> list[tuple[str, object]]:
    if not isinstance(value, list):
        return [(place, value)]
    return [(f"{place}[{index}]", item) for index, item in enumerate(items(value, place, most=MOST_STARTS))]


def _tasks(value: object, place: str, depth: int, ends: tuple[str, ...]) -> Iterable[Task]:
    if isinstance(value, str):
        return [Task(node=identifier(value, place), end=end, depth=depth) for end in ends]
    item = fields(value, place, frozenset({"id", "direction", "depth", "after"}))
    node, after = item.need("id", identifier), item.get("after", identifier) or ""
    depth = item.get("depth", _depth) or depth
    ends = item.get("direction", _ends) or ends
    if after and len(ends) > 1:
        raise InvalidField(f"{item.at('direction')}: must be in or out where there is an after")
    return [Task(node=node, end=end, depth=depth, after=after) for end in ends]


def _depth(value: object, place: str) -> int:
    return whole(value, place, lowest=1, highest=MOST_DEPTH)


def _ends(value: object, place: str) -> tuple[str, ...]:
    if not isinstance(value, str) or value not in ENDS:
        raise InvalidField(f"{place}: must be one of: {', '.join(ENDS)}")
    return ENDS[value]
