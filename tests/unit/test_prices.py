"""What a call is charged: the whole of it, thoughts and tools included, weighed; in doubt the estimate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firebreak.gemini.prices import Tally, Usage, bound, cost
from firebreak.settings.knobs import prices
from firebreak.settings.weights import FLAT, ONE, Price, Weights

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


def seen(*told: tuple[Usage | None, bool], ended: bool = True, estimate: int = 100, price: Price = FLAT) -> Tally:
    """The tally of these chunks, each with its usage and whether it said that it was the end."""
    tally = Tally(estimate=estimate, price=price)
    for usage, finished in told:
        tally = tally.see(usage, finished=finished)
    return tally.end() if ended else tally


LOW, HIGH, HUGE = Usage(total=20), Usage(total=70), Usage(total=170)
CHARGED: dict[str, tuple[Tally, int]] = {
    "nothing yet": (Tally(estimate=100), 100),
    "one whole answer": (seen((LOW, True)), 20),
    "the last usage, not the most": (seen((HUGE, False), (LOW, True)), 20),
    "usage after the finish": (seen((None, True), (LOW, False)), 20),
    "usage of a chunk after the finish replaces its own": (seen((HIGH, True), (LOW, False)), 20),
    "a last chunk without usage after one with it": (seen((LOW, True), (None, False)), 20),
    "usage of an early chunk only": (seen((LOW, False), (None, True)), 100),
    "usage of an early chunk only, above the estimate": (seen((HUGE, False), (None, True)), 170),
    "a second finish without usage": (seen((LOW, True), (None, True)), 20),
    "no usage": (seen((None, True)), 100),
    "no finish": (seen((LOW, False)), 100),
    "no finish, and more than the estimate": (seen((HUGE, False), (LOW, False)), 170),
    "finished, but cut off": (seen((LOW, True), ended=False), 100),
    "finished, but cut off after more than the estimate": (seen((HUGE, False), (LOW, True), ended=False), 170),
    "above the estimate": (seen((HUGE, True)), 170),
    "usage that cannot be": (seen((Usage(prompt=-5, total=1), True)), 100),
    "usage that cannot be after one that can": (seen((HUGE, False), (Usage(total=-1), True)), 170),
    "weighed": (seen((LOW, True), price=Price(short=Weights(output=3 * ONE))), 60),
    "weighed, and cut off": (seen((HIGH, True), price=Price(short=Weights(output=3 * ONE)), ended=False), 210),
}


@pytest.mark.parametrize("name", CHARGED)
def test_only_the_last_usage_of_an_answer_that_ended_is_its_charge(name: str) -> None:
    tally, charge = CHARGED[name]

    assert tally.charge == charge


@pytest.mark.parametrize(
    ("usage", "believed"),
    [
        (Usage(prompt=0), True),
        (Usage(prompt=2**21), True),
        (Usage(prompt=2**21 + 1), False),
        (Usage(total=2**21 + 1), False),
        (Usage(prompt=2**20, output=2**20), True),
        (Usage(prompt=2**20, output=2**20 + 1), False),
        (Usage(thought=-1), False),
    ],
)
def test_no_more_is_believed_than_fits_a_context_window(usage: Usage, believed: bool) -> None:
    assert usage.believable is believed


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
