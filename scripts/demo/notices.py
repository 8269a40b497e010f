"""The budget's notices: published, on their way through Pub/Sub, taken by the function."""

from scripts.demo.billing import Billing
from scripts.demo.deliveries import Deliveries
from scripts.demo.evidence import Stage


class Notices:
    """All since this was made."""

    def __init__(self, billing: Billing, deliveries: Deliveries) -> None:
        self._billing, self._deliveries = billing, deliveries
        self._published = 0

    def spend(self, usd: int) -> None:
        """So much in this month; it is told once."""
        self._published += self._billing.spend(usd)

    def repeat(self, times: int, *, history: bool = False) -> None:
        """What was told last, or with `history` all of this month, so many times more, shuffled."""
        self._published += self._billing.notify(times, history=history)

    def on_their_way(self) -> int:
        return self._published - len(self._deliveries.taken_usd())

    def since(self, *stages: Stage) -> Stage:
        """Those of no stage so far."""
        published = sum(stage.published for stage in stages)
        taken = sum(len(stage.taken_usd) for stage in stages)
        return Stage(published=self._published - published, taken_usd=self._deliveries.taken_usd()[taken:])
