"""Contender `firebreak`: the ledger as it is deployed."""

import uuid
from functools import partial
from typing import ClassVar

from google.cloud import firestore

from firebreak.bucket.ledger import Ledger
from firebreak.bucket.reserve import Ask, Hold
from firebreak.errors import BucketEmpty, Contention, StoreUnavailable
from scripts.bench.contender import InProcess, Job
from scripts.bench.shape import COST

ACTUAL = 60
COUNTERS = {"calls": 1, "inputTokens": 20, "outputTokens": 40}


class Firebreak(InProcess):
    name: ClassVar[str] = "firebreak"
    refuses_in_process: ClassVar[bool] = True

    def __init__(self, client: firestore.Client) -> None:
        super().__init__()
        self._ledger = Ledger(client)
        self._holds: list[Hold] = []

    def reserve(self, user: str, limit: int) -> Job:
        ask = Ask(estimate=COST, limit=limit * COST, model="bench")
        request_id = uuid.uuid4().hex
        ledger, holds = self._ledger, self._holds

        def call() -> bool | None:
            try:
                holds.append(ledger.reserve(user, request_id, ask))
            except BucketEmpty:
                return False
            except (Contention, StoreUnavailable):
                return None
            return True

        return call

    def settles(self) -> list[Job]:
        holds = list(self._holds)
        self._holds.clear()
        return [partial(self._settle, hold) for hold in holds]

    def _settle(self, hold: Hold) -> bool | None:
        return True if self._ledger.settle(hold, actual=ACTUAL, counters=COUNTERS).booked else None
