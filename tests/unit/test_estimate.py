"""What a request can cost at most: every term of the sum, to the token."""

from dataclasses import replace

import pytest

from firebreak.gemini import estimate
from firebreak.gemini.contents import Called, Inline, Part, Text, Turn
from firebreak.gemini.request import Request
from firebreak.settings.weights import FLAT, ONE, Price, Weights

HI = Turn(role="user", parts=(Text(text="hi"),))
ASKED = Request(model="m", turns=(HI,), system=None, max_output_tokens=100, temperature=None)
# Twice for the prompt, five times for the answer.
WEIGHED = Price(short=Weights(prompt=2 * ONE, output=5 * ONE, thought=5 * ONE, cached=ONE, tool=2 * ONE))


@pytest.mark.parametrize(
    ("request_", "overhead", "prompt"),
    [
        (ASKED, 24, 26),
        (replace(ASKED, turns=(HI, HI, HI)), 40, 46),
        (replace(ASKED, system="né"), 32, 37),
        (replace(ASKED, system=""), 32, 34),
        (replace(ASKED, schema={"a": 1}), 24, 26 + len('{"a": 1}')),
        (replace(ASKED, tools=({"f": []}, {"f": []})), 24, 26 + 2 * len('{"f": []}')),
        (replace(ASKED, tool_config={"x": "é"}), 24, 26 + len('{"x": "é"}') + 1),
        (replace(ASKED, schema={"a": 1}, tools=({"f": []},)), 24, 26 + len('{"a": 1}') + len('{"f": []}')),
    ],
)
def test_a_prompt_is_bounded_by_its_bytes_and_what_the_service_adds(
    request_: Request, overhead: int, prompt: int
) -> None:
    assert estimate.overhead(request_) == overhead
    assert estimate.prompt_bound(request_) == prompt
    assert estimate.most(request_, FLAT) == prompt + 100
    assert estimate.most(request_, WEIGHED) == 2 * prompt + 5 * 100


@pytest.mark.parametrize(
    ("part", "bytes_"),
    [
        (Text(text="né"), 3),
        (Text(text="", signature="QUJD"), 4),
        (Text(text="hi", thought=True, signature="QUJD"), 6),
        (Called(kind="functionCall", value={"name": "é"}), len('{"name": "é"}') + 1),
        (Called(kind="functionCall", value={"name": "f"}, signature="QUJD"), len('{"name": "f"}') + 4),
        (Inline(mime_type="image/png", data=b"12345"), 0),
        (Inline(mime_type="image/png", data=b"12345", signature="QUJD"), 4),
    ],
)
def test_a_part_counts_its_text_and_its_signature(part: Part, bytes_: int) -> None:
    request = replace(ASKED, turns=(Turn(role="model", parts=(part,)), HI))

    assert estimate.prompt_bound(request) == bytes_ + 2 + 32
    assert request.has_media == isinstance(part, Inline)


def test_a_count_of_the_model_may_leave_signatures_out() -> None:
    said = (Text(text="", signature="QUJD"), Called(kind="functionCall", value={"name": "f"}, signature="QUI="))
    request = replace(ASKED, turns=(HI, Turn(role="model", parts=said), HI))

    assert estimate.most(request, FLAT, counted=7) == 7 + 8 + estimate.overhead(request) + 100


def test_a_count_of_the_model_leaves_out_what_it_does_not_see() -> None:
    """Tools, schema and what the service adds."""
    declared = replace(ASKED, schema={"a": 1}, tools=({"f": []},), tool_config={"x": 1})
    left_out = sum(len(each) for each in ('{"a": 1}', '{"f": []}', '{"x": 1}')) + 24

    assert estimate.most(declared, FLAT, counted=7) == 7 + left_out + 100
    assert estimate.most(declared, WEIGHED, counted=7) == 2 * (7 + left_out) + 5 * 100
    assert estimate.most(ASKED, FLAT, counted=0) == 24 + 100


@pytest.mark.parametrize(("candidates", "output"), [(1, 100), (3, 300)])
def test_the_answer_is_bounded_for_each_candidate(candidates: int, output: int) -> None:
    request = replace(ASKED, candidates=candidates)

    assert estimate.output_bound(request) == output
    assert estimate.most_of_the_answer(request, FLAT) == 1 + 24 + output
    assert estimate.most_of_the_answer(request, WEIGHED) == 2 * 25 + 5 * output


@pytest.mark.parametrize(
    ("texts", "tokens"),
    [
        ([], 0),
        ([""], 0),
        (["a"], 1),
        (["ab", "a"], 3),
        (["é"], 2),
        (["語"], 3),
        (["😀"], 4),
        (["\ufdfa"], 33),
        (["\ufdfa" * 2, "\ufdfa"], 99),
        (["ﬃ"], 3),
        (["\u2126"], 3),
    ],
)
def test_a_token_is_a_byte_of_the_longer_form(texts: list[str], tokens: int) -> None:
    assert estimate.tokens_bound(texts) == tokens
