"""Shares of the pool: what each may draw, and that together they are the pool."""

from hypothesis import given
from hypothesis import strategies as st

from firebreak.bucket.arithmetic import Level
from firebreak.limits.credit import Holding, holding
from firebreak.limits.pool import COMMON, SHARDS, Share, divide
from firebreak.store.times import HOUR_US

PERCENTS = st.dictionaries(st.text(min_size=1, max_size=3), st.integers(0, 100), max_size=4).filter(
    lambda percents: sum(percents.values()) <= 100 and COMMON not in percents
)


def at(share: Share, *tokens: int) -> dict[int, Holding]:
    """The shards as if their first level held so many tokens, and the others nothing."""
    held = {}
    for number, count in enumerate(tokens):
        own, *others = share.limits[number]
        levels = {own: Level(tokens=count, updated_us=0)} | {name: Level(tokens=0, updated_us=0) for name in others}
        held[number] = holding(levels, share.limits[number], at_us=0)
    return held


@given(st.integers(0, 10**10), PERCENTS)
def test_all_shares_and_what_is_common_are_never_more_than_the_pool(per_hour: int, percents: dict[str, int]) -> None:
    shares = divide(per_hour, percents)

    common = shares[COMMON].most
    reserved = {name: shares[name].most - common for name in percents}
    assert sum(reserved.values()) + common == per_hour
    assert all(own <= per_hour * percents[name] // 100 for name, own in reserved.items())


def test_a_share_draws_its_own_first_then_what_is_common() -> None:
    shares = divide(1_600, {"anonymous": 10, "default": 50})

    assert list(shares["anonymous"].limits[0].items()) == [("anonymous", 10), ("common", 40)]
    assert list(shares[COMMON].limits[0].items()) == [("common", 40)]


def test_a_share_of_nothing_where_nothing_is_common_is_never_enough() -> None:
    assert divide(1_600, {"default": 100})[COMMON].most == 0


@given(st.sets(st.text(min_size=1, max_size=4), max_size=10))
def test_names_of_tiers_never_share_a_level_nor_break_a_path(names: set[str]) -> None:
    shares = divide(160_000, dict.fromkeys(names - {COMMON}, 1))

    own = [next(iter(share.limits[0])) for share in shares.values()]
    assert len(set(own)) == len(own)
    assert not any("." in name or "/" in name or (name.startswith("__") and name.endswith("__")) for name in own)


def test_a_lease_is_at_least_what_a_shard_gains_in_a_second() -> None:
    share = divide(SHARDS * 3_600 * 100, {"default": 50})["default"]

    assert share.least(1) == 100
    assert share.plan(at(share, 99), 50) == {}
    assert share.plan(at(share, 100), 50) == {0: 50}


def test_what_no_shard_holds_alone_comes_from_a_few() -> None:
    share = divide(SHARDS * 3_600, {"default": 50})["default"]

    assert share.plan(at(share, 300, 299, 900), 1_200) == {2: 900, 0: 300}
    assert share.plan(at(share, 299, 299, 299, 299, 299), 1_200) == {}


def test_what_is_more_than_a_few_shards_can_hold_comes_from_all() -> None:
    share = divide(SHARDS * 1_000, {"default": 50})["default"]

    full = at(share, *[500] * SHARDS)
    assert sum(share.plan(full, 500 * SHARDS).values()) == 500 * SHARDS


@given(st.lists(st.integers(0, 700), min_size=SHARDS, max_size=SHARDS), st.integers(1, SHARDS * 1_000))
def test_after_retry_after_the_pool_covers_it_and_not_a_second_before(tokens: list[int], need: int) -> None:
    share = divide(SHARDS * 1_000, {"default": 70})["default"]
    held = at(share, *tokens)

    ready_s = share.ready_s(held, need)

    assert share.plan(then(share, held, ready_s), need)
    assert ready_s == 1 or not share.plan(then(share, held, ready_s - 1), need)


def then(share: Share, held: dict[int, Holding], seconds: int) -> dict[int, Holding]:
    at_us = seconds * HOUR_US // 3_600
    return {number: holding(h.levels, share.limits[number], at_us=at_us) for number, h in held.items()}
