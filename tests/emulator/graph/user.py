"""One user's graph, called as the backend calls it, and looked at past the code under test."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from google.cloud import firestore

from firebreak.metering.client import Metered
from firebreak.metering.meter import metered
from firebreak.store.tries import Clock
from graph import mutate, traverse

BUDGET = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a call gave, and what it cost."""

    result: dict[str, Any]
    reads: int
    writes: int

    @property
    def cost(self) -> tuple[int, int]:
        return self.reads, self.writes

    @property
    def complete(self) -> bool:
        return bool(self.result["complete"])

    def nodes(self) -> set[str]:
        return {node["id"] for node in self.result["nodes"]}

    def edges(self) -> set[str]:
        return {edge["id"] for edge in self.result["edges"]}


@dataclass(slots=True, kw_only=True)
class User:
    """A user; `client` is the code's, `direct` the test's own."""

    key: str
    client: Metered
    direct: firestore.Client
    clock: Clock = field(default_factory=Clock)

    def mutate(self, *operations: dict[str, Any], reads: int = BUDGET, writes: int = BUDGET, **options: Any) -> Answer:
        with metered(reads=reads, writes=writes) as meters:
            data = {"operations": list(operations)}
            result = mutate.run(data, user_key=self.key, client=self.client, clock=self.clock, **options)
            return Answer(result=result, reads=meters.reads.used, writes=meters.writes.used)

    def traverse(self, *, reads: int = BUDGET, **data: Any) -> Answer:
        with metered(reads=reads, writes=0) as meters:
            result = traverse.run(data, user_key=self.key, client=self.client)
            return Answer(result=result, reads=meters.reads.used, writes=meters.writes.used)

    @property
    def graph(self) -> firestore.DocumentReference:
        return self.direct.collection("graphs").document(self.key)

    def nodes(self) -> dict[str, dict[str, Any]]:
        return {each.id: each.to_dict() or {} for each in self.graph.collection("nodes").stream()}

    def edges(self) -> dict[str, dict[str, Any]]:
        return {each.id: each.to_dict() or {} for each in self.graph.collection("edges").stream()}

    def fill(self, edges: dict[str, tuple[str, str]], *lone: str) -> None:
        """Make a graph of these edges and their ends, and of lone nodes, past the code under test."""
        ends = {end for pair in edges.values() for end in pair} | set(lone)
        writes: list[tuple[firestore.DocumentReference, dict[str, Any]]]
        writes = [(self.graph.collection("nodes").document(end), {"label": "", "properties": {}}) for end in ends]
        for id_, (start, end) in edges.items():
            writes.append((self.graph.collection("edges").document(id_), {"from": start, "to": end, "label": ""}))
        writes.append((self.graph, {"version": 1, "writer": "", "size": len(writes)}))
        for first in range(0, len(writes), 400):
            batch = self.direct.batch()
            for place, data in writes[first : first + 400]:
                batch.set(place, data)
            batch.commit()

    def check(self) -> None:
        """What must be true of any graph, whatever befell it: each edge has both ends, and the size is right."""
        edges, nodes = self.edges(), self.nodes()
        dangling = Counter(end for edge in edges.values() for end in (edge["from"], edge["to"]) if end not in nodes)
        assert not dangling
        stored = self.graph.get().to_dict() or {}
        assert stored.get("size", 0) == len(edges) + len(nodes)


def node(id_: str, **fields: Any) -> dict[str, Any]:
    return {"op": "create_node", "id": id_, **fields}


def edge(id_: str, start: str, end: str, **fields: Any) -> dict[str, Any]:
    return {"op": "create_edge", "id": id_, "from": start, "to": end, **fields}


def delete_node(id_: str) -> dict[str, Any]:
    return {"op": "delete_node", "id": id_}


def hub(edges: int, *, name: str = "hub") -> dict[str, tuple[str, str]]:
    """Edges out of one node to another, with ids in order."""
    return {f"{name}-{number:05}": (name, "rim") for number in range(edges)}
