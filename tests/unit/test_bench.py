"""The bench's pure parts: shapes, figures, targets and the page."""

from dataclasses import replace

import pytest

from scripts.bench.contender import drive
from scripts.bench.figures import Block, Count, Figures, Results, Tally, percentiles, results
from scripts.bench.report import number, page
from scripts.bench.shape import CALLERS, COUNTED, FULL, QUICK, Amount, Scenario, Shape, rounds, shape
from scripts.bench.targets import Target, targets

BUCKET = ("hot", "cold", "refused", "settle", "contended", "many_users")


def figures(**given: float) -> Figures:
    names = "p50_ms p95_ms p99_ms per_second rpcs reads writes admitted should_admit undecided".split()
    return {name: given.get(name, 0) for name in names}


def run(hot: float = 1.0) -> Results:
    """A run that meets all targets, if `hot` is near 1.0."""
    return {
        "hot": {
            "firebreak": figures(p50_ms=hot),
            "floor": figures(p50_ms=1.0),
            "rate_limiter": figures(p50_ms=hot * 4),
        },
        "refused": {"firebreak": figures(per_second=150_000)},
        "contended": {
            "firebreak": figures(per_second=50, admitted=120, should_admit=120),
            "transactional": figures(per_second=1.5),
        },
    }


@pytest.mark.parametrize("scenario", BUCKET)
@pytest.mark.parametrize("amount", [FULL, QUICK, COUNTED])
def test_no_two_blocks_share_a_user(scenario: str, amount: Amount) -> None:
    first, second = (shape(Scenario(scenario), amount) for _ in range(2))

    assert not {*first.users} & {*second.users}
    assert rounds(Scenario(scenario), amount) >= 1


def test_a_full_run_asks_what_the_page_says() -> None:
    contended, many = shape(Scenario.CONTENDED, FULL), shape(Scenario.MANY_USERS, FULL)

    assert (len(contended.users), contended.threads, contended.should_admit) == (160, CALLERS, 120)
    assert len({*many.users}) * rounds(Scenario.MANY_USERS, FULL) == 10_000
    assert len(many.users) == 2 * len({*many.users})


def test_a_known_user_has_made_one_of_the_calls_it_may_make() -> None:
    asked = Shape(scenario=Scenario.HOT, users=("a", "a", "b"), limit=2, known=True)

    assert asked.should_admit == 2
    assert replace(asked, known=False).should_admit == 3
    assert shape(Scenario.REFUSED, FULL).should_admit == 0


def test_an_edge_scenario_has_no_shape() -> None:
    with pytest.raises(ValueError, match="asks nothing"):
        shape(Scenario.GUARD, FULL)


def test_percentiles_are_of_all_calls() -> None:
    assert percentiles([float(n) for n in range(101)]) == {"p50_ms": 50.0, "p95_ms": 95.0, "p99_ms": 99.0}


def test_figures_sum_the_rounds_and_average_what_was_counted() -> None:
    tally = Tally()
    tally.add(Block(latencies_ms=[1.0, 3.0], seconds=0.5, admitted=2), should_admit=2)
    tally.add(Block(latencies_ms=[2.0, 2.0], seconds=0.5, admitted=1, undecided=1), should_admit=2)
    tally.counted = Count(calls=4, rpcs=6, reads=2, writes=8)

    found = results({("hot", "firebreak"): tally, ("hot", "absent"): Tally()})

    assert list(found["hot"]) == ["firebreak"]
    expected = {"p50_ms": 2.0, "per_second": 4.0, "rpcs": 1.5, "reads": 0.5, "writes": 2.0}
    expected |= {"admitted": 3, "should_admit": 4, "undecided": 1, "calls": 4}
    assert expected.items() <= found["hot"]["firebreak"].items()


def test_what_was_not_counted_is_none() -> None:
    tally = Tally(blocks=[Block(latencies_ms=[1.0, 1.0], seconds=1.0, admitted=2)])

    assert tally.figures()["rpcs"] is None


def test_every_caller_makes_its_share_and_no_answer_is_told_apart_from_a_refusal() -> None:
    block = drive([lambda: True, lambda: False, lambda: None, lambda: True, lambda: True], threads=2)

    assert (block.admitted, block.undecided, len(block.latencies_ms)) == (3, 1, 5)


def test_an_error_of_a_call_ends_the_run() -> None:
    def broken() -> bool:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        drive([broken], threads=1)


def test_targets_are_those_the_run_can_tell() -> None:
    reached = targets(run(), cache_bytes=500)

    assert [target.text.split(":")[0] for target in reached] == [
        "hot",
        "refused",
        "refused",
        "contended",
        "contended",
        "a check",
        "what an instance remembers of a user, bytes",
    ]
    assert all(target.met for target in reached)


def test_a_ratio_above_its_bound_misses_its_target() -> None:
    assert [target.text.split(":")[0] for target in targets(run(hot=1.2)) if not target.met] == ["hot"]


def test_admitting_one_too_many_misses_the_target() -> None:
    over = run()
    over["contended"]["firebreak"]["admitted"] = 121

    assert [target.value for target in targets(over) if not target.met] == [1]


def test_the_first_chunk_is_held_against_the_model_s_own() -> None:
    both = {"firebreak": figures(p50_ms=13.0), "floor": figures(p50_ms=2.0)}

    (target,) = targets({"first_chunk": both})

    assert (target.value, target.met) == (11.0, False)


def test_the_page_tells_a_missed_target() -> None:
    text = page(run(), [Target(text="hot", value=1.2, bound=1.15)], cores=2)

    assert "| hot | 1.2 | ≤ 1.15 | **no** |" in text
    assert "| hot | firebreak | 1 |" in text
    assert "120 of 120" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0"), (0.01234, "0.0123"), (1.149, "1.15"), (99.96, "100"), (123456.7, "123,457")],
)
def test_numbers_have_three_digits(value: float | None, text: str) -> None:
    assert number(value) == text
