"""The Gemini stand-in's tool calls: signed as Gemini 3 signs them, and refused where a signature does not come back."""

from typing import Any

import pytest

from scripts.local.standins import gemini_reply, gemini_request, gemini_signature
from scripts.local.standins.google import GoogleError

MODEL = "gemini-3.8-flash"
ASK = {"role": "user", "parts": [{"text": "hi"}]}
SOUGHT = {"functionCall": {"id": "call-1", "name": "f", "args": {"b": 1, "a": [None]}}}
TIMED = {"functionCall": {"id": "call-2", "name": "now"}}
RESPONDED = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}
CALLS = [{"name": "f", "args": {"b": 1, "a": [None]}}, {"name": "now"}]


def signed(part: dict[str, Any]) -> dict[str, Any]:
    return part | {"thoughtSignature": gemini_signature.sign(part)}


def model(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def parts(reply: dict[str, Any], *, stream: bool) -> list[list[dict[str, Any]]]:
    chunks = gemini_reply.chunks({"contents": [ASK]}, reply, common={}, stream=stream)
    return [chunk["candidates"][0]["content"]["parts"] for chunk in chunks]


def test_the_first_call_of_a_turn_is_signed_and_no_other() -> None:
    reply = {"text": "Let me see.", "calls": CALLS}

    assert parts(reply, stream=False) == [[{"text": "Let me see."}, signed(SOUGHT), TIMED]]
    *texts, first, second = parts(reply, stream=True)
    assert "".join(part["text"] for (part,) in texts) == "Let me see."
    assert (first, second) == ([signed(SOUGHT)], [TIMED])


def test_calls_need_no_text() -> None:
    assert parts({"calls": CALLS}, stream=False) == [[signed(SOUGHT), TIMED]]
    assert parts({"calls": CALLS}, stream=True) == [[signed(SOUGHT)], [TIMED]]


def test_a_text_is_signed_in_an_empty_part() -> None:
    reply = {"text": "Nine metres.", "signText": True}

    assert parts(reply, stream=False) == [[{"text": "Nine metres."}, signed({"text": ""})]]
    assert parts(reply, stream=True)[-1] == [signed({"text": ""})]


URL_SAFE = str.maketrans("+/", "-_")


@pytest.mark.parametrize(
    "contents",
    [
        [ASK, model(signed(SOUGHT), TIMED), RESPONDED],
        [ASK, model({"text": "x"}, signed(SOUGHT)), RESPONDED, model(signed(TIMED)), RESPONDED],
        [ASK, model(SOUGHT), RESPONDED, ASK],
        [ASK, model(SOUGHT), RESPONDED, model({"text": "x"}), ASK, model(signed(TIMED)), RESPONDED],
        [ASK, model(SOUGHT | {"thoughtSignature": gemini_signature.SKIPPED}), RESPONDED],
        [ASK, model(SOUGHT | {"thoughtSignature": signed(SOUGHT)["thoughtSignature"].translate(URL_SAFE)}), RESPONDED],
        [ASK, model({"text": "unsigned"}), ASK],
    ],
)
def test_a_turn_that_came_back_as_it_was_is_taken(contents: list[dict[str, Any]]) -> None:
    gemini_signature.verify(contents, MODEL)


@pytest.mark.parametrize(
    ("contents", "position"),
    [
        ([ASK, model(SOUGHT), RESPONDED], 2),
        ([ASK, model(signed(SOUGHT)), RESPONDED, model(TIMED), RESPONDED], 4),
        ([ASK, model(SOUGHT, signed(TIMED)), RESPONDED], 2),
        ([ASK, model(SOUGHT), RESPONDED, ASK, model(SOUGHT), RESPONDED], 5),
    ],
)
def test_a_missing_signature_is_named_with_its_place(contents: list[dict[str, Any]], position: int) -> None:
    with pytest.raises(GoogleError, match=r"^Function call is missing a thought_signature") as refusal:
        gemini_signature.verify(contents, MODEL)

    assert refusal.value.code == 400
    assert f", position {position}. Please refer" in str(refusal.value)
    gemini_signature.verify(contents, "gemini-2.5-flash")


@pytest.mark.parametrize("other", [gemini_signature.sign(TIMED), "QUJD", "not base64!"])
def test_a_changed_signature_is_refused(other: str) -> None:
    with pytest.raises(GoogleError, match=r"Corrupted thought signature|Base64 decoding failed"):
        gemini_signature.verify([ASK, model(SOUGHT | {"thoughtSignature": other}), RESPONDED], MODEL)


def test_changed_args_no_longer_fit_their_signature() -> None:
    changed = {**signed(SOUGHT), "functionCall": {"name": "f", "args": {"b": 2}}}

    with pytest.raises(GoogleError, match=r"Corrupted"):
        gemini_signature.verify([ASK, model(changed), RESPONDED], MODEL)


BOTH = {"role": "user", "parts": [{"text": "and"}, *RESPONDED["parts"], *RESPONDED["parts"]]}


def test_each_call_has_its_response() -> None:
    contents = [ASK, model(SOUGHT, TIMED), BOTH, model(TIMED), RESPONDED]

    assert gemini_request.parse_generate({"contents": contents})["contents"] == contents


@pytest.mark.parametrize(
    "contents",
    [
        [ASK, model(SOUGHT, TIMED), RESPONDED],
        [ASK, model(SOUGHT), BOTH],
        [ASK, model(SOUGHT), ASK, RESPONDED],
        [ASK, model(SOUGHT), ASK],
        [ASK, model(SOUGHT)],
        [RESPONDED],
    ],
    ids=["one of two", "two of one", "later", "none", "at the end", "no call"],
)
def test_calls_and_responses_that_do_not_match_are_refused(contents: list[dict[str, Any]]) -> None:
    with pytest.raises(GoogleError, match=r"^Please ensure that .*function call") as refusal:
        gemini_request.parse_generate({"contents": contents})

    assert refusal.value.code == 400


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"tools": []}, "tools"),
        ({"systemInstruction": ASK}, "systemInstruction"),
        ({"generationConfig": {"responseJsonSchema": {}}}, "responseJsonSchema"),
    ],
)
def test_a_version_can_be_played_that_does_not_know_a_field(body: dict[str, Any], name: str) -> None:
    gemini_request.refuse({"contents": [ASK], **body}, ["other"])

    with pytest.raises(GoogleError, match=rf'Invalid JSON payload received. Unknown name "{name}"'):
        gemini_request.refuse({"contents": [ASK], **body}, ["other", name])
