"""A hundred instances on one pool, simulated: how often each shard's document is changed, read, and tried in vain."""

from functools import cache

import pytest

from firebreak.limits.pool import divide
from tests.unit.traffic import Instance, World, busiest, caller

INSTANCES = 100
SHARES = {"anonymous": 10, "default": 50}
RUN_S = 30.0
# By then a hundred cold instances have found how much to lease at a time, or that there is nothing.
SETTLED_S = 15.0


@cache
def played(per_hour: int, *, full: bool, default: int, anonymous: int) -> World:
    """A hundred instances that start at once, with so many threads for each share, all of which want more."""
    world = World(tokens_per_hour=per_hour, shares=SHARES, seed=1, full=full)
    for _ in range(INSTANCES):
        for share, threads in {"default": default, "anonymous": anonymous}.items():
            instance = Instance(world, share)
            for _ in range(threads):
                world.start(caller(instance, estimates=(600, 3_000), spent=0.3, lasts_s=8.0, retry_s=4.0))
    world.run(RUN_S)
    return world


def most_changes(world: World, *, since_s: float = 0.0) -> float:
    return max(busiest(document.commits, since_s=since_s) for document in world.documents)


@pytest.mark.parametrize(("per_hour", "changes"), [(20_000_000, 0.6), (200_000_000, 1.2)])
def test_where_there_is_enough_a_document_changes_about_once_a_second(per_hour: int, changes: float) -> None:
    world = played(per_hour, full=True, default=8, anonymous=0)

    assert world.admitted > 2_000
    assert world.refused == 0
    assert most_changes(world, since_s=SETTLED_S) <= changes
    assert max(busiest(document.reads, since_s=SETTLED_S) for document in world.documents) <= 3.0


@pytest.mark.parametrize(("default", "anonymous"), [(4, 0), (2, 2)], ids=["one-share", "two-shares"])
def test_where_there_is_nothing_left_a_document_changes_about_once_a_second(default: int, anonymous: int) -> None:
    world = played(20_000_000, full=False, default=default, anonymous=anonymous)

    assert world.refused > 1_000
    assert most_changes(world) <= 1.2
    assert max(busiest(document.vain) for document in world.documents) <= 3.0
    assert max(busiest(document.reads, since_s=SETTLED_S) for document in world.documents) <= 50.0


def test_a_hundred_cold_instances_that_drain_a_full_pool_are_over_it_in_seconds() -> None:
    world = played(2_000_000, full=True, default=8, anonymous=0)

    assert world.refused > 1_000
    assert most_changes(world) <= 5.0
    assert most_changes(world, since_s=SETTLED_S) <= 1.2


@pytest.mark.parametrize(("per_hour", "full", "default"), [(20_000_000, False, 4), (2_000_000, True, 8)])
def test_each_change_takes_at_least_what_a_shard_gains_in_a_second(per_hour: int, full: bool, default: int) -> None:
    """So that in W seconds there are at most W, and those that the stock is for, whatever the callers do."""
    world = played(per_hour, full=full, default=default, anonymous=0)

    second = divide(per_hour, SHARES)["default"].second
    stock = per_hour // len(world.documents) if full else 0
    assert all(len(document.commits) <= stock // second + RUN_S + 1 for document in world.documents)
