"""What a scenario asks of every contender, as data; and how much of it one run does."""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from itertools import count

# What one call reserves. Limits are given in calls, so that a limiter of calls and one of tokens mean the same.
COST = 100
PLENTY = 10_000
CALLERS = 16


class Scenario(StrEnum):
    """Names in results.json."""

    HOT = "hot"
    COLD = "cold"
    REFUSED = "refused"
    SETTLE = "settle"
    CONTENDED = "contended"
    MANY_USERS = "many_users"
    GUARD = "guard"
    FIRST_CHUNK = "first_chunk"
    FROM_REQUEST = "from_request"
    METERED_GET = "metered_get"
    METERED_SET = "metered_set"
    METERED_BATCH = "metered_batch"
    METERED_QUERY = "metered_query"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Calls to make: `users` holds the user of each; caller n of `threads` makes the n-th of every `threads` calls.

    Each user may make `limit` calls. `known`: each has made one before. `settles`: the settling is measured, of calls
    reserved before.
    """

    scenario: Scenario
    users: tuple[str, ...]
    threads: int = 1
    limit: int = PLENTY
    known: bool = False
    settles: bool = False

    @property
    def should_admit(self) -> int:
        """How many of the calls an exact limiter admits."""
        left = self.limit - self.known
        return sum(min(calls, left) for calls in Counter(self.users).values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """How much one run does: `calls` a round, but `refused` where a refusal needs no round trip.

    `callers_do`: calls of each contended caller; `edge`: streams; `metered`: of each operation.
    """

    rounds: int
    calls: int
    refused: int
    callers_do: int
    contended_rounds: int
    many_users: int
    many_rounds: int
    edge: int
    metered: int
    cached_users: int = 100_000


FULL = Amount(
    rounds=24,
    calls=30,
    refused=20_000,
    callers_do=10,
    contended_rounds=3,
    many_users=10_000,
    many_rounds=4,
    edge=60,
    metered=600,
)
QUICK = Amount(
    rounds=4,
    calls=20,
    refused=20_000,
    callers_do=2,
    contended_rounds=1,
    many_users=1_000,
    many_rounds=1,
    edge=15,
    metered=100,
)
# Enough to count round trips by; they do not vary, but under contention.
COUNTED = Amount(
    rounds=1, calls=20, refused=20, callers_do=2, contended_rounds=1, many_users=200, many_rounds=1, edge=0, metered=0
)

_blocks = count()


def rounds(scenario: Scenario, amount: Amount) -> int:
    """How many rounds of this scenario a run has."""
    by_name = {Scenario.CONTENDED: amount.contended_rounds, Scenario.MANY_USERS: amount.many_rounds}
    return by_name.get(scenario, amount.rounds)


def shape(scenario: Scenario, amount: Amount, *, refuses_in_process: bool = False) -> Shape:
    """One block of one contender, with users that no other block has."""
    name = f"{scenario}-{next(_blocks)}"
    one = (name,)
    match scenario:
        case Scenario.HOT:
            return Shape(scenario=scenario, users=one * amount.calls, known=True)
        case Scenario.COLD:
            return Shape(scenario=scenario, users=_several(name, amount.calls))
        case Scenario.REFUSED:
            calls = amount.refused if refuses_in_process else amount.calls
            return Shape(scenario=scenario, users=one * calls, limit=1, known=True)
        case Scenario.SETTLE:
            return Shape(scenario=scenario, users=one * amount.calls, settles=True)
        case Scenario.CONTENDED:
            # A quarter of the calls must be refused: who admits more is no limiter, who admits fewer no good one.
            calls = CALLERS * amount.callers_do
            return Shape(scenario=scenario, users=one * calls, threads=CALLERS, limit=calls * 3 // 4)
        case Scenario.MANY_USERS:
            users = _several(name, amount.many_users // amount.many_rounds)
            return Shape(scenario=scenario, users=users * 2, threads=CALLERS)
        case _:
            raise ValueError(f"{scenario} asks nothing of a bucket")


def _several(name: str, users: int) -> tuple[str, ...]:
    return tuple(f"{name}-{number}" for number in range(users))
