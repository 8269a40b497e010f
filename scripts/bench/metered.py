"""What the meters add: the same operations on the SDK's own client and on the metered one, in turns."""

import random
import time
import uuid
from collections.abc import Callable, Mapping

from google.cloud import firestore

from firebreak.metering.meter import metered
from scripts.bench.figures import Block, Tally
from scripts.bench.shape import Scenario
from scripts.local.client import client_at, metered_at

DOCUMENTS = 10
WARM_UP = 20

type Operation = Callable[[firestore.Client, str], object]


def _get(client: firestore.Client, path: str) -> object:
    return client.document(f"{path}/0").get(retry=None)


def _set(client: firestore.Client, path: str) -> object:
    return client.document(f"{path}/0").set({"n": 1, "text": "some"}, retry=None)


def _batch(client: firestore.Client, path: str) -> object:
    batch = client.batch()
    for number in range(DOCUMENTS):
        batch.set(client.document(f"{path}/{number}"), {"n": number})
    return batch.commit(retry=None)


def _query(client: firestore.Client, path: str) -> object:
    return list(client.collection(path).limit(DOCUMENTS).stream(retry=None))


OPERATIONS: Mapping[Scenario, Operation] = {
    Scenario.METERED_GET: _get,
    Scenario.METERED_SET: _set,
    Scenario.METERED_BATCH: _batch,
    Scenario.METERED_QUERY: _query,
}


def metered_beside_raw(host: str, calls: int, tallies: dict[tuple[str, str], Tally]) -> None:
    """Time each operation on both clients, one call after the other, in an order left to chance."""
    clients = {"firebreak": metered_at(host), "raw": client_at(host, because="what the meters are compared with")}
    for scenario, operation in OPERATIONS.items():
        path = f"bench-{uuid.uuid4().hex[:8]}"
        all_ms: dict[str, list[float]] = {name: [] for name in clients}
        _timed(_batch, clients["firebreak"], path)
        for number in range(calls + WARM_UP):
            for name in random.sample(sorted(clients), len(clients)):
                taken_ms = _timed(operation, clients[name], path)
                if number >= WARM_UP:
                    all_ms[name].append(taken_ms)
        for name, latencies_ms in all_ms.items():
            block = Block(latencies_ms=latencies_ms, seconds=sum(latencies_ms) / 1000, admitted=calls)
            tallies.setdefault((scenario, name), Tally()).add(block, should_admit=calls)


def _timed(operation: Operation, client: firestore.Client, path: str) -> float:
    with metered(reads=DOCUMENTS, writes=DOCUMENTS):
        began = time.perf_counter()
        operation(client, path)
        return (time.perf_counter() - began) * 1000
