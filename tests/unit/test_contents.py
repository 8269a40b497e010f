"""A conversation: what of a model's turn may come back, how large its parts may be, and what is refused by name."""

from typing import Any

import pytest

from firebreak.errors import InvalidField
from firebreak.gemini import contents
from firebreak.gemini.contents import Called, Inline, Media, Part, Text, Turn, as_text, turns

MEDIA = Media(types=("image/png",), most_bytes=4)
ASK = {"role": "user", "parts": [{"text": "hi"}]}
CALL = {"name": "f", "id": "1", "args": {"a": 1}}
RESPONSE = {"name": "f", "id": "1", "response": {}}


def checked(*sent: Any, most: int = 9) -> tuple[Turn, ...]:
    return turns(list(sent), most=most, media=MEDIA)


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def user(*parts: Any) -> dict[str, Any]:
    return {"parts": list(parts)}


@pytest.mark.parametrize(
    ("part", "plain"),
    [
        ({"text": "x"}, Text(text="x")),
        ({"text": ""}, Text(text="")),
        ({"text": "\n"}, Text(text="\n")),
        ({"text": "x", "thought": True}, Text(text="x", thought=True)),
        ({"text": "x", "thought": False}, Text(text="x")),
        ({"text": "", "thoughtSignature": "QUJD"}, Text(text="", signature="QUJD")),
        ({"text": "x", "thoughtSignature": None}, Text(text="x")),
        ({"functionCall": CALL}, Called(kind="functionCall", value=CALL)),
        ({"functionCall": {"name": "f"}}, Called(kind="functionCall", value={"name": "f"})),
        (
            {"functionCall": CALL, "thoughtSignature": "_-8="},
            Called(kind="functionCall", value=CALL, signature="_-8="),
        ),
        (
            {"inlineData": {"mimeType": "image/png", "data": "aGk="}, "thoughtSignature": "QUJD", "thought": True},
            Inline(mime_type="image/png", data=b"hi", thought=True, signature="QUJD"),
        ),
    ],
)
def test_a_part_of_the_models_turn_comes_back(part: Any, plain: Part) -> None:
    assert checked(ASK, model(part), ASK)[1] == Turn(role="model", parts=(plain,))


def test_parts_keep_their_order() -> None:
    parts = [{"text": "a"}, {"functionCall": CALL}, {"text": "b"}, {"functionCall": {"name": "g"}}]

    turn = checked(ASK, model(*parts), user({"functionResponse": RESPONSE}))[1]

    assert [as_text(part)[:1] for part in turn.parts] == ["a", "{", "b", "{"]


def test_a_conversation_may_end_with_responses() -> None:
    last = checked(ASK, model({"functionCall": CALL}), user({"functionResponse": RESPONSE}))[-1]

    assert last == Turn(role="user", parts=(Called(kind="functionResponse", value=RESPONSE),))


@pytest.mark.parametrize("signature", ["A" * 4, "AAA=", "AA==", "AAA", "AA", "+/+/", "-_-_", "A" * 65_536])
def test_a_signature_is_base64_of_either_kind(signature: str) -> None:
    (part,) = checked(ASK, model({"text": "", "thoughtSignature": signature}), ASK)[1].parts

    assert part.signature == signature
    assert as_text(part) == signature


NOT_BASE64 = (
    "",
    "=",
    "A",
    "AAAAA",
    "A=",
    "A===",
    "AA=",
    "AAAA=",
    "AA=A",
    "+_AA",
    "AAA\n",
    "AA A",
    "é===",
    "AAA!",
    "\ud800AAA",
)
NOT_TEXT: tuple[object, ...] = (5, True, [], {})


@pytest.mark.parametrize("signature", [*NOT_BASE64, *NOT_TEXT, "A" * 65_540])
def test_any_other_signature_is_refused(signature: object) -> None:
    told = "base64, as it came" if signature in NOT_BASE64 else "base64 of at most 65536 bytes"

    with pytest.raises(InvalidField, match=rf"^contents\[1\]\.parts\[0\]\.thoughtSignature must be {told}"):
        checked(ASK, model({"text": "", "thoughtSignature": signature}), ASK)


def texts_of(text: str, count: int) -> list[dict[str, str]]:
    return [{"text": text}] * count


def test_a_conversation_has_a_thousand_parts_at_most() -> None:
    most = contents.MAX_PARTS
    checked(ASK, model(*texts_of("x", most - 2)), ASK)

    with pytest.raises(InvalidField, match=r"^contents must hold at most 1000 parts; join neighbouring texts$"):
        checked(ASK, model(*texts_of("x", most - 1)), ASK)


def test_the_longest_conversation_and_the_largest_media_are_taken() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}

    assert len(checked(*[ASK] * 9)) == 9
    assert checked(user(image, image))


IMAGE = {"mimeType": "image/png", "data": "aGk="}


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ([ASK] * 10, "contents must hold at most 9 turns"),
        ([ASK, model({"text": "x"})], "contents must end with a turn of the user: its text, or the functionResponse"),
        (
            [user({"inlineData": IMAGE}, {"inlineData": IMAGE}, {"inlineData": IMAGE})],
            "contents must hold at most 4 bytes",
        ),
        (
            [ASK, model({"inlineData": IMAGE}, {"inlineData": IMAGE}), user({"inlineData": IMAGE})],
            "contents must hold at",
        ),
        ([{"role": "user"}], "contents[0].parts must be a list"),
        ([{"role": "user", "parts": {}}], "contents[0].parts must be a list"),
        ([ASK | {"name": "x"}], "contents[0] must be an object with role and parts"),
        ([7], "contents[0] must be an object with role and parts"),
        ([{"role": "function", "parts": [{"text": "x"}]}], "contents[0].role must be one of: user, model"),
        ([user({})], "contents[0].parts[0] must be an object with one of text, inlineData, functionCall, functionRe"),
        ([user("x")], "contents[0].parts[0] must be an object with one of text"),
        ([user({"text": "x", "inlineData": IMAGE})], "contents[0].parts[0] must be an object with one of text"),
        ([model({"thoughtSignature": "QUJD"})], "contents[0].parts[0] must be an object with one of text"),
        (
            [user({"fileData": {"fileUri": "gs://x"}})],
            "contents[0].parts[0] must not be fileData: only text, inlineData",
        ),
        ([model({"fileData": {}, "thoughtSignature": "QUJD"})], "contents[0].parts[0] must not be fileData"),
        ([user({"x" * 50: 1})], f"contents[0].parts[0] must not be {'x' * 40}: only"),
        ([user({"text": "x", "thought": True})], "contents[0].parts[0] must not hold thought: only turns of the model"),
        (
            [user({"text": "x", "thoughtSignature": "QUJD"})],
            "contents[0].parts[0] must not hold thoughtSignature: only",
        ),
        (
            [user({"text": "x", "thoughtSignature": "QUJD", "thought": True})],
            "contents[0].parts[0] must not hold thought:",
        ),
        ([model({"text": "x", "thought": 1})], "contents[0].parts[0].thought must be true or false"),
        ([user({"text": ""})], "contents[0].parts[0].text must be text, and not empty"),
        ([user({"text": "\n"})], "contents[0].parts[0].text must be text, and not empty"),
        ([model({"text": 5})], "contents[0].parts[0].text must be text"),
        ([model({"text": "\udc00"})], "contents[0].parts[0].text must be valid Unicode: it holds a lone surrogate"),
        (
            [model({"functionCall": {}})],
            "contents[0].parts[0].functionCall must be an object with a name, and only: args, i",
        ),
        ([model({"functionCall": []})], "contents[0].parts[0].functionCall must be an object with a name"),
        (
            [model({"functionCall": CALL | {"partialArgs": []}})],
            "contents[0].parts[0].functionCall must be an object with",
        ),
        ([model({"functionCall": {"name": "f", "args": []}})], "contents[0].parts[0].functionCall must hold its args"),
        (
            [user({"functionResponse": {"name": "f", "response": 1}})],
            "contents[0].parts[0].functionResponse must hold its",
        ),
        ([model({"functionCall": {"name": "f", "id": 5}})], "contents[0].parts[0].functionCall.id must be text"),
        (
            [model({"functionCall": {"name": "f", "id": "é" * 129}})],
            "contents[0].parts[0].functionCall.id must be at most 256",
        ),
        (
            [model({"functionCall": {"name": "f" * 257}})],
            "contents[0].parts[0].functionCall.name must be at most 256 bytes",
        ),
        (
            [user({"inlineData": IMAGE | {"displayName": "x"}})],
            "contents[0].parts[0].inlineData must be an object with mi",
        ),
        ([user({"inlineData": 5})], "contents[0].parts[0].inlineData must be an object with mimeType and data"),
    ],
)
def test_a_wrong_part_is_named(sent: list[Any], told: str) -> None:
    with pytest.raises(InvalidField) as refusal:
        checked(*sent)

    assert refusal.value.message.startswith(told)


def test_names_and_ids_of_256_bytes_are_taken() -> None:
    call = {"name": "f" * 256, "id": "é" * 128}

    assert checked(ASK, model({"functionCall": call}), ASK)[1].parts[0] == Called(kind="functionCall", value=call)
