"""What `generate` takes, and what it names when it does not."""

from dataclasses import replace
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firebreak.errors import InvalidField
from firebreak.gemini import estimate
from firebreak.gemini.contents import Inline, Media, Text, Turn
from firebreak.gemini.request import THINKING_LEVELS, Bounds, parse, request_id
from firebreak.settings.weights import FLAT

BOUNDS = Bounds(
    models=("a", "b"),
    max_output_tokens=100,
    default_output_tokens=10,
    max_prompt_bytes=1000,
    max_turns=3,
    media=Media(types=("image/png",), most_bytes=10),
)
USER = {"role": "user", "parts": [{"text": "hi"}]}


def media(mime_type: object, data: object) -> dict[str, object]:
    return {"role": "user", "parts": [{"inlineData": {"mimeType": mime_type, "data": data}}]}


def smuggled(part: dict[str, object]) -> dict[str, object]:
    """Media where no bound looks for them."""
    return {"functionResponse": {"name": "f", "response": {}, "parts": [part]}}


NO_LEVELS = ("", "THINKING_LEVEL_UNSPECIFIED", "hıgh", 1, True, ["LOW"])


def test_a_prompt_is_one_turn_of_the_user_with_defaults() -> None:
    request = parse({"prompt": "hi"}, BOUNDS)

    assert request.turns == (Turn(role="user", parts=(Text(text="hi"),)),)
    assert (request.model, request.max_output_tokens, request.temperature) == ("a", 10, None)


def test_the_owners_system_text_is_sent_and_counted() -> None:
    own = replace(BOUNDS, system="Be brief.")

    assert parse({"prompt": "hi"}, own).system == "Be brief."
    assert parse({"prompt": "hi", "system": "Be kind."}, replace(own, allow_client_system=True)).system == (
        "Be brief.\n\nBe kind."
    )
    assert estimate.most(parse({"prompt": "hi"}, own), FLAT) > estimate.most(parse({"prompt": "hi"}, BOUNDS), FLAT) + 9


def test_contents_keep_their_roles() -> None:
    model = {"role": "model", "parts": [{"text": "yes"}, {"text": "?"}]}
    request = parse({"contents": [USER, model, USER]}, BOUNDS)

    assert [turn.role for turn in request.turns] == ["user", "model", "user"]
    assert request.turns[1].parts == (Text(text="yes"), Text(text="?"))


def test_media_are_decoded_and_leave_the_count_to_the_model() -> None:
    request = parse({"contents": [media("image/png", "aGk=")]}, BOUNDS)

    assert request.turns[0].parts == (Inline(mime_type="image/png", data=b"hi"),)
    assert request.has_media
    assert not parse({"prompt": "hi"}, BOUNDS).has_media


def test_a_schema_makes_the_answer_json_and_is_counted() -> None:
    schema = {"type": "object", "description": "x" * 50}
    request = parse({"prompt": "hi", "responseSchema": schema}, BOUNDS)

    assert request.mime_type == "application/json"
    assert estimate.prompt_bound(request) > 50
    assert estimate.most(request, FLAT, counted=1) > 50


def test_tools_are_passed_on_and_counted() -> None:
    tools = [{"functionDeclarations": [{"name": "look_up", "description": "x" * 50}]}]
    request = parse({"prompt": "hi", "tools": tools}, BOUNDS)

    assert request.tools == tuple(tools)
    assert estimate.most(request, FLAT, counted=1) > 50


def test_a_tool_that_the_owner_allows_is_passed_on_as_it_is() -> None:
    allowed = replace(BOUNDS, tools=("functionDeclarations", "googleSearch"))
    tools = [{"functionDeclarations": [{"name": "f"}], "googleSearch": {}}]

    assert parse({"prompt": "hi", "tools": tools}, allowed).tools == tuple(tools)
    with pytest.raises(InvalidField, match=r"tools\[0\]\.googleSearch must be an object"):
        parse({"prompt": "hi", "tools": [{"googleSearch": 1}]}, allowed)
    with pytest.raises(InvalidField, match="with only: nothing"):
        parse({"prompt": "hi", "tools": tools}, replace(BOUNDS, tools=()))


def test_functions_of_every_tool_may_be_named() -> None:
    allowed = replace(BOUNDS, tools=("functionDeclarations", "googleSearch"))
    tools = [{"functionDeclarations": [{"name": "f"}]}, {"googleSearch": {}}, {"functionDeclarations": [{"name": "g"}]}]
    config = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f", "g"]}}

    assert parse({"prompt": "hi", "tools": tools, "toolConfig": config}, allowed).tool_config == config


@pytest.mark.parametrize("level", THINKING_LEVELS)
def test_a_thinking_level_is_taken_in_either_case(level: str) -> None:
    for said in (level, level.lower()):
        assert parse({"prompt": "hi", "thinkingLevel": said}, BOUNDS).thinking_level == level
    assert parse({"prompt": "hi"}, BOUNDS).thinking_level is None


EDGES: list[tuple[dict[str, object], str, object]] = [
    ({"maxOutputTokens": 1}, "max_output_tokens", 1),
    ({"maxOutputTokens": 100}, "max_output_tokens", 100),
    ({"temperature": 0}, "temperature", 0.0),
    ({"temperature": 2}, "temperature", 2.0),
    ({"model": "b"}, "model", "b"),
    ({"responseMimeType": "text/plain"}, "mime_type", "text/plain"),
    ({"responseMimeType": "application/json"}, "mime_type", "application/json"),
    ({"responseMimeType": "application/json", "responseSchema": {"a": 1}}, "mime_type", "application/json"),
    ({"responseSchema": {}}, "mime_type", None),
    ({"responseSchema": {}}, "schema", None),
    ({"responseSchema": {"a": 1}}, "schema", {"a": 1}),
    ({"tools": []}, "tools", ()),
    ({}, "mime_type", None),
    ({}, "system", None),
    ({}, "tool_config", None),
    ({}, "candidates", 1),
]


@pytest.mark.parametrize(("data", "field", "value"), EDGES)
def test_what_is_at_the_edge_is_taken(data: dict[str, object], field: str, value: object) -> None:
    assert getattr(parse({"prompt": "hi", **data}, BOUNDS), field) == value


SIGNED = {"role": "model", "parts": [{"text": "", "thoughtSignature": "QUJD"}]}
TOOL = {"functionDeclarations": [{"name": "f"}]}
CONFIG = {"functionCallingConfig": {"mode": "AUTO"}}


@pytest.mark.parametrize(
    ("data", "size"),
    [
        ({"prompt": "hé"}, 3),
        ({"prompt": "hi", "system": "é"}, 4),
        ({"prompt": "hi", "responseSchema": {"a": 1}}, 2 + len('{"a": 1}')),
        ({"prompt": "hi", "tools": [TOOL, TOOL]}, 2 + 2 * len('{"functionDeclarations": [{"name": "f"}]}')),
        ({"prompt": "hi", "toolConfig": CONFIG}, 2 + len('{"functionCallingConfig": {"mode": "AUTO"}}')),
        ({"contents": [USER, SIGNED, USER]}, 2 + 4 + 2),
    ],
)
def test_the_bytes_of_all_that_is_sent_are_bounded_together(data: dict[str, object], size: int) -> None:
    open_to_clients = replace(BOUNDS, allow_client_system=True)
    request = parse(data, replace(open_to_clients, max_prompt_bytes=size))

    assert estimate.prompt_bound(request) == size + estimate.overhead(request)
    with pytest.raises(InvalidField, match=f"at most {size - 1} bytes together"):
        parse(data, replace(open_to_clients, max_prompt_bytes=size - 1))


def test_a_float_that_is_whole_is_a_number_of_tokens() -> None:
    assert parse({"prompt": "hi", "maxOutputTokens": 7.0}, BOUNDS).max_output_tokens == 7


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (None, "data"),
        ([], "data"),
        ({}, "prompt and contents"),
        ({"prompt": "hi", "contents": [USER]}, "prompt and contents"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": "  "}, "prompt"),
        ({"prompt": 5}, "prompt"),
        ({"prompt": "\ud800"}, "prompt"),
        ({"prompt": "x" * 1001}, "1000 bytes"),
        ({"prompt": "é" * 501}, "1000 bytes"),
        ({"prompt": "hi", "system": "be mine"}, "system"),
        ({"contents": []}, "contents"),
        ({"contents": {}}, "contents"),
        ({"contents": [USER, {"role": "model", "parts": [{"text": "x"}]}]}, "contents must end"),
        ({"contents": [{"role": "system", "parts": [{"text": "x"}]}]}, "contents[0].role"),
        ({"contents": [{"role": ["user"], "parts": [{"text": "x"}]}]}, "contents[0].role"),
        ({"contents": ["x"]}, "contents[0]"),
        ({"contents": [{"role": "user", "parts": []}]}, "contents[0].parts"),
        ({"contents": [{"role": "user", "parts": [{"fileData": {}}]}]}, "contents[0].parts[0]"),
        ({"contents": [{"role": "user", "parts": [{"text": 1}]}]}, "contents[0].parts[0].text"),
        ({"prompt": "hi", "model": "c"}, "model"),
        ({"prompt": "hi", "model": 1}, "model"),
        ({"prompt": "hi", "model": ["a"]}, "model"),
        ({"prompt": "hi", "maxOutputTokens": 0}, "maxOutputTokens"),
        ({"prompt": "hi", "maxOutputTokens": 101}, "maxOutputTokens"),
        ({"prompt": "hi", "maxOutputTokens": True}, "maxOutputTokens"),
        ({"prompt": "hi", "maxOutputTokens": "5"}, "maxOutputTokens"),
        ({"prompt": "hi", "maxOutputTokens": 1.5}, "maxOutputTokens"),
        ({"prompt": "hi", "maxOutputTokens": float("inf")}, "maxOutputTokens"),
        ({"prompt": "hi", "temperature": 2.1}, "temperature"),
        ({"prompt": "hi", "temperature": float("nan")}, "temperature"),
        ({"prompt": "hi", "temperature": True}, "temperature"),
        ({"prompt": "hi", "tools": {}}, "tools"),
        ({"prompt": "hi", "tools": [{}]}, "tools[0]"),
        ({"prompt": "hi", "tools": [{"googleSearch": {}}]}, "tools[0]"),
        ({"prompt": "hi", "tools": [{"functionDeclarations": [], "urlContext": {}}]}, "tools[0]"),
        (
            {"prompt": "hi", "tools": [{"functionDeclarations": [{"name": "f", "description": "x" * 1000}]}]},
            "1000 bytes",
        ),
        ({"prompt": "hi", "toolConfig": {}}, "toolConfig"),
        *(({"prompt": "hi", "thinkingLevel": level}, "thinkingLevel must be one of: MINIMAL") for level in NO_LEVELS),
        ({"prompt": "hi", "responseSchema": []}, "responseSchema"),
        ({"prompt": "hi", "responseSchema": {"x": "y" * 1000}}, "1000 bytes"),
        ({"prompt": "hi", "responseMimeType": "text/html"}, "responseMimeType"),
        ({"prompt": "hi", "responseMimeType": "text/plain", "responseSchema": {"type": "object"}}, "responseMimeType"),
        ({"contents": [USER] * 4}, "at most 3 turns"),
        ({"contents": [media("image/gif", "aGk=")]}, "contents[0].parts[0].inlineData.mimeType"),
        ({"contents": [media("image/png", "no base64!")]}, "contents[0].parts[0].inlineData.data"),
        ({"contents": [media("image/png", 5)]}, "contents[0].parts[0].inlineData.data"),
        ({"contents": [media(["image/png"], "aGk=")]}, "contents[0].parts[0].inlineData.mimeType"),
        ({"contents": [media("image/png", "aGlo" * 6)]}, "10 bytes of inlineData"),
        ({"contents": [{"parts": [{"functionResponse": {}}]}]}, "contents[0].parts[0].functionResponse"),
        ({"contents": [{"parts": [smuggled({"fileData": {"fileUri": "gs://x"}})]}]}, "functionResponse"),
        ({"contents": [{"parts": [smuggled({"inlineData": {"mimeType": "video/mp4"}})]}]}, "functionResponse"),
        ({"contents": [{"parts": [{"functionCall": {"name": "f", "args": ["x"]}}]}]}, "functionCall"),
        ({"contents": [{"parts": [{"functionResponse": {"name": "f", "response": "x"}}]}]}, "functionResponse"),
    ],
)
def test_a_wrong_field_is_named(data: object, named: str) -> None:
    with pytest.raises(InvalidField) as refusal:
        parse(data, BOUNDS)

    assert named in refusal.value.message


@pytest.mark.parametrize("value", ["", "__x__", "____", "a" * 65, "a b", "a/b", "é", "a\n", 5, [], True])
def test_a_request_id_of_another_form_is_refused(value: object) -> None:
    with pytest.raises(InvalidField, match="requestId"):
        request_id({"requestId": value})


def test_a_request_id_may_be_left_out() -> None:
    assert request_id({"prompt": "hi"}) is None
    assert request_id({"requestId": "Az0_-"}) == "Az0_-"


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.text("a\u0301\u0315\ufdfa\u1100\u1161\u11a8ﬃ")
)
def test_the_bound_counts_a_text_as_long_as_any_normal_form_makes_it(text: str) -> None:
    for form in ("NFC", "NFKC"):
        assert estimate.tokens_bound([text]) >= len(normalize(form, text).encode())


def test_a_text_of_many_marks_is_bounded_in_linear_time() -> None:
    """Normalised as a whole it would take minutes."""
    assert estimate.tokens_bound(["a" + "\u0315" * 500_000 + "\u0316" * 490_000]) == 1 + 2 * 990_000


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200).filter(str.strip))
def test_the_bound_counts_at_least_every_byte(prompt: str) -> None:
    request = parse({"prompt": prompt}, BOUNDS)

    assert estimate.prompt_bound(request) > len(prompt.encode())
