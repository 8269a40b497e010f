"""The stand-ins, as Google's own clients see them."""

from collections.abc import Callable, Iterator

import httpx2
import pytest
from google import genai
from google.genai import errors, types
from google.oauth2 import service_account

from scripts.local.layout import Layout
from scripts.local.stack import Stack
from scripts.local.wire import call
from tests.conftest import StandIn

MODEL = "gemini-3.8-flash"
NOVEL = "Write a novel about a lighthouse."
CONFIG = types.GenerateContentConfig(
    max_output_tokens=200,
    temperature=0.5,
    system_instruction="Be brief.",
    safety_settings=[
        types.SafetySetting(
            category=types.HarmCategory.HARM_CATEGORY_HARASSMENT, threshold=types.HarmBlockThreshold.BLOCK_ONLY_HIGH
        )
    ],
    tools=[types.Tool(function_declarations=[types.FunctionDeclaration(name="look", description="looks")])],
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    automatic_continuation=False,
)


@pytest.fixture
def models(stack: Stack, gemini: StandIn) -> Iterator[genai.models.Models]:
    """The real client of the Developer API, pointed at the stand-in."""
    with genai.Client(api_key="k", http_options=types.HttpOptions(base_url=stack.standins_url)) as client:
        yield client.models


@pytest.fixture
def vertex(stack: Stack, gemini: StandIn) -> Iterator[genai.models.Models]:
    """The real client of Vertex AI, with the local service account."""
    scopes = ["https://www.googleapis.com/auth/cloud-platform"]
    account = service_account.Credentials.from_service_account_file(  # type: ignore[no-untyped-call]  # as it ships
        str(Layout().service_account), scopes=scopes
    )
    options = types.HttpOptions(base_url=stack.standins_url)
    with genai.Client(
        vertexai=True, project=stack.project, location="us-central1", credentials=account, http_options=options
    ) as client:
        yield client.models


def total(usage: types.GenerateContentResponseUsageMetadata | None) -> int:
    assert usage is not None
    parts = (usage.prompt_token_count, usage.candidates_token_count, usage.thoughts_token_count)
    assert usage.total_token_count == sum(part or 0 for part in parts)
    return usage.total_token_count


def test_a_long_answer_uses_a_good_part_of_the_limit(models: genai.models.Models) -> None:
    answer = models.generate_content(model=MODEL, contents=NOVEL, config=CONFIG)

    usage = answer.usage_metadata
    assert usage is not None
    output = total(usage) - (usage.prompt_token_count or 0)
    assert 120 <= output <= 200
    assert answer.text
    assert answer.response_id
    assert answer.model_version == MODEL
    assert answer.candidates is not None
    assert answer.candidates[0].finish_reason is types.FinishReason.STOP


def test_the_same_prompt_gets_the_same_answer(models: genai.models.Models) -> None:
    first, second = (models.generate_content(model=MODEL, contents=NOVEL, config=CONFIG) for _ in range(2))

    assert first.text == second.text
    assert first.usage_metadata == second.usage_metadata


def test_an_answer_cut_short_says_so(models: genai.models.Models) -> None:
    answer = models.generate_content(model=MODEL, contents="Hello", config={"max_output_tokens": 3})

    assert answer.candidates is not None
    assert answer.candidates[0].finish_reason is types.FinishReason.MAX_TOKENS
    assert answer.usage_metadata is not None
    assert answer.usage_metadata.candidates_token_count == 3


def test_a_stream_grows_to_the_usage_of_its_last_chunk(models: genai.models.Models) -> None:
    chunks = list(models.generate_content_stream(model=MODEL, contents=NOVEL, config=CONFIG))
    whole = models.generate_content(model=MODEL, contents=NOVEL, config=CONFIG)

    assert len(chunks) > 1
    totals = [total(chunk.usage_metadata) for chunk in chunks]
    assert totals == sorted(totals)
    assert chunks[-1].usage_metadata == whole.usage_metadata
    assert "".join(chunk.text or "" for chunk in chunks) == whole.text


@pytest.mark.parametrize("prompt", ["", "a", "Hello, world", "日本語のテスト", "🙂🙂", "naïve café " * 50])
def test_tokens_are_never_more_than_utf8_bytes(models: genai.models.Models, prompt: str) -> None:
    counted = models.count_tokens(model=MODEL, contents=[types.Content(parts=[types.Part(text=prompt)])])

    assert counted.total_tokens is not None
    assert len(prompt) // 4 <= counted.total_tokens <= len(prompt.encode())


def test_a_script_is_followed_in_order_and_counting_leaves_it_alone(
    models: genai.models.Models, gemini: StandIn
) -> None:
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 11, "thoughtsTokenCount": 2, "totalTokenCount": 20}
    gemini.script(
        {"text": "one", "usage": usage},
        {"text": "two", "usage": None},
        {"for": "countTokens", "raw": {"totalTokens": 99}},
        {"promptFeedback": {"blockReason": "SAFETY"}},
    )

    counted = models.count_tokens(model=MODEL, contents="hi")
    first, second, third = (models.generate_content(model=MODEL, contents="hi") for _ in range(3))

    assert counted.total_tokens == 99
    assert first.text == "one"
    assert total(first.usage_metadata) == 20
    assert second.text == "two"
    assert second.usage_metadata is None
    assert third.candidates is None
    assert third.prompt_feedback is not None
    assert [entry["method"] for entry in gemini.log()] == ["countTokens", *["generateContent"] * 3]


def test_a_scripted_stream_has_the_chunks_and_usages_it_was_given(models: genai.models.Models, gemini: StandIn) -> None:
    gemini.script({"chunks": ["a", "b", "c"], "usages": [None, {"totalTokenCount": 9}], "finishReason": None})

    chunks = list(models.generate_content_stream(model=MODEL, contents="hi"))

    assert [chunk.text for chunk in chunks] == ["a", "b", "c"]
    assert [chunk.usage_metadata and chunk.usage_metadata.total_token_count for chunk in chunks] == [None, 9, None]
    assert all(chunk.candidates and chunk.candidates[0].finish_reason is None for chunk in chunks)


@pytest.mark.parametrize("status", [400, 403, 429, 499, 500, 503])
def test_a_scripted_status_is_an_error_of_the_client(models: genai.models.Models, gemini: StandIn, status: int) -> None:
    gemini.script({"status": status})

    with pytest.raises(errors.APIError) as caught:
        models.generate_content(model=MODEL, contents="hi")

    assert caught.value.code == status


@pytest.mark.parametrize("drop", ["nothing", "headers", 20])
def test_a_dropped_answer_is_a_transport_error(models: genai.models.Models, gemini: StandIn, drop: object) -> None:
    gemini.script({"dropAfter": drop})

    with pytest.raises(httpx2.TransportError):
        models.generate_content(model=MODEL, contents="hi")


def test_a_dropped_stream_gives_what_came_before(models: genai.models.Models, gemini: StandIn) -> None:
    gemini.script({"chunks": ["a", "b", "c"], "dropAfter": 2})
    seen: list[str | None] = []

    with pytest.raises(httpx2.TransportError):
        seen.extend(chunk.text for chunk in models.generate_content_stream(model=MODEL, contents="hi"))
    chunks = gemini.log("streamGenerateContent")

    assert len(chunks) == 1
    assert not chunks[0]["aborted"]


def test_junk_is_no_answer(models: genai.models.Models, gemini: StandIn) -> None:
    gemini.script({"body": "<html>"})

    with pytest.raises(ValueError, match="Expecting value"):
        models.generate_content(model=MODEL, contents="hi")


def test_a_client_that_leaves_is_in_the_log(models: genai.models.Models, gemini: StandIn) -> None:
    gemini.script({"delayMs": 5000})

    with pytest.raises(httpx2.ReadTimeout):
        models.generate_content(model=MODEL, contents="hi", config={"http_options": {"timeout": 100}})
    models.generate_content(model=MODEL, contents="hi")

    assert [entry["aborted"] for entry in gemini.log()] == [True, False]


@pytest.mark.parametrize(
    ("model", "key", "body", "status", "words"),
    [
        (MODEL, "", {"contents": [{"parts": [{"text": "hi"}]}]}, 403, "unregistered callers"),
        ("gemini-9", "k", {"contents": [{"parts": [{"text": "hi"}]}]}, 404, "models/gemini-9 is not found"),
        (MODEL, "k", {}, 400, "contents is not specified"),
        (MODEL, "k", {"contents": [{"parts": []}]}, 400, "parts must not be empty"),
        (
            MODEL,
            "k",
            {"contents": [{"parts": [{"text": "hi"}], "name": 1}]},
            400,
            "Unknown name \"name\" at 'contents[0]'",
        ),
        (MODEL, "k", {"contents": [{"parts": [{"text": "hi"}], "role": "system"}]}, 400, "valid role"),
        (MODEL, "k", {"prompt": "hi"}, 400, 'Unknown name "prompt": Cannot find field.'),
        (MODEL, "k", {"generationConfig": {"maxOutputTokens": "ten"}}, 400, "generation_config.max_output_tokens"),
        (MODEL, "k", {"contents": [{"parts": [{"text": "a"}]}], "generationConfig": {"temperature": 3}}, 400, "range"),
        (
            MODEL,
            "k",
            {"contents": [{"parts": [{"text": "a"}]}], "generation_config": {"maxOutputTokens": 0}},
            400,
            "positive",
        ),
    ],
)
def test_it_is_as_strict_as_the_service(
    stack: Stack, model: str, key: str, body: object, status: int, words: str
) -> None:
    url = f"{stack.standins_url}/v1/models/{model}:generateContent"

    answer = call("POST", url, body, headers={"x-goog-api-key": key} if key else {})

    assert answer.status == status
    assert answer.json["error"]["code"] == status
    assert words in answer.json["error"]["message"]


def test_a_script_with_an_unknown_field_is_refused(stack: Stack, gemini: StandIn) -> None:
    answer = call("POST", f"{stack.standins_url}/_script/gemini", [{"txet": "hi"}])

    assert answer.status == 400
    assert "txet" in answer.json["error"]["message"]


def test_vertex_takes_only_tokens_from_the_token_endpoint(
    stack: Stack, vertex: genai.models.Models, gemini: StandIn
) -> None:
    answer = vertex.generate_content(model=MODEL, contents="hi", config={"max_output_tokens": 20})
    counted = vertex.count_tokens(model=MODEL, contents="hi", config={"system_instruction": "Be brief."})
    refused = call("POST", stack.standins_url + gemini.log()[0]["path"], {}, headers={"Authorization": "Bearer x"})

    assert answer.text
    assert counted.total_tokens == 4
    assert "/publishers/google/models/" in gemini.log()[0]["path"]
    assert refused.status == 401


def test_reset_forgets_scripts_and_logs(models: genai.models.Models, gemini: StandIn) -> None:
    gemini.script({"text": "stale"})
    gemini.reset()

    assert models.generate_content(model=MODEL, contents="hi").text != "stale"
    assert len(gemini.log()) == 1


def test_mint_refuses_what_it_does_not_know(stack: Stack, mint: Callable[..., str]) -> None:
    assert call("POST", f"{stack.standins_url}/appcheck/mint", {"ttl": 5}).status == 400
    assert mint(ttlSeconds=-1)
