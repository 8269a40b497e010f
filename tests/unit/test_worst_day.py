"""What a day can cost: the pool in dollars, each token as expensive as it can be, and no price that is made up."""

import pytest

from firebreak.settings.settings import load
from firebreak.settings.weights import Price, Weights
from scripts import prices
from scripts.demo import money
from scripts.prices import ListPrice
from scripts.worst_day import lines, nanousd_per_million, of_settings, tokens

CHEAP = ListPrice(input_nanousd=100, output_nanousd=400, read="2026-11", source="a list")
EXPENSIVE = ListPrice(input_nanousd=1_500, output_nanousd=7_500, read="2026-11", source="a list")
LISTED = {"cheap": CHEAP, "expensive": EXPENSIVE}


def test_a_day_is_a_full_level_a_day_of_refill_and_what_was_just_leased() -> None:
    assert tokens(12) == 12 + 24 * 12 + 1
    assert tokens(2_000_000) == 50_166_667


@pytest.mark.parametrize(
    ("price", "most"),
    [
        (Price(), 7_500_000_000),
        (Price(short=Weights(output=5_000, thought=5_000)), 1_500_000_000),
        (Price(short=Weights(prompt=200)), 7_500_000_000),
        (Price(short=Weights(prompt=100)), 15_000_000_000),
        (Price(short=Weights(cached=100)), 15_000_000_000),
        (Price(short=Weights(tool=100)), 15_000_000_000),
        (Price(short=Weights(thought=500)), 15_000_000_000),
        (Price(long_from=10, long=Weights(output=500)), 15_000_000_000),
        (Price(long=Weights(output=500)), 7_500_000_000),
        (Price(short=Weights(output=7_000, thought=7_000, prompt=7_000, cached=7_000, tool=7_000)), 1_071_428_572),
        (Price(short=Weights(cached=0)), None),
    ],
)
def test_a_token_of_the_pool_is_as_expensive_as_the_costliest_kind(price: Price, most: int | None) -> None:
    assert nanousd_per_million(EXPENSIVE, price) == most


def test_the_most_expensive_model_that_is_allowed_counts() -> None:
    told = lines(2_000_000, ("cheap", "expensive"), {}, LISTED)

    assert told[0].startswith("all users together can spend at most $376.26 in 24 hours on expensive: ")
    assert "50,166,667 tokens" in told[0]
    assert told[1].startswith("assumed: $1.50 in and $7.50 out per million tokens (a list; read 2026-11)")
    assert len(told) == 2


def test_the_cost_is_rounded_up_to_the_cent() -> None:
    assert " $0.01 in 24 hours" in lines(1, ("cheap",), {}, LISTED)[0]


def test_a_model_without_a_price_is_named_and_none_is_made_up() -> None:
    told = lines(2_000_000, ("cheap", "unknown"), {}, LISTED)

    assert " on cheap: " in told[0]
    assert told[-1].startswith("scripts/prices.toml has no price for unknown")
    assert lines(2_000_000, ("unknown",), {}, LISTED) == told[-1:]


def test_a_kind_that_counts_as_nothing_is_named() -> None:
    (told,) = lines(1_000, ("cheap",), {"cheap": Price(short=Weights(prompt=0))}, LISTED)

    assert told.startswith("WEIGHTS counts some tokens of cheap as nothing")


def test_without_a_pool_nothing_bounds_it() -> None:
    assert lines(0, ("cheap",), {}, LISTED) == [
        "POOL_TOKENS_PER_HOUR=0: there is no limit to what all users together can spend in a day"
    ]


def test_the_defaults_have_a_price_with_a_date() -> None:
    told = of_settings(load({"GCLOUD_PROJECT": "my-app", "MAX_DAILY_TOKENS": "1"}))

    assert told[0].startswith("all users together can spend at most $")
    assert all(price.read and price.source for price in prices.models().values())
    assert money.OUTPUT_NANOUSD_PER_TOKEN == prices.models()[money.PRICED_MODEL].output_nanousd == 7_500
