"""The flakiness that was seen of spend caps in preview: off, until it is asked for."""

from collections import Counter

KINDS = (
    "getNotFound patchNotFound listOmitsCaps deleteDoesNotStick createDropped patchDropped deleteDropped "
    "createUnavailable patchUnavailable deleteUnavailable"
).split()


class Flaky:
    """How many more answers go wrong, by kind."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.left: Counter[str] = Counter()

    def takes(self, kind: str) -> bool:
        """Whether this answer is to go wrong; counts it."""
        if not self.left[kind]:
            return False
        self.left[kind] -= 1
        return True
