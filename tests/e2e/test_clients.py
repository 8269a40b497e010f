"""What an app sees: the official JS SDK calls the deployed functions on the whole local stack."""

import time
from collections.abc import Sequence

import pytest

from scripts.clients.caller import Event, call, of_kind
from scripts.clients.client import Client, Json
from scripts.demo.records import Records
from scripts.local.stack import Stack
from tests.conftest import StandIn
from tests.e2e.told import answer, refusal

LIMIT = 100_000
HELLO = {"prompt": "What is a firebreak?", "maxOutputTokens": 64}
UNATTESTED = {
    "missing": None,
    "garbage": "not.a.token",
    "forged": {"badSignature": True},
    "expired": {"ttlSeconds": -60},
    "foreign": {"projectId": "demo-somebody-else"},
}


@pytest.fixture
def records(stack: Stack) -> Records:
    return Records(project=stack.project, firestore_host=stack.firestore_host)


def uid(events: Sequence[Event]) -> str:
    return str(of_kind(events, "signed-in")[0]["uid"])


def test_an_answer_tells_its_text_and_its_cost(stack: Stack) -> None:
    result = answer(call(Client(backend=stack, data=[{**HELLO, "requestId": "first"}])))

    assert result.keys() == {
        "text", "content", "finishReason", "model", "usage", "charged", "remaining", "requestId",
    }  # fmt: skip
    assert result["text"]
    assert result["finishReason"] == "STOP"
    assert result["requestId"] == "first"
    usage = result["usage"]
    assert usage.keys() == {
        "promptTokens", "outputTokens", "thoughtTokens", "cachedTokens", "toolTokens", "totalTokens",
    }  # fmt: skip
    assert result["charged"] == usage["totalTokens"] == usage["promptTokens"] + usage["outputTokens"] > 0
    assert result["remaining"] == LIMIT - result["charged"]


def test_a_conversation_reaches_the_model_as_it_was_sent(stack: Stack, gemini: StandIn) -> None:
    contents = [
        {"role": "user", "parts": [{"text": "My name is Zoë."}]},
        {"role": "model", "parts": [{"text": "Hello, Zoë."}]},
        {"role": "user", "parts": [{"text": "What is "}, {"text": "my name?"}]},
    ]
    data = {"contents": contents, "temperature": 0.5, "model": "gemini-3.5-flash-lite"}

    result = answer(call(Client(backend=stack, data=[data])))

    (request,) = gemini.log()
    assert request["body"]["contents"] == contents
    assert request["body"]["generationConfig"]["temperature"] == 0.5
    assert result["model"] == request["model"] == "gemini-3.5-flash-lite"


@pytest.mark.parametrize("attest", UNATTESTED.values(), ids=UNATTESTED.keys())
def test_a_bot_costs_nothing(stack: Stack, gemini: StandIn, records: Records, attest: Json) -> None:
    events = call(Client(backend=stack, attest=attest, data=[HELLO]))

    code, details = refusal(events)
    assert code == "unauthenticated"
    assert details == {"reason": "app-check"}
    assert gemini.log() == []
    assert records.books(uid(events)).documents == 0


def test_nobody_is_answered_without_signing_in(stack: Stack, gemini: StandIn) -> None:
    code, details = refusal(call(Client(backend=stack, sign_in=None, data=[HELLO])))

    assert code == "unauthenticated"
    assert details == {"reason": "sign-in"}
    assert gemini.log() == []


def test_each_layer_refuses_before_the_next_looks(stack: Stack) -> None:
    bad = [{"prompt": ""}]

    neither = call(Client(backend=stack, attest=None, sign_in=None, data=bad))
    unsigned = call(Client(backend=stack, sign_in=None, data=bad))
    both = call(Client(backend=stack, data=bad))

    assert [refusal(events)[1]["reason"] for events in (neither, unsigned, both)] == ["app-check", "sign-in", "field"]


def test_a_limited_use_token_is_taken(stack: Stack) -> None:
    limited = Client(backend=stack, attest={"limitedUse": True}, limited_use=True, data=[HELLO])

    assert answer(call(limited))["text"]


BAD_FIELDS: dict[str, Json] = {
    "data": None,
    "unknown field: promt": {"promt": "hi"},
    "prompt": {"prompt": 7},
    "prompt and contents": {"prompt": "hi", "contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    "contents": {"contents": []},
    "contents[0].role": {"contents": [{"role": "system", "parts": [{"text": "hi"}]}]},
    "model": {"prompt": "hi", "model": "gemini-of-another"},
    "system": {"prompt": "hi", "system": 1},
    "maxOutputTokens": {"prompt": "hi", "maxOutputTokens": 1_000_000},
    "temperature": {"prompt": "hi", "temperature": -1},
    "requestId": {"prompt": "hi", "requestId": "../other"},
}


def test_a_bad_field_is_named_and_costs_nothing(stack: Stack, gemini: StandIn, records: Records) -> None:
    client = Client(backend=stack, data=list(BAD_FIELDS.values()), calls=len(BAD_FIELDS), request_ids=False)

    events = call(client)

    refusals = of_kind(events, "refused")
    assert [event["code"] for event in refusals] == ["invalid-argument"] * len(BAD_FIELDS)
    for name, event in zip(BAD_FIELDS, refusals, strict=True):
        assert name in event["message"]
        assert event["details"]["reason"] == "field"
    assert gemini.log() == []
    assert records.books(uid(events)).documents == 0


def test_a_request_id_buys_one_answer(stack: Stack, gemini: StandIn) -> None:
    events = call(Client(backend=stack, data=[{**HELLO, "requestId": "once"}], calls=3))

    first = of_kind(events, "answered")
    again = of_kind(events, "refused")
    assert len(first) == 1
    assert [event["code"] for event in again] == ["already-exists"] * 2
    charged = first[0]["result"]["charged"]
    assert again[0]["details"] == {"reason": "duplicate", "status": "settled", "charged": charged}
    assert len(gemini.log()) == 1


def test_a_request_id_buys_one_answer_of_many_callers_at_once(stack: Stack, gemini: StandIn, records: Records) -> None:
    client = Client(backend=stack, data=[{**HELLO, "requestId": "race"}], calls=6, workers=6)

    events = call(client)

    assert len(of_kind(events, "answered")) == 1
    assert {event["code"] for event in of_kind(events, "refused")} == {"already-exists"}
    assert len(gemini.log()) == 1
    assert records.books(uid(events)).admitted == 1


def test_the_same_request_id_of_two_users_is_two_calls(stack: Stack) -> None:
    data = [{**HELLO, "requestId": "shared"}]

    results = [answer(call(Client(backend=stack, data=data))) for _ in range(2)]

    assert [result["remaining"] for result in results] == [LIMIT - result["charged"] for result in results]


def test_an_empty_bucket_tells_how_much_is_left_and_when_to_come_back(stack: Stack, gemini: StandIn) -> None:
    gemini.script({"text": "long", "usage": {"promptTokenCount": 9, "totalTokenCount": 99_000}})
    client = Client(backend=stack, data=[{**HELLO, "maxOutputTokens": 4_096}], calls=2)

    code, details = refusal(call(client))

    assert code == "resource-exhausted"
    assert details.keys() == {"reason", "remaining", "limit", "retryAfterSeconds"}
    assert details["reason"] == "tokens"
    assert details["limit"] == LIMIT
    assert 1_000 <= details["remaining"] < 1_100
    missing = 4_096 - details["remaining"]
    assert missing * 86_400 // LIMIT < details["retryAfterSeconds"] < (missing + 200) * 86_400 // LIMIT
    assert len(gemini.log()) == 1


def test_an_empty_bucket_is_one_users_alone(stack: Stack, gemini: StandIn) -> None:
    gemini.script({"text": "long", "usage": {"totalTokenCount": 150_000}})
    burnt = call(Client(backend=stack, data=[HELLO], calls=2))

    other = answer(call(Client(backend=stack, data=[HELLO])))

    assert refusal(burnt)[1]["remaining"] == 0
    assert other["remaining"] == LIMIT - other["charged"]


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [(429, "unavailable", "model"), (503, "unavailable", "model"), (403, "unavailable", "model")],
)
def test_the_models_refusal_is_never_taken_for_the_users(
    stack: Stack, gemini: StandIn, status: int, code: str, reason: str
) -> None:
    gemini.script({"status": status})

    told, details = refusal(call(Client(backend=stack, data=[HELLO])))

    assert told == code
    assert details["reason"] == reason
    # The process that served it goes by a 429 for 2 s, and the next test is not about that.
    end = time.monotonic() + 60
    while status == 429 and of_kind(call(Client(backend=stack, data=[HELLO])), "refused"):
        assert time.monotonic() < end


def test_usage_shows_a_user_their_own_bucket(stack: Stack, gemini: StandIn) -> None:
    gemini.script({"text": "four", "usage": {"promptTokenCount": 6, "candidatesTokenCount": 1, "totalTokenCount": 7}})
    functions = ("generate", "usage")
    client = Client(backend=stack, data=[HELLO, {}], calls=2, functions=functions, request_ids=False)

    charged, shown = (event["result"] for event in of_kind(call(client), "answered"))

    assert charged["charged"] == 7
    assert shown["remaining"] == LIMIT - 7
    assert shown["limit"] == LIMIT
    assert shown["refillPerSecond"] == pytest.approx(LIMIT / 86_400)
    assert shown["lifetime"]["calls"] == 1
    assert shown["lifetime"]["charged"] == 7
    assert [call["charged"] for call in shown["recent"]] == [7]


def test_usage_needs_what_generate_needs(stack: Stack) -> None:
    unattested = call(Client(backend=stack, attest=None, data=[{}], functions=["usage"], request_ids=False))
    unsigned = call(Client(backend=stack, sign_in=None, data=[{}], functions=["usage"], request_ids=False))

    assert refusal(unattested) == ("unauthenticated", {"reason": "app-check"})
    assert refusal(unsigned) == ("unauthenticated", {"reason": "sign-in"})
