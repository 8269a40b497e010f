"""A tool conversation through the official web SDK: the app sends each turn of the model back as it came."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scripts.clients.caller import call, of_kind
from scripts.clients.client import Client
from scripts.demo.records import Records
from scripts.local.stack import Stack
from scripts.local.standins import gemini_signature
from tests.conftest import StandIn
from tests.e2e.test_stream_clients import find_browser

ASK = {"role": "user", "parts": [{"text": "How wide is a firebreak here, as of now?"}]}
TOOLS = [{"functionDeclarations": [{"name": "look_up", "parameters": {"type": "object"}}, {"name": "now"}]}]
CALLING = {"functionCallingConfig": {"mode": "VALIDATED", "allowedFunctionNames": ["look_up", "now"]}}
RESPONSES = {"look_up": {"metres": 9, "notes": [None, "dry"]}, "now": {}}
SOUGHT = {"functionCall": {"id": "call-1", "name": "look_up", "args": {"what": "width"}}}
# As on the wire: no `args`, where there are none.
TIMED = {"functionCall": {"id": "call-2", "name": "now"}}
AGAIN = {"functionCall": {"id": "call-1", "name": "look_up", "args": {"what": "season", "dry": True}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """Where the client runs, and whether it streams."""

    browser: Path | None
    stream: bool


@pytest.fixture(params=["node-call", "node-stream", "chromium-stream"])
def platform(request: pytest.FixtureRequest) -> Platform:
    where, how = request.param.split("-")
    return Platform(browser=find_browser() if where == "chromium" else None, stream=how == "stream")


def signed(part: dict[str, Any]) -> dict[str, Any]:
    return part | {"thoughtSignature": gemini_signature.sign(part)}


def responded(*parts: dict[str, Any]) -> dict[str, Any]:
    """The turn of the user that answers these calls."""
    calls = [part["functionCall"] for part in parts]
    answers = [{"id": call["id"], "name": call["name"], "response": RESPONSES[call["name"]]} for call in calls]
    return {"role": "user", "parts": [{"functionResponse": answer} for answer in answers]}


def joined(contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with neighbouring texts as one: a stream may cut them anywhere."""
    return [content | {"parts": _joined(content["parts"])} for content in contents]


def _joined(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    whole: list[dict[str, Any]] = []
    for part in parts:
        if whole and whole[-1].keys() == part.keys() == {"text"}:
            whole[-1] = {"text": whole[-1]["text"] + part["text"]}
        else:
            whole.append(part)
    return whole


def test_three_turns_with_tools_end_in_an_answer(stack: Stack, gemini: StandIn, platform: Platform) -> None:
    gemini.script(
        {"text": "Let me look it up.", "calls": [SOUGHT["functionCall"], TIMED["functionCall"]]},
        {"calls": [AGAIN["functionCall"]]},
        {"text": "Nine metres.", "signText": True},
    )
    data = {"contents": [ASK], "tools": TOOLS, "toolConfig": CALLING, "thinkingLevel": "low"}
    client = Client(backend=stack, browser=platform.browser, stream=platform.stream, data=[data], responses=RESPONSES)

    events = call(client)

    first, second, third = (event["result"] for event in of_kind(events, "answered"))
    assert of_kind(events, "refused") == []
    assert first["functionCalls"] == [
        SOUGHT["functionCall"] | {"thoughtSignature": gemini_signature.sign(SOUGHT)},
        TIMED["functionCall"] | {"args": {}},
    ]
    assert first["text"] == "Let me look it up."
    assert second["functionCalls"] == [AGAIN["functionCall"] | {"thoughtSignature": gemini_signature.sign(AGAIN)}]
    assert third["text"] == "Nine metres."
    assert "functionCalls" not in third
    assert joined([third["content"]])[0]["parts"][-1] == signed({"text": ""})
    asked = [entry["body"] for entry in gemini.log()]
    assert joined(asked[2]["contents"]) == [
        ASK,
        {"role": "model", "parts": [{"text": "Let me look it up."}, signed(SOUGHT), TIMED]},
        responded(SOUGHT, TIMED),
        {"role": "model", "parts": [signed(AGAIN)]},
        responded(AGAIN),
    ]
    assert asked[2]["contents"][:3] == asked[1]["contents"]
    assert [body["toolConfig"] for body in asked] == [CALLING] * 3
    for result in (first, second, third):
        assert result["charged"] == result["usage"]["totalTokens"] > 0


@pytest.mark.parametrize("stream", [False, True], ids=["call", "stream"])
def test_a_call_without_its_signature_is_the_apps_mistake_and_free(stack: Stack, gemini: StandIn, stream: bool) -> None:
    other = SOUGHT | {"thoughtSignature": gemini_signature.sign(AGAIN)}
    conversations = [
        [ASK, {"role": "model", "parts": [part]}, responded(SOUGHT)] for part in (SOUGHT, other, signed(SOUGHT))
    ]
    data = [{"contents": contents, "tools": TOOLS} for contents in conversations]

    events = call(Client(backend=stack, data=data, calls=3, stream=stream))

    missing, changed = of_kind(events, "refused")
    for event in (missing, changed):
        assert event["code"] == "invalid-argument"
        assert event["details"]["reason"] == "model-input"
    (answered,) = of_kind(events, "answered")
    (signed_in,) = of_kind(events, "signed-in")
    records = Records(project=stack.project, firestore_host=stack.firestore_host)
    assert records.books(signed_in["uid"]).charged == answered["result"]["charged"]
    assert len(gemini.log()) == 3
