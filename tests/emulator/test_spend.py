"""Every exit of a call, with the real Gemini client and the real store: exactly one settle, and the right charge."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from google.cloud import firestore

from firebreak import errors
from firebreak.bucket.ledger import Ledger
from firebreak.bucket.reserve import Ask, Hold
from firebreak.bucket.settle import Settled
from firebreak.gemini import generate as calls
from firebreak.gemini.admit import Account
from firebreak.gemini.client import Developer, Gemini, Vertex
from firebreak.gemini.contents import Media
from firebreak.gemini.request import Bounds, parse
from firebreak.limits.pool import Pool
from firebreak.settings.weights import FLAT, Price, Weights
from scripts.local.layout import Layout
from scripts.local.standins import gemini_signature
from tests.conftest import StandIn
from tests.emulator.books import books

MODEL = "gemini-3.8-flash"
BOUNDS = Bounds(
    models=(MODEL,),
    max_output_tokens=1_000,
    default_output_tokens=100,
    max_prompt_bytes=10_000,
    allow_client_system=True,
    media=Media(types=("image/png",), most_bytes=1_000),
)
LIMIT = 10_000
# The byte bound of "hi", with what the service may add, and the output.
ESTIMATE = 2 + 24 + 100
DEADLINE_S = 10.0

type Run = Callable[..., dict[str, Any]]


class CountingLedger(Ledger):
    """The real ledger; it only counts how often settle is entered."""

    settles = 0

    def settle(self, hold: Hold, *, actual: int, counters: Any) -> Settled:
        self.settles += 1
        return super().settle(hold, actual=actual, counters=counters)


@pytest.fixture
def counting(direct: firestore.Client) -> CountingLedger:
    return CountingLedger(direct)


@pytest.fixture
def run(counting: CountingLedger, gemini: StandIn, direct: firestore.Client, uid: str) -> Run:
    client = Gemini(Developer(api_key="local"), host=gemini.url.removeprefix("http://"))
    none = Pool(direct, tokens_per_hour=0, shares={})

    def generate(
        deadline_s: float = DEADLINE_S,
        limit: int = LIMIT,
        gemini: Any = client,
        shadow: bool = False,
        price: Price = FLAT,
        **data: Any,
    ) -> Any:
        return calls.generate(
            parse({name: value for name, value in ({"prompt": "hi"} | data).items() if value is not None}, BOUNDS),
            "r",
            Account(user_key=uid, limit=limit, share="default", shadow=shadow, price=price),
            deadline_s=deadline_s,
            ledger=counting,
            gemini=gemini,
            pool=none,
        )

    return generate


def usage(prompt: int, output: int, **more: int) -> dict[str, int]:
    counts = {"promptTokenCount": prompt, "candidatesTokenCount": output, **more}
    return counts | {"totalTokenCount": sum(counts.values())}


ANSWERED: dict[str, tuple[dict[str, Any], int, str | None]] = {
    "an answer": ({"text": "hello", "usage": usage(3, 5)}, 8, "STOP"),
    "thoughts": ({"text": "hello", "usage": usage(3, 5, thoughtsTokenCount=50)}, 58, "STOP"),
    "cut short": ({"text": "hello", "usage": usage(3, 100), "finishReason": "MAX_TOKENS"}, 103, "MAX_TOKENS"),
    "blocked on the way": ({"text": "", "usage": usage(3, 0), "finishReason": "SAFETY"}, 3, "SAFETY"),
    "no usage": ({"text": "hello", "usage": None}, ESTIMATE, "STOP"),
    "no finish reason": ({"text": "hello", "usage": usage(3, 5), "finishReason": None}, ESTIMATE, None),
    "no candidates": ({"raw": {"candidates": [], "usageMetadata": usage(3, 0)}}, ESTIMATE, None),
    "a blocked prompt": (
        {"raw": {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}}},
        3,
        "SAFETY",
    ),
    "above the estimate": ({"text": "hello", "usage": usage(3, 900)}, 903, "STOP"),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_an_answer_is_charged_what_it_used(
    name: str, run: Run, counting: CountingLedger, gemini: StandIn, direct: firestore.Client, uid: str
) -> None:
    reply, charged, finish_reason = ANSWERED[name]
    gemini.script(reply)

    answer = run()

    assert (answer["charged"], answer["finishReason"]) == (charged, finish_reason)
    assert_settled_once(counting, direct, uid, charged)


FAILURES: dict[str, tuple[dict[str, Any], type[errors.Refused], int]] = {
    "400": ({"status": 400}, errors.ModelInput, 0),
    "401": ({"status": 401}, errors.ModelUnavailable, 0),
    "402": ({"status": 402}, errors.ModelPaused, 0),
    "403": ({"status": 403}, errors.ModelUnavailable, 0),
    "404": ({"status": 404}, errors.ModelUnavailable, 0),
    "429": ({"status": 429}, errors.ModelUnavailable, 0),
    "499": ({"status": 499}, errors.ModelUnavailable, ESTIMATE),
    "500": ({"status": 500}, errors.ModelUnavailable, ESTIMATE),
    "503": ({"status": 503}, errors.ModelUnavailable, ESTIMATE),
    "504": ({"status": 504}, errors.DeadlineExceeded, ESTIMATE),
    "302": ({"status": 302, "body": ""}, errors.ModelUnavailable, ESTIMATE),
    "a 400 that is about the project": (
        {"status": 400, "error": {"code": 400, "status": "FAILED_PRECONDITION", "message": "No such location"}},
        errors.ModelUnavailable,
        0,
    ),
    "nothing at all": ({"body": ""}, errors.ModelUnavailable, ESTIMATE),
    "an empty object": ({"body": "{}"}, errors.ModelUnavailable, ESTIMATE),
    "a list": ({"body": "[]"}, errors.ModelUnavailable, ESTIMATE),
    "null": ({"body": "null"}, errors.ModelUnavailable, ESTIMATE),
    "JSON of something else": ({"body": '{"hello": "world"}'}, errors.ModelUnavailable, ESTIMATE),
    "an error with status 200": ({"raw": {"error": {"code": 500}}}, errors.ModelUnavailable, ESTIMATE),
    "an enum as a number": (
        {"raw": {"candidates": [{"finishReason": 1}], "usageMetadata": {"totalTokenCount": 3}}},
        errors.ModelUnavailable,
        ESTIMATE,
    ),
    "a number that is none": (
        {"body": '{"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "args": {"x": NaN}}}]}}]}'},
        errors.ModelUnavailable,
        ESTIMATE,
    ),
    "nested too deep": ({"body": "[" * 100_000 + "]" * 100_000}, errors.ModelUnavailable, ESTIMATE),
    "junk": ({"body": "<html>"}, errors.ModelUnavailable, ESTIMATE),
    "dropped before the headers": ({"dropAfter": "nothing"}, errors.ModelUnavailable, ESTIMATE),
    "dropped after the headers": ({"dropAfter": "headers"}, errors.ModelUnavailable, ESTIMATE),
    "dropped in the body": ({"dropAfter": 20}, errors.ModelUnavailable, ESTIMATE),
    "a bad key": (
        {"status": 400, "error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT",
                                  "details": [{"reason": "API_KEY_INVALID"}]}},
        errors.ModelUnavailable,
        0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_charged_unless_it_provably_cost_nothing(
    name: str, run: Run, counting: CountingLedger, gemini: StandIn, direct: firestore.Client, uid: str
) -> None:
    reply, refusal, charged = FAILURES[name]
    gemini.script(reply)

    with pytest.raises(refusal) as refused:
        run()

    assert refused.value.details["charged"] == charged
    assert_settled_once(counting, direct, uid, charged)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_is_our_fault_is_logged_as_ours(
    status: int, run: Run, gemini: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    gemini.script({"status": status})

    with pytest.raises(errors.ModelUnavailable):
        run()

    event = json.loads(capsys.readouterr().out)
    assert (event["message"], event["severity"], event["ours"]) == ("firebreak.model", "ERROR", True)


def test_our_deadline_ends_the_call_and_charges_the_estimate(
    run: Run, counting: CountingLedger, gemini: StandIn, direct: firestore.Client, uid: str
) -> None:
    gemini.script({"text": "late", "delayMs": 5_000})

    with pytest.raises(errors.DeadlineExceeded):
        run(deadline_s=0.2)

    assert_settled_once(counting, direct, uid, ESTIMATE)


def test_an_unreachable_model_is_not_charged(
    run: Run, counting: CountingLedger, direct: firestore.Client, uid: str
) -> None:
    with pytest.raises(errors.ModelUnavailable):
        run(gemini=Gemini(Developer(api_key="local"), host="127.0.0.1:9"))

    assert_settled_once(counting, direct, uid, 0)


class Broken(Gemini):
    """A client with a fault of our own in it."""

    def generate(self, *_: object, **__: object) -> Any:
        raise RuntimeError("secret")


def test_a_fault_of_our_own_is_charged_at_the_estimate(
    run: Run, counting: CountingLedger, direct: firestore.Client, uid: str
) -> None:
    with pytest.raises(errors.Internal) as refused:
        run(gemini=Broken(Developer(api_key="local"), host="127.0.0.1:9"))

    assert refused.value.details["charged"] == ESTIMATE
    assert_settled_once(counting, direct, uid, ESTIMATE)


def test_usage_above_the_estimate_is_logged(run: Run, gemini: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    gemini.script({"text": "hello", "usage": usage(3, 900)})

    run()

    event = json.loads(capsys.readouterr().out)
    assert (event["message"], event["estimated"], event["actual"]) == ("firebreak.overrun", ESTIMATE, 903)


def test_one_call_is_one_request_with_the_limit_set(run: Run, gemini: StandIn) -> None:
    run(system="be kind", temperature=0.5)

    (request,) = gemini.log()
    assert request["method"] == "generateContent"
    config = request["body"]["generationConfig"]
    assert (config["maxOutputTokens"], config["temperature"]) == (100, 0.5)
    assert request["body"]["systemInstruction"]["parts"] == [{"text": "be kind"}]


def test_a_refused_user_never_reaches_the_model(run: Run, counting: Ledger, gemini: StandIn, uid: str) -> None:
    counting.reserve(uid, "before", Ask(estimate=LIMIT - 50, limit=LIMIT, model="m"))

    with pytest.raises(errors.BucketEmpty):
        run()

    assert gemini.log() == []


def test_the_model_counts_only_if_the_bound_does_not_fit_and_the_answer_does(
    run: Run, counting: Ledger, gemini: StandIn, uid: str
) -> None:
    counting.reserve(uid, "before", Ask(estimate=LIMIT - 1_000, limit=LIMIT, model="m"))

    answer = run(prompt="four score and " * 80, system="be kind")

    assert [entry["method"] for entry in gemini.log()] == ["countTokens", "generateContent"]
    assert "be kind" in json.dumps(gemini.log()[0]["body"])
    assert answer["charged"] > 0


def test_a_count_that_does_not_fit_either_is_refused_after_one_count(
    run: Run, counting: Ledger, gemini: StandIn, uid: str
) -> None:
    counting.reserve(uid, "before", Ask(estimate=LIMIT - 130, limit=LIMIT, model="m"))

    with pytest.raises(errors.BucketEmpty):
        run(prompt="four score and " * 80)

    assert [entry["method"] for entry in gemini.log()] == ["countTokens"]


@pytest.mark.parametrize("reply", [{"status": 429}, {"status": 503}, {"status": 504}, {"dropAfter": "nothing"}])
def test_a_count_that_fails_for_a_moment_says_nothing_of_the_bucket(
    reply: dict[str, Any],
    run: Run,
    counting: CountingLedger,
    gemini: StandIn,
    direct: firestore.Client,
    uid: str,
) -> None:
    counting.reserve(uid, "before", Ask(estimate=LIMIT - 1_000, limit=LIMIT, model="m"))
    gemini.script({"for": "countTokens", **reply})

    with pytest.raises(errors.ModelUnavailable) as refused:
        run(prompt="four score and " * 80)

    assert refused.value.details == {"reason": "model", "retryAfterSeconds": 2, "charged": 0}
    assert list(books(direct, uid).calls) == ["before"]


def test_while_a_limit_of_the_model_is_known_it_is_asked_no_more_and_nothing_is_held(
    run: Run, gemini: StandIn, direct: firestore.Client, uid: str
) -> None:
    wait = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "33.2s"}
    gemini.script({"status": 429, "error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [wait]}})
    refusals = []

    for prompt in ("hi", "hi", "four score and " * 80):
        with pytest.raises(errors.ModelUnavailable) as refused:
            run(prompt=prompt)
        refusals.append(refused.value.details)

    assert refusals[0] == {"reason": "model", "retryAfterSeconds": 34, "charged": 0}
    assert all(0 < int(details["retryAfterSeconds"]) <= 34 for details in refusals)
    assert [entry["method"] for entry in gemini.log()] == ["generateContent"]
    assert list(books(direct, uid).calls) == ["r"]


@pytest.mark.parametrize(("version", "sent"), [("v1", "v1"), ("v1beta", "v1beta1")])
def test_vertex_is_asked_as_the_service_account(
    version: str, sent: str, run: Run, gemini: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(Layout().service_account))
    backend = Vertex(project="demo-firebreak", location="global")

    answer = run(gemini=Gemini(backend, host=gemini.url.removeprefix("http://"), version=version))

    assert answer["charged"] > 0
    (request,) = gemini.log()
    assert request["path"].startswith(f"/{sent}/projects/demo-firebreak/locations/global/")


def test_shadow_mode_admits_what_the_bucket_refuses_and_says_so(
    run: Run, counting: CountingLedger, gemini: StandIn, uid: str, capsys: pytest.CaptureFixture[str]
) -> None:
    counting.reserve(uid, "before", Ask(estimate=LIMIT, limit=LIMIT, model="m"))
    gemini.script({"text": "hello", "usage": usage(3, 5)})

    answer = run(shadow=True)

    event = json.loads(capsys.readouterr().out)
    assert (answer["text"], answer["charged"], answer["remaining"]) == ("hello", 8, None)
    assert (event["message"], event["reason"]) == ("firebreak.shadow", "tokens")


def test_shadow_mode_books_what_the_bucket_covers(
    run: Run, counting: CountingLedger, gemini: StandIn, direct: firestore.Client, uid: str
) -> None:
    gemini.script({"text": "hello", "usage": usage(3, 5)})

    run(shadow=True)

    assert_settled_once(counting, direct, uid, 8)


def test_shadow_mode_still_refuses_a_duplicate(run: Run, counting: CountingLedger, uid: str) -> None:
    counting.reserve(uid, "r", Ask(estimate=1, limit=LIMIT, model="m"))

    with pytest.raises(errors.Duplicate):
        run(shadow=True)


def image(data: str = "iVBORw0KGgo=") -> dict[str, Any]:
    parts = [{"text": "what is this?"}, {"inlineData": {"mimeType": "image/png", "data": data}}]
    return {"role": "user", "parts": parts}


def test_media_are_counted_by_the_model_before_they_are_charged(
    run: Run, counting: CountingLedger, gemini: StandIn, direct: firestore.Client, uid: str
) -> None:
    gemini.script({"for": "countTokens", "raw": {"totalTokens": 1_500}}, {"text": "a png", "usage": usage(1_500, 5)})

    answer = run(prompt=None, contents=[image()])

    assert [entry["method"] for entry in gemini.log()] == ["countTokens", "generateContent"]
    assert gemini.log()[1]["body"]["contents"][0]["parts"][1]["inlineData"]["data"] == "iVBORw0KGgo="
    assert books(direct, uid).calls["r"]["estimated"] == 1_500 + 24 + 100
    assert_settled_once(counting, direct, uid, answer["charged"])


def test_media_of_a_user_who_cannot_pay_for_the_answer_are_not_counted(
    run: Run, counting: CountingLedger, gemini: StandIn, uid: str
) -> None:
    counting.reserve(uid, "before", Ask(estimate=LIMIT - 50, limit=LIMIT, model="m"))

    with pytest.raises(errors.BucketEmpty):
        run(prompt=None, contents=[image()])

    assert gemini.log() == []


def test_media_that_cannot_be_counted_are_not_sent(
    run: Run, gemini: StandIn, direct: firestore.Client, uid: str
) -> None:
    gemini.script({"for": "countTokens", "status": 503})

    with pytest.raises(errors.ModelUnavailable):
        run(prompt=None, contents=[image()])

    assert books(direct, uid).bucket is None


def test_a_schema_and_tools_are_passed_on_and_calls_come_back(run: Run, gemini: StandIn) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    tools = [{"functionDeclarations": [{"name": "look_up", "description": "Looks it up."}]}]
    call = {"functionCall": {"id": "c1", "name": "look_up", "args": {"what": "fire"}}, "thoughtSignature": "c2ln"}
    gemini.script(
        {"raw": {"candidates": [{"content": {"parts": [call]}, "finishReason": "STOP"}], "usageMetadata": usage(9, 4)}}
    )

    answer = run(responseSchema=schema, tools=tools)

    assert answer["functionCalls"] == [
        {"name": "look_up", "args": {"what": "fire"}, "id": "c1", "thoughtSignature": "c2ln"}
    ]
    assert answer["content"] == {"role": "model", "parts": [call]}
    (request,) = gemini.log()
    assert request["body"]["generationConfig"]["responseJsonSchema"] == schema
    assert request["body"]["generationConfig"]["responseMimeType"] == "application/json"
    assert request["body"]["tools"] == tools


def test_a_tool_that_the_api_does_not_know_is_named_and_costs_nothing(
    run: Run, gemini: StandIn, direct: firestore.Client, uid: str
) -> None:
    with pytest.raises(errors.InvalidField, match="tools"):
        run(tools=[{"functionDeclarations": [{"nome": 5}]}])

    assert gemini.log() == []
    assert books(direct, uid).bucket is None


TOOLS = [{"functionDeclarations": [{"name": "look_up"}]}]
CALL = {"functionCall": {"id": "1", "name": "look_up", "args": {"what": "fire"}}}
RESPONSE = {"functionResponse": {"id": "1", "name": "look_up", "response": {"found": "a strip"}}}
ASK = {"role": "user", "parts": [{"text": "What is it?"}]}


def signed_by(part: dict[str, Any]) -> dict[str, Any]:
    return CALL | {"thoughtSignature": gemini_signature.sign(part)}


def conversation(call: dict[str, Any]) -> list[dict[str, Any]]:
    return [ASK, {"role": "model", "parts": [call]}, {"role": "user", "parts": [RESPONSE]}]


@pytest.mark.parametrize("call", [CALL, signed_by({"text": "of another"})], ids=["missing", "changed"])
def test_a_call_without_its_signature_is_the_callers_mistake_and_free(
    call: dict[str, Any], run: Run, counting: CountingLedger, direct: firestore.Client, uid: str
) -> None:
    with pytest.raises(errors.ModelInput):
        run(prompt=None, contents=conversation(call), tools=TOOLS)

    assert_settled_once(counting, direct, uid, 0)


def test_a_call_with_its_signature_is_answered(run: Run, gemini: StandIn) -> None:
    contents = conversation(signed_by(CALL))
    config = {"functionCallingConfig": {"mode": "AUTO"}}

    answer = run(prompt=None, contents=contents, tools=TOOLS, toolConfig=config, thinkingLevel="low")

    assert answer["text"]
    (request,) = gemini.log()
    assert request["body"]["contents"] == contents
    assert request["body"]["toolConfig"] == config
    assert list(request["body"]["generationConfig"]["thinkingConfig"].values()) == ["LOW"]


def test_a_call_of_an_earlier_turn_needs_no_signature(run: Run) -> None:
    assert run(prompt=None, contents=[*conversation(CALL), ASK], tools=TOOLS)["text"]


def test_signatures_are_counted_in_the_hold(run: Run, direct: firestore.Client, uid: str, gemini: StandIn) -> None:
    gemini.script({"text": "hello", "usage": None})
    call = signed_by(CALL)

    run(prompt=None, contents=conversation(call), tools=TOOLS)

    assert books(direct, uid).charged > len(call["thoughtSignature"]) + 100


FIELDS: dict[str, dict[str, Any]] = {
    "systemInstruction": {"system": "be kind"},
    "tools": {"tools": TOOLS},
    "responseJsonSchema": {"responseSchema": {"type": "object"}},
}


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_that_v1_does_not_know_is_ours_free_and_the_log_names_the_knob(
    field: str,
    run: Run,
    counting: CountingLedger,
    gemini: StandIn,
    direct: firestore.Client,
    uid: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    gemini.script({"refuses": [field]})

    with pytest.raises(errors.ModelUnavailable):
        run(**FIELDS[field])

    assert_settled_once(counting, direct, uid, 0)
    event = json.loads(capsys.readouterr().out)
    assert (event["message"], event["severity"], event["ours"]) == ("firebreak.model", "ERROR", True)
    assert f"GEMINI_API_VERSION must name a version of the API that knows {field}" in event["cause"]


def test_another_version_of_the_api_knows_them(run: Run, gemini: StandIn) -> None:
    gemini.script({"refuses": ["tools"]})
    newer = Gemini(Developer(api_key="local"), host=gemini.url.removeprefix("http://"), version="v1beta")

    assert run(gemini=newer, tools=TOOLS)["text"]
    (request,) = gemini.log()
    assert request["path"].startswith("/v1beta/models/")


def test_a_price_weighs_estimate_and_charge(
    run: Run, counting: CountingLedger, gemini: StandIn, direct: firestore.Client, uid: str
) -> None:
    gemini.script({"text": "hello", "usage": usage(10, 7)})

    answer = run(price=Price(short=Weights(output=5_000)))

    assert books(direct, uid).calls["r"]["estimated"] == 26 + 500
    assert answer["charged"] == 10 + 35
    assert_settled_once(counting, direct, uid, 45)


@pytest.mark.parametrize(
    ("told", "event"),
    [
        ({"promptTokenCount": 3, "candidatesTokenCount": 5, "totalTokenCount": 90}, "firebreak.usage"),
        ({"promptTokenCount": -3, "totalTokenCount": 9}, "firebreak.usage"),
        ({"promptTokenCount": 60, "candidatesTokenCount": 5, "totalTokenCount": 65}, "firebreak.prompt_bound"),
    ],
)
def test_usage_that_does_not_fit_is_logged(
    told: dict[str, int], event: str, run: Run, gemini: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    gemini.script({"text": "hello", "usage": told})

    run()

    assert [json.loads(line)["message"] for line in capsys.readouterr().out.splitlines()] == [event]


def test_a_pause_by_a_spend_cap_is_told_apart_from_a_rate_limit(run: Run, gemini: StandIn) -> None:
    message = "Your project has exceeded its monthly spending cap."
    gemini.script({"status": 429, "error": {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED"}})

    with pytest.raises(errors.ModelPaused) as refused:
        run()

    assert refused.value.details == {"reason": "model-paused", "retryAfterSeconds": 60, "charged": 0}


def assert_settled_once(ledger: CountingLedger, client: firestore.Client, uid: str, charged: int) -> None:
    seen = books(client, uid)
    assert ledger.settles == 1
    assert [(call["status"], call["actual"]) for call in seen.calls.values()] == [("settled", charged)]
    assert seen.bucket is not None
    assert LIMIT - charged <= seen.bucket["tokens"] <= LIMIT - charged + 5
    assert seen.bucket["lifetime"]["charged"] == charged
