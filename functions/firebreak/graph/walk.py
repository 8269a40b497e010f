"""A walk along the edges of one graph, breadth first, that stops at its bounds and knows what it has left unread."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import batched
from typing import Any

from google.cloud import firestore

from firebreak.graph.documents import Kind, document, edge, node, shown
from firebreak.graph.fields import is_identifier
from firebreak.graph.traversal import MOST_DEPTH, Task, Traversal
from firebreak.metering.meter import current

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
        for snapshot in self._client.get_all(wanted, retry=None, timeout=READ_S):
            if snapshot.exists:
                self.nodes[snapshot.id] = shown(node(snapshot.id), snapshot.to_dict() or {})


def _groups(tasks: Iterable[Task]) -> Iterator[Sequence[Task]]:
    """Tasks that one query can do."""
    alike: defaultdict[tuple[str, str], list[Task]] = defaultdict(list)
    for task in tasks:
        alike[task.end, task.after].append(task)
    for group in alike.values():
        yield from batched(group, IN_MOST, strict=False)
