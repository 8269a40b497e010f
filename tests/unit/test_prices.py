"""What a call is charged: the whole of it, thoughts and tools included."""

import pytest

from firebreak.gemini.prices import Usage, billed


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
    ],
)
def test_the_larger_of_total_and_parts_is_charged(usage: Usage, tokens: int | None) -> None:
    assert billed(usage) == tokens


def test_what_was_not_said_is_answered_as_zero() -> None:
    assert Usage(prompt=3, total=3).as_json() == {
        "promptTokens": 3,
        "outputTokens": 0,
        "thoughtTokens": 0,
        "cachedTokens": 0,
        "toolTokens": 0,
        "totalTokens": 3,
    }
