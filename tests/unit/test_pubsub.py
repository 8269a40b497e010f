"""A message is read from whatever comes, and a handler that raises gets it again."""

import base64
import json
import types
from typing import Any

import pytest
from cloudevents.http import CloudEvent
from hypothesis import given
from hypothesis import strategies as st

from firebreak.budgets.notice import Message
from firebreak.errors import Again, StoreUnavailable
from firebreak.guard import pubsub
from firebreak.guard.pubsub import Redeliver, on_message

NAMES = ["message", "data", "attributes", "messageId", "message_id", "publishTime", "publish_time", "subscription"]


def event(data: object, **attributes: Any) -> CloudEvent:
    given: dict[str, Any] = {"type": "t", "source": "s", "id": "e", "time": None} | attributes
    return CloudEvent(given, data)


def in_message(**fields: object) -> CloudEvent:
    return event({"message": fields, "subscription": "s"})


@pytest.mark.parametrize(
    ("number", "time"), [("messageId", "publishTime"), ("message_id", "publish_time")], ids=["camel", "snake"]
)
def test_a_message_is_read_in_either_spelling(number: str, time: str) -> None:
    fields = {number: "7", time: "2026-11-29T00:00:00.123456789Z", "data": base64.b64encode(b"x").decode()}

    found = pubsub.read(in_message(attributes={"a": "b"}, orderingKey="o", unknown={"field": 1}, **fields))

    assert found == Message(id="7", data=b"x", attributes={"a": "b"}, published_us=1_795_910_400_123_456)


def test_an_event_without_a_message_still_has_an_id_and_a_time() -> None:
    found = pubsub.read(event(None, time="2026-11-29T00:00:00Z"))

    assert found == Message(id="e", data=None, attributes={}, published_us=1_795_910_400_000_000)


def test_attributes_that_are_no_texts_are_passed_over() -> None:
    assert pubsub.read(in_message(attributes={"a": 1, "b": None, "c": ["x"], "d": "e"})).attributes == {"d": "e"}


@pytest.mark.parametrize("data", [None, 7, [], "é!", "abcde", {"a": 1}])
def test_data_that_is_no_base64_is_none(data: object) -> None:
    assert pubsub.read(in_message(data=data)).data is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(NAMES) | st.text(), inner),
    )
)
def test_whatever_the_event_holds_it_can_be_read(data: object) -> None:
    found = pubsub.read(event({"message": data, "time": data}))

    assert isinstance(found, Message)
    assert isinstance(pubsub.read(event(data, time=data)), Message)


def declared(handler: pubsub.Handler) -> pubsub.Function:
    return on_message(topic="budget-alerts", reads=1, writes=1, retry=True, memory=512, secrets=["S"])(handler)


def test_the_function_is_deployed_as_the_sdk_describes_it() -> None:
    def on_budget_alert(_: Message) -> None:
        return

    function = declared(on_budget_alert)

    endpoint: Any = vars(function)["__firebase_endpoint__"]
    assert isinstance(function, types.FunctionType)
    assert (function.__name__, endpoint.entryPoint) == ("on_budget_alert", "on_budget_alert")
    assert endpoint.eventTrigger["eventType"] == "google.cloud.pubsub.topic.v1.messagePublished"
    assert endpoint.eventTrigger["eventFilters"] == {"topic": "budget-alerts"}
    assert endpoint.eventTrigger["retry"] is True
    assert [secret["key"] for secret in endpoint.secretEnvironmentVariables] == ["S"]


def test_a_handler_that_returns_has_done_with_the_message(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Message] = []

    declared(seen.append)(in_message(messageId="7"))

    assert [message.id for message in seen] == ["7"]
    audit = json.loads(capsys.readouterr().out)
    assert (audit["message"], audit["message_id"], audit["outcome"]) == ("firebreak.request", "7", "ok")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(StoreUnavailable(), "store"), (Again(), "again"), (RuntimeError("a secret"), "internal")],
    ids=["refused", "again", "unexpected"],
)
def test_a_handler_that_raises_gets_the_message_again_and_no_log_its_words(
    error: Exception, outcome: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def handler(_: Message) -> None:
        raise error

    with pytest.raises(Redeliver) as raised:
        declared(handler)(in_message(messageId="7"))

    lines = capsys.readouterr().out
    told = [json.loads(line) for line in lines.splitlines()]
    assert raised.value.code == 500
    assert raised.value.__suppress_context__
    assert told[-1]["outcome"] == outcome
    assert [event["error"] for event in told[:-1]] == (["RuntimeError"] if outcome == "internal" else [])
    assert "a secret" not in lines
