"""What the demo says about money, computed from usage and the constants it names."""

from scripts.demo.money import CALL_S, CAP_LAG_S, compare, cost_nanousd, dollars, worst_case_microusd

USAGE = {
    "promptTokens": 200,
    "outputTokens": 1_000,
    "thoughtTokens": 200,
    "toolTokens": 0,
    "totalTokens": 1_400,
}


def test_thoughts_cost_as_much_as_output() -> None:
    assert cost_nanousd(USAGE) == 200 * 1_500 + 1_200 * 7_500


def test_a_loop_behind_a_cap_alone_goes_on_for_the_whole_lag() -> None:
    comparison = compare([USAGE] * 70, workers=8)

    assert comparison.calls_until_cap == 8 * CAP_LAG_S // CALL_S
    assert comparison.cap_alone_microusd == comparison.calls_until_cap * 9_300
    assert comparison.bucket_microusd == 70 * 9_300


def test_a_loop_without_answers_costs_nothing() -> None:
    assert compare([], workers=8).cap_alone_microusd == 0


def test_the_worst_case_prices_every_token_as_output() -> None:
    assert dollars(worst_case_microusd(users=2, limit=100_000)) == "$1.50"


def test_no_cost_is_shown_as_nothing() -> None:
    assert dollars(1) == "$0.01"
    assert dollars(1_234_560_000) == "$1,234.56"
