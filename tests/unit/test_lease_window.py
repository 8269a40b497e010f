"""What leases can admit in any window, whatever instances lease, use and lose: as `limits/requests.py` bounds it."""

from hypothesis import given
from hypothesis import strategies as st

from firebreak.bucket.arithmetic import Level
from firebreak.limits.credit import LEASE_S, Grant, LeasedTokens, LeaseRequest, amount, drawn, holding
from firebreak.limits.requests import MOST
from firebreak.store.times import HOUR_US, SECOND_US

INSTANCES = 3


class Played:
    """One user's level in the store, and instances that lease from it, on one clock."""

    def __init__(self, limit: int) -> None:
        self.now_s = 0
        self.admitted: list[int] = []
        self._limits = {"read": limit}
        self._levels: dict[str, Level] = {}
        self._credits = [LeasedTokens(lambda: float(self.now_s)) for _ in range(INSTANCES)]

    def request(self, instance: int, *, lost: bool) -> None:
        """As `Rate.take`; when the reply of the commit is lost, what was leased is gone."""
        credit = self._credits[instance]
        if credit.take(1) or self._lease(credit, lost=lost):
            self.admitted.append(self.now_s)

    def _lease(self, credit: LeasedTokens, *, lost: bool) -> bool:
        held = holding(self._levels, self._limits, at_us=self.now_s * SECOND_US)
        want = LeaseRequest(need=1, size=credit.next_size(goal_s=LEASE_S, most=MOST))
        tokens = amount(held.tokens, want)
        self._levels |= drawn(held.levels, tokens)
        return bool(tokens and not lost and credit.leased(Grant(tokens=tokens, lapses_s=self.now_s + LEASE_S), use=1))


STEPS = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 3), st.integers(0, 2 * 3_600)),  # seconds until then
        st.integers(0, INSTANCES - 1),
        st.integers(1, 100),  # requests at once
        st.booleans(),
    ),
    max_size=40,
)


@given(st.integers(1, 300), STEPS)
def test_admitted_in_any_window_is_at_most_limit_and_its_refill_and_that_of_a_lease(
    limit: int, steps: list[tuple[int, int, int, bool]]
) -> None:
    played = Played(limit)
    for wait_s, instance, requests, lost in steps:
        played.now_s += wait_s
        for _ in range(requests):
            played.request(instance, lost=lost)

    times = played.admitted
    for first, since_s in enumerate(times):
        for last in range(first, len(times)):
            if last + 1 < len(times) and times[last + 1] == times[last]:
                continue
            window_s = times[last] - since_s + LEASE_S
            assert (last + 1 - first) * HOUR_US <= limit * (HOUR_US + window_s * SECOND_US)


def test_what_was_leased_an_hour_ago_is_not_admitted_on_top_of_a_full_level() -> None:
    played = Played(300)
    for instance in range(INSTANCES):
        # One more than two leases: most of the third is left.
        for _ in range(4):
            played.request(instance, lost=False)
    played.now_s += 3_600
    before = len(played.admitted)
    for number in range(300 * INSTANCES):
        played.request(number % INSTANCES, lost=False)

    assert len(played.admitted) - before == 300
