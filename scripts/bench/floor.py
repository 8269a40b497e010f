"""Contender `floor`: a bare commit of the same two writes. It decides nothing, and nothing can cost less."""

from functools import partial
from typing import ClassVar

from google.cloud import firestore

from scripts.bench import published
from scripts.bench.contender import InProcess, Job
from scripts.bench.shape import COST, Scenario


class Floor(InProcess):
    name: ClassVar[str] = "floor"
    lacks: ClassVar[frozenset[Scenario]] = frozenset({Scenario.REFUSED})

    def __init__(self, client: firestore.Client) -> None:
        super().__init__()
        self._client = client
        self._open: list[published.Open] = []

    def reserve(self, user: str, limit: int) -> Job:
        def call() -> bool:
            new, now = published.new(self._client, user), published.utcnow()
            batch = self._client.batch()
            batch.set(new.call, published.held(now))
            batch.set(new.bucket, published.bucket(limit * COST, 1, now))
            batch.commit(retry=None)
            self._open.append(new)
            return True

        return call

    def settles(self) -> list[Job]:
        opened = list(self._open)
        self._open.clear()
        return [partial(self._settle, call) for call in opened]

    def _settle(self, call: published.Open) -> bool:
        batch = self._client.batch()
        batch.set(call.call, published.settled(), merge=True)
        batch.set(call.bucket, published.refund(), merge=True)
        batch.commit(retry=None)
        return True
