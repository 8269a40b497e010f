"""What goes to the model: the JSON that the SDK's own types would write, and a signature exactly as it came."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
from google import genai
from google.genai import types

from firebreak.gemini import messages
from firebreak.gemini.contents import Media
from firebreak.gemini.request import Bounds, parse

BOUNDS = Bounds(
    models=("m",),
    max_output_tokens=100,
    default_output_tokens=10,
    max_prompt_bytes=10_000,
    allow_client_system=True,
    media=Media(types=("image/png",), most_bytes=100),
)
ASK = {"role": "user", "parts": [{"text": "hi"}]}
ANSWER = {"totalTokens": 1, "candidates": [{"content": {"role": "model", "parts": [{"text": "x"}]}}]}


@contextmanager
def sent(**backend: Any) -> Iterator[tuple[genai.Client, list[Any]]]:
    """A client whose requests end here."""
    bodies: list[Any] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.content))
        return httpx2.Response(200, json=ANSWER)

    client = httpx2.Client(transport=httpx2.MockTransport(answer))
    yield genai.Client(vertexai=False, api_key="k", http_options=types.HttpOptions(httpx_client=client)), bodies


def ours(data: dict[str, Any]) -> Any:
    """What the model gets of a request."""
    with sent() as (client, bodies):
        client.models.generate_content(
            model="m", contents=messages.EMPTY, config=messages.generation(parse(data, BOUNDS), 1)
        )
    return bodies[0]


def theirs(contents: list[Any], **config: Any) -> Any:
    """The same as the SDK's types write it."""
    with sent() as (client, bodies):
        client.models.generate_content(model="m", contents=contents, config=types.GenerateContentConfig(**config))
    return bodies[0]


@pytest.mark.parametrize(
    "parts",
    [
        [{"text": "one"}, {"text": "two"}],
        [{"inlineData": {"mimeType": "image/png", "data": "aGk="}}, {"text": "what is this?"}],
        [{"functionResponse": {"name": "f", "id": "1", "response": {"a": [None, 1.5, "ü"]}}}],
    ],
)
def test_a_turn_is_what_the_sdk_would_write(parts: list[dict[str, Any]]) -> None:
    written = theirs([types.Content(role="user", parts=[types.Part.model_validate(part) for part in parts])])

    assert ours({"contents": [{"role": "user", "parts": parts}]})["contents"] == json.loads(
        json.dumps(written["contents"]).replace("mime_type", "mimeType")
    )


def test_tools_their_config_and_the_thinking_level_are_what_the_sdk_would_write() -> None:
    parameters = {"type": "object", "properties": {"x": {"type": "string", "enum": ["a"], "nullable": True}}}
    tools = [{"functionDeclarations": [{"name": "f", "parameters": parameters, "description": "does"}]}]
    calling = {"functionCallingConfig": {"mode": "any", "allowedFunctionNames": ["f"]}}
    written = theirs(
        [types.Content(role="user", parts=[types.Part(text="hi")])],
        tools=[types.Tool.model_validate(tool) for tool in tools],
        tool_config=types.ToolConfig.model_validate(calling),
    )

    body = ours({"prompt": "hi", "tools": tools, "toolConfig": calling, "thinkingLevel": "low"})

    assert body["tools"] == written["tools"]
    assert body["toolConfig"] == written["toolConfig"]
    (level,) = body["generationConfig"]["thinkingConfig"].values()
    assert level == "LOW"


SIGNATURES = ["/+8=", "_-8=", "_-8", "/+8", "QUJD" * 4_000]


@pytest.mark.parametrize("signature", SIGNATURES, ids=["standard", "url-safe", "unpadded", "standard-unpadded", "long"])
def test_a_models_turn_goes_back_exactly_as_it_came(signature: str) -> None:
    parts = [
        {"text": "thinking…", "thought": True},
        {"text": "", "thoughtSignature": signature},
        {"functionCall": {"name": "f", "id": "call-1"}, "thoughtSignature": signature},
        {"functionCall": {"name": "f", "args": {"a": 1}}},
        {"inlineData": {"mimeType": "image/png", "data": "/+8="}, "thoughtSignature": signature},
    ]
    turn = {"role": "model", "parts": parts}
    wide = {"contents": [ASK, turn, ASK]}
    bounds = Bounds(**{name: getattr(BOUNDS, name) for name in BOUNDS.__slots__} | {"max_prompt_bytes": 10**6})

    with sent() as (client, bodies):
        config = messages.generation(parse(wide, bounds), 1)
        client.models.generate_content(model="m", contents=messages.EMPTY, config=config)

    assert bodies[0]["contents"] == wide["contents"]


def test_a_count_has_a_deadline_of_its_own() -> None:
    options = messages.counting(parse({"prompt": "hi"}, BOUNDS), 5.0).http_options

    assert options is not None
    assert options.timeout == 5_000


def test_a_count_is_asked_of_the_system_text_and_the_conversation() -> None:
    request = parse({"contents": [ASK], "system": "Be kind."}, BOUNDS)

    with sent() as (client, bodies):
        client.models.count_tokens(model="m", contents=messages.EMPTY, config=messages.counting(request, 5.0))

    assert bodies[0]["contents"] == [{"role": "user", "parts": [{"text": "Be kind."}]}, ASK]


def test_what_was_not_asked_for_is_not_sent() -> None:
    body = ours({"prompt": "hi"})

    assert body["contents"] == [ASK]
    assert body["generationConfig"] == {"maxOutputTokens": 10, "candidateCount": 1}
    assert not {"tools", "toolConfig", "systemInstruction"} & body.keys()


def test_the_sdk_keeps_its_hands_off_the_answer() -> None:
    config = messages.generation(parse({"prompt": "hi"}, BOUNDS), 1.5)

    assert config.automatic_continuation is False
    assert config.automatic_function_calling is not None
    assert config.automatic_function_calling.disable is True
    assert config.http_options is not None
    assert (config.http_options.timeout, config.http_options.retry_options) == (1500, None)
