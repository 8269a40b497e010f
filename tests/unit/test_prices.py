"""What a call is charged: the whole of it, thoughts and tools included, weighed; in doubt the estimate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firebreak.gemini.prices import FLAT, ONE, Price, Tally, Usage, Weights, bound, cost
from firebreak.knobs import prices

COUNTS = st.none() | st.integers(0, 10**6)
USAGES = st.builds(Usage, prompt=COUNTS, output=COUNTS, thought=COUNTS, cached=COUNTS, tool=COUNTS, total=COUNTS)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (Usage(), None),
        (Usage(prompt=10, output=5, total=15), 15),
        (Usage(prompt=10, output=5, thought=30, total=45), 45),
        (Usage(prompt=10, output=5, thought=30), 45),
        (Usage(prompt=10, output=5, tool=7), 22),
        (Usage(prompt=10, output=5, cached=8), 15),
        (Usage(prompt=10, output=5, thought=30, total=15), 45),
        (Usage(prompt=10, output=5, total=50), 50),
        (Usage(total=9), 9),
        (Usage(prompt=0, output=0, total=0), None),
        (Usage(prompt=-1, output=5, total=15), None),
        (Usage(prompt=10, output=5, total=-15), None),
        (Usage(prompt=10, output=True), None),
        (Usage(prompt=10, output=10**12), None),
    ],
)
def test_the_larger_of_total_and_parts_is_charged_and_what_cannot_be_is_not_believed(
    usage: Usage, tokens: int | None
) -> None:
    assert cost(usage, FLAT) == tokens


DEAR = Price(
    short=Weights(prompt=2 * ONE, output=5 * ONE, thought=6 * ONE, cached=250, tool=3 * ONE),
    long_from=1_000,
    long=Weights(prompt=4 * ONE, output=10 * ONE, thought=6 * ONE, cached=250, tool=3 * ONE),
)


@pytest.mark.parametrize(
    ("usage", "charge"),
    [
        (Usage(prompt=10), 20),
        (Usage(prompt=10, cached=10), 3),
        (Usage(prompt=10, cached=4), 13),
        (Usage(prompt=10, cached=99), 3),
        (Usage(prompt=1, output=2, thought=3, tool=4), 2 + 10 + 18 + 12),
        (Usage(prompt=1_000), 2_000),
        (Usage(prompt=1_001), 4_004),
        (Usage(prompt=1_001, output=1), 4_014),
        (Usage(prompt=10, output=1, total=12), 20 + 5 + 6),
        (Usage(total=10), 60),
        (Usage(total=1_001), 10_010),
    ],
)
def test_each_kind_of_token_has_its_weight(usage: Usage, charge: int) -> None:
    assert cost(usage, DEAR) == charge


def test_what_was_not_said_is_answered_as_zero() -> None:
    assert Usage(prompt=3, total=3).as_json() == {
        "promptTokens": 3,
        "outputTokens": 0,
        "thoughtTokens": 0,
        "cachedTokens": 0,
        "toolTokens": 0,
        "totalTokens": 3,
    }


def test_a_finished_answer_costs_its_last_usage() -> None:
    tally = Tally(estimate=100).see(Usage(total=70), finished=False).see(Usage(total=20), finished=True)

    assert tally.charge == 20


def test_usage_that_comes_after_the_finish_counts() -> None:
    assert Tally(estimate=100).see(None, finished=True).see(Usage(total=20), finished=False).charge == 20


def test_usage_of_an_early_chunk_is_not_that_of_the_answer() -> None:
    tally = Tally(estimate=100).see(Usage(total=6), finished=False).see(None, finished=True)

    assert tally.charge == 100


def test_a_finished_answer_without_usage_costs_the_estimate() -> None:
    assert Tally(estimate=100).see(None, finished=True).charge == 100


def test_an_unfinished_answer_costs_the_estimate_and_never_less_than_the_most_seen() -> None:
    tally = Tally(estimate=100).see(Usage(total=20), finished=False)
    assert tally.charge == 100

    tally = tally.see(Usage(total=170), finished=False).see(Usage(total=30), finished=False)
    assert tally.charge == 170


def test_usage_that_cannot_be_leaves_the_estimate() -> None:
    assert Tally(estimate=100).see(Usage(prompt=-5, total=1), finished=True).charge == 100


@given(USAGES)
def test_no_usage_within_the_bounds_costs_more_than_the_bound(usage: Usage) -> None:
    for price in (FLAT, DEAR):
        prompt = (usage.prompt or 0) + (usage.tool or 0)
        output = (usage.output or 0) + (usage.thought or 0)
        if usage.adds_up and usage.parts:
            assert (cost(usage, price) or 0) <= bound(prompt, output, price)


def test_prices_are_read_from_their_knob() -> None:
    read = prices("gemini-a prompt=1 output=5 cached=0.25 | 200000 prompt=2; gemini-b output=7.5")

    assert read["gemini-a"] == Price(
        short=Weights(output=5_000, cached=250),
        long_from=200_000,
        long=Weights(prompt=2_000, output=5_000, cached=250),
    )
    assert read["gemini-b"] == Price(short=Weights(output=7_500), long=Weights(output=7_500))
    assert prices("") == {}


@pytest.mark.parametrize(
    "text", ["prompt=1", "gemini-a prompt", "gemini-a prompt=x", "gemini-a speed=1", "gemini-a | x prompt=1",
             "gemini-a prompt=1.0001", "gemini-a prompt=-1", "gemini-a; gemini-a", "Gemini A prompt=1"],
)  # fmt: skip
def test_prices_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must "):
        prices(text)
