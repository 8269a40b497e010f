"""Contender `transactional`: the published pattern, a read-modify-write of the same documents in a transaction."""

from functools import partial
from typing import Any, ClassVar

from google.api_core.exceptions import GoogleAPICallError
from google.cloud import firestore

from scripts.bench import published
from scripts.bench.contender import InProcess, Job
from scripts.bench.firebreak_ledger import ACTUAL, COUNTERS
from scripts.bench.shape import COST

# What the decorator raises when it has no attempts left; a lock that timed out comes as Aborted.
NO_ANSWER = (ValueError, GoogleAPICallError)


class Transactional(InProcess):
    name: ClassVar[str] = "transactional"

    def __init__(self, client: firestore.Client) -> None:
        super().__init__()
        self._client = client
        self._open: list[published.Open] = []

    def reserve(self, user: str, limit: int) -> Job:
        def call() -> bool | None:
            new = published.new(self._client, user)
            # Made anew each time: a decorated function that threads share mixes their transactions.
            take = firestore.transactional(_take)
            try:
                admitted: bool = take(self._client.transaction(), new, limit * COST)
            except NO_ANSWER:
                return None
            if admitted:
                self._open.append(new)
            return admitted

        return call

    def settles(self) -> list[Job]:
        opened = list(self._open)
        self._open.clear()
        return [partial(self._settle, call) for call in opened]

    def _settle(self, call: published.Open) -> bool | None:
        try:
            firestore.transactional(_give_back)(self._client.transaction(), call)
        except NO_ANSWER:
            return None
        return True


def _take(transaction: firestore.Transaction, new: published.Open, limit: int) -> bool:
    found: dict[str, Any] | None = new.bucket.get(transaction=transaction).to_dict()
    now = published.utcnow()
    tokens = limit if found is None else published.refilled(found["tokens"], found["updatedAt"], now, limit)
    if tokens < COST:
        return False
    version = 1 if found is None else found["version"] + 1
    transaction.create(new.call, published.held(now))
    transaction.set(new.bucket, (found or {}) | published.bucket(tokens - COST, version, now))
    return True


def _give_back(transaction: firestore.Transaction, call: published.Open) -> None:
    held: dict[str, Any] = call.call.get(transaction=transaction).to_dict() or {}
    found: dict[str, Any] = call.bucket.get(transaction=transaction).to_dict() or {}
    if held["status"] != "held":
        return
    lifetime = found.get("lifetime", {})
    added = {name: lifetime.get(name, 0) + by for name, by in COUNTERS.items()}
    tokens = found["tokens"] + held["estimated"] - ACTUAL
    transaction.update(call.call, published.settled())
    transaction.update(call.bucket, {"tokens": tokens, "version": found["version"] + 1, "lifetime": added})
