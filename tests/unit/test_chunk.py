"""How much is leased at a time, as facts and as properties."""

from hypothesis import given
from hypothesis import strategies as st

from firebreak.bucket.arithmetic import Level
from firebreak.limits.credit import LeaseRequest, amount, drawn, holding, later, next_size, spread
from firebreak.store.times import HOUR_US

TOKENS = st.integers(0, 10**10)
COUNTS = st.integers(1, 10**6)


def level(tokens: int, updated_us: int = 0) -> Level:
    return Level(tokens=tokens, updated_us=updated_us)


def following(size: int, elapsed_s: float) -> int:
    return next_size(size, elapsed_s=elapsed_s, goal_s=10.0, lives_s=300.0, most=32)


def test_a_lease_that_did_not_last_doubles_up_to_the_most() -> None:
    assert [following(size, 10.0) for size in (0, 1, 8, 16, 31, 32)] == [0, 2, 16, 32, 32, 32]


def test_a_lease_that_lasted_stays_and_one_that_has_lapsed_halves() -> None:
    assert following(8, 10.1) == 8
    assert [following(size, 300.1) for size in (8, 3, 1, 0)] == [4, 1, 1, 1]


def test_a_lease_shrinks_as_the_limit_nears() -> None:
    want = LeaseRequest(need=1, size=32)

    assert [amount(tokens, want) for tokens in (600, 256, 100, 16, 15, 1, 0)] == [32, 32, 12, 2, 1, 1, 0]


def test_what_does_not_cover_the_need_or_the_least_is_not_leased() -> None:
    assert amount(99, LeaseRequest(need=100, size=1)) == 0
    assert amount(99, LeaseRequest(need=1, size=1, least=100)) == 0
    assert amount(100, LeaseRequest(need=1, size=1, least=100)) == 100


@given(TOKENS, COUNTS, st.integers(0, 10**6), COUNTS)
def test_a_lease_covers_the_need_and_never_takes_more_than_there_is(
    tokens: int, need: int, size: int, least: int
) -> None:
    leased = amount(tokens, LeaseRequest(need=need, size=size, least=least))

    assert leased == 0 or max(need, least) <= leased <= tokens
    assert (leased == 0) == (tokens < max(need, least))
    assert leased <= max(need, least, tokens // 8)


def test_the_first_that_covers_it_alone_is_taken() -> None:
    assert spread({"a": 5, "b": 9, "c": 100}, need=9, least=1) == {"b": 9}


def test_what_none_covers_alone_comes_from_the_fullest() -> None:
    assert spread({"a": 5, "b": 9, "c": 7}, need=12, least=1) == {"b": 9, "c": 3}


def test_what_all_do_not_cover_comes_from_none() -> None:
    assert spread({"a": 5, "b": 9}, need=15, least=1) == {}


def test_one_that_holds_less_than_the_least_is_left_alone() -> None:
    assert spread({"a": 5, "b": 9}, need=12, least=6) == {}
    assert spread({"a": 5, "b": 9, "c": 6}, need=12, least=6) == {"b": 9, "c": 3}


@given(st.dictionaries(st.integers(), TOKENS, max_size=16), COUNTS, COUNTS)
def test_parts_come_to_the_need_and_none_is_more_than_there_is(held: dict[int, int], need: int, least: int) -> None:
    parts = spread(held, need=need, least=least)

    assert sum(parts.values()) in {0, need}
    assert all(least <= held[key] >= part > 0 for key, part in parts.items())
    assert bool(parts) == (sum(tokens for tokens in held.values() if tokens >= least) >= need)


def test_a_level_that_is_not_there_yet_is_full() -> None:
    held = holding({"read": level(0)}, {"read": 60, "write": 30}, at_us=HOUR_US // 2)

    assert held.levels == {"read": level(30, HOUR_US // 2), "write": level(30, HOUR_US // 2)}
    assert held.tokens == 60


def test_a_level_that_no_limit_names_is_not_there() -> None:
    assert holding({"read": level(50), "gone": level(50)}, {"read": 60}, at_us=0).tokens == 50


def test_a_debt_of_one_level_is_not_paid_by_another() -> None:
    held = holding({"own": level(-50), "common": level(20)}, {"own": 60, "common": 60}, at_us=0)

    assert held.tokens == 20
    assert drawn(held.levels, 20) == {"common": level(0)}


def test_a_level_is_refilled_later() -> None:
    held = holding({"read": level(0)}, {"read": 60}, at_us=0)

    assert later(held, {"read": 60}, by_us=HOUR_US // 60).tokens == 1


@given(st.dictionaries(st.sampled_from("abc"), TOKENS, min_size=1), st.data())
def test_what_is_drawn_is_gone_from_the_first_levels(tokens: dict[str, int], data: st.DataObject) -> None:
    levels = {name: level(count) for name, count in tokens.items()}
    take = data.draw(st.integers(0, sum(tokens.values())))
    changed = drawn(levels, take)
    after = levels | changed

    assert sum(tokens.values()) - sum(left.tokens for left in after.values()) == take
    assert all(left.tokens >= 0 for left in after.values())
    emptied = [after[name].tokens == 0 or name not in changed for name in tokens]
    names = list(tokens)
    untouched = next((number for number, name in enumerate(names) if after[name].tokens), len(names))
    assert all(emptied[:untouched])
    assert not changed.keys() & set(names[untouched + 1 :])
