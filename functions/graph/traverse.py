"""The `traverse` callable: what a client may ask, and the walk from some nodes that answers it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import batched
from typing import Any

from google.cloud import firestore

from firebreak.errors import InvalidField
from firebreak.metering.meter import current
from firebreak.store import commit
from firebreak.store.outcome import STORE_ERRORS, Unreadable, unavailable
from graph.documents import UNREACHABLE, Kind, document, edge, graph_of, node, shown
from graph.fields import fields, identifier, is_identifier, items, label, whole

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


READ_S = 5.0
# Values that one `in` may have.
IN_MOST = 30
PAGE = 100
# Where hardly a node fits any more, edges are still read a few at a time.
PAGE_LEAST = 10
EDGES_PER_NODE = 5
OTHER = {"from": "to", "to": "from"}

type Documents = dict[str, dict[str, Any]]
type Snapshot = firestore.DocumentSnapshot[firestore.DocumentReference]


class Walk:
    """One walk: the `nodes` and `edges` it found, by id, and the tasks it left `unread`."""

    def __init__(self, client: firestore.Client, graph: firestore.DocumentReference, asked: Traversal) -> None:
        self._client = client
        self._graph = graph
        self._asked = asked
        self._levels: defaultdict[int, list[Task]] = defaultdict(list)
        # Steps left at each node come upon, whether it is there or not.
        self._steps: dict[str, int] = {}
        for task in asked.tasks:
            self._levels[task.depth].append(task)
            self._steps[task.node] = max(task.depth, self._steps.get(task.node, 0))
        self._nodes_most = len(self._steps) + asked.limit
        self._edges_left = EDGES_PER_NODE * asked.limit
        self._full = False
        self.nodes: Documents = {}
        self.edges: Documents = {}
        self.unread: list[Task] = []

    def run(self) -> None:
        """Walk, the tasks with most steps left first, so that a node is come upon with as many as it can have."""
        self._look_up(list(self._steps))
        for depth in range(MOST_DEPTH, 0, -1):
            for group in _groups(task for task in self._levels[depth] if task.node in self.nodes):
                self._follow(group)

    def found_edges(self) -> list[dict[str, Any]]:
        """The edges between nodes that were found; the other end of the others was deleted while we walked."""
        return [each for each in self.edges.values() if {each["from"], each["to"]} <= self.nodes.keys()]

    def _follow(self, group: Sequence[Task]) -> None:
        """Read the edges of some nodes, at one end, behind one edge."""
        after = group[0].after
        while limit := self._room():
            page = self._page(group, after, limit)
            taken = self._take(page, group[0])
            if taken:
                after = page[taken - 1].id
            if taken < len(page):
                self._full = True
            elif len(page) < limit:
                return
        self.unread += [replace(task, after=after) for task in group]

    def _room(self) -> int:
        """How many edges may be read at once; each may lead to a node, which is a read too."""
        reads = current().reads.remaining
        nodes = self._nodes_most - len(self._steps)
        room = min(PAGE, self._edges_left, max(nodes, PAGE_LEAST), PAGE if reads is None else reads // 2)
        return 0 if self._full else room

    def _page(self, group: Sequence[Task], after: str, limit: int) -> list[Snapshot]:
        nodes = [task.node for task in group]
        edges = self._graph.collection(Kind.EDGE.value).where(filter=firestore.FieldFilter(group[0].end, "in", nodes))
        if self._asked.label is not None:
            edges = edges.where(filter=firestore.FieldFilter("label", "==", self._asked.label))
        edges = edges.order_by("__name__").limit(limit)
        if after:
            edges = edges.start_after({"__name__": after})
        page = list(edges.get(timeout=READ_S))
        self._edges_left -= len(page)
        return page

    def _take(self, page: list[Snapshot], task: Task) -> int:
        """Take the edges whose nodes fit, in their order; returns how many."""
        before = len(self._steps)
        taken = 0
        for snapshot in page:
            found = shown(edge(snapshot.id), snapshot.to_dict() or {})
            far = found.get(OTHER[task.end])
            if is_identifier(far):
                if far not in self._steps and len(self._steps) >= self._nodes_most:
                    break
                self._schedule(far, task.depth - 1)
                self.edges[snapshot.id] = found
            taken += 1
        self._look_up(list(self._steps)[before:])
        return taken

    def _schedule(self, node_id: str, depth: int) -> None:
        if depth > self._steps.get(node_id, 0):
            self._levels[depth] += [Task(node=node_id, end=end, depth=depth) for end in self._asked.ends]
        self._steps[node_id] = max(depth, self._steps.get(node_id, 0))

    def _look_up(self, ids: list[str]) -> None:
        if not ids:
            return
        wanted = [document(self._graph, node(id_)) for id_ in ids]
        for snapshot in commit.get_all(self._client, wanted, timeout_s=READ_S):
            if snapshot.exists:
                self.nodes[snapshot.id] = shown(node(snapshot.id), snapshot.to_dict() or {})


def _groups(tasks: Iterable[Task]) -> Iterator[Sequence[Task]]:
    """Tasks that one query can do."""
    alike: defaultdict[tuple[str, str], list[Task]] = defaultdict(list)
    for task in tasks:
        alike[task.end, task.after].append(task)
    for group in alike.values():
        yield from batched(group, IN_MOST, strict=False)


def run(data: object, *, user_key: str, client: firestore.Client) -> dict[str, Any]:
    """Walk from `data.start`; the request's meters must be open.

    The result has `nodes`, `edges`, and `truncated`; if that is true `next` lists where edges were left unread, as
    items for the `start` of further calls. It is no snapshot: what is changed meanwhile may be seen by halves.

    Raises:
        InvalidField: a field is not valid; the message names it.
        StoreUnavailable: no answer.
        MeterExceeded: not even the nodes to start from can be read.
    """
    walk = Walk(client, graph_of(user_key, client), parse(data))
    try:
        walk.run()
    except (*STORE_ERRORS, Unreadable) as error:
        raise unavailable(error, step="traverse", text=UNREACHABLE) from error
    result = {"nodes": list(walk.nodes.values()), "edges": walk.found_edges(), "truncated": bool(walk.unread)}
    return result | ({"next": [task.shown() for task in walk.unread]} if walk.unread else {})
