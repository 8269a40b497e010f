"""Telling people what was applied: by the webhook, after the commit, until it takes it or an hour has passed."""

from dataclasses import dataclass, field

from google.cloud import firestore
from urllib3 import PoolManager

from firebreak.bucket.arithmetic import HOUR_US
from firebreak.bucket.tries import Clock
from firebreak.budgets import alert, document
from firebreak.budgets.policies import Threshold
from firebreak.budgets.standing import Standing, Told
from firebreak.budgets.webhook import NotDelivered, send
from firebreak.events import Event, Severity, emit
from firebreak.pubsub import Again

# How long new deliveries, and new notices, try a webhook that fails.
LATEST_US = HOUR_US


class NotTold(Again):
    """Nobody took the news: a new delivery brings them again, and does nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """Tells the webhook, at least once, and marks what was told."""

    client: firestore.Client
    url: str = field(repr=False)
    http: PoolManager = field(repr=False)
    clock: Clock

    def tell(self, standing: Standing, now_us: int) -> None:
        """Tell what was not told yet, by this delivery or by an earlier one that failed.

        Raises:
            NotTold: the webhook did not take it; what was told before is marked.
            StoreUnavailable: it took it, and that may not be marked; it may get the same again.
        """
        for threshold, done in standing.in_order():
            if done.told is not Told.DUE:
                continue
            if now_us - done.at_us > LATEST_US:
                emit(
                    Event.BUDGET,
                    severity=Severity.ERROR,
                    outcome="not-told",
                    budget=standing.budget,
                    threshold=str(threshold),
                )
                self._mark(standing, threshold, Told.GIVEN_UP)
            else:
                self._send(standing, threshold)
                self._mark(standing, threshold, Told.TOLD)

    def _send(self, standing: Standing, threshold: Threshold) -> None:
        try:
            send(self.url, alert.body(standing, threshold), http=self.http)
        except NotDelivered as error:
            emit(
                Event.BUDGET,
                severity=Severity.WARNING,
                outcome="webhook-failed",
                budget=standing.budget,
                threshold=str(threshold),
                why=str(error),
            )
            raise NotTold from error

    def _mark(self, standing: Standing, threshold: Threshold, told: Told) -> None:
        def mark(timeout_s: float) -> None:
            seen = document.read(self.client, standing.budget, standing.period, timeout_s=timeout_s)
            done = seen.standing.applied.get(threshold) if seen.standing else None
            if seen.standing is None or done is None or done.told is not Told.DUE:
                return
            batch = self.client.batch()
            document.write(self.client, batch, seen.standing.told(threshold, told), seen=seen)
            batch.commit(retry=None, timeout=timeout_s)

        document.insist(mark, clock=self.clock, doing="tell")
