"""`on_budget_alert` as Pub/Sub pushes to it: junk is taken, a failed action is not, and it acts once."""

import base64
import json
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import grpc
import pytest
from google.cloud import firestore

from scripts.local import wire
from scripts.local.client import client_at
from scripts.local.deployed import Deployed, deployed
from scripts.local.stack import Stack
from tests.fault_proxy import Fault, FaultProxy, Way
from tests.hook import Hook, hooked

ACCOUNT, BUDGET = "01D4EE-079462-DFD6EC", "11111111-2222-3333-4444-555555555555"
ATTRIBUTES = {"billingAccountId": ACCOUNT, "budgetId": BUDGET, "schemaVersion": "1.0"}
START = f"{datetime.now(ZoneInfo('America/Los_Angeles')):%Y-%m}-01T08:00:00Z"
NAME = "a budget's name that no log may hold"
SOURCE = "//pubsub.googleapis.com/projects/demo-firebreak/topics/budget-alerts"
CLOUD_EVENT = {"id": "1", "source": SOURCE, "type": "google.cloud.pubsub.topic.v1.messagePublished"}
BINARY = {f"ce-{name}": value for name, value in CLOUD_EVENT.items()} | {"ce-specversion": "1.0"}
STRUCTURED = {"Content-Type": "application/cloudevents+json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Alerts:
    """The function, its webhook, what can fail between it and its store, and that store."""

    server: Deployed
    hook: Hook
    proxy: FaultProxy
    store: firestore.Client

    def push(self, body: object, headers: dict[str, str] | None = None) -> int:
        """Post a message in a CloudEvent, its attributes as headers; the status."""
        headers = BINARY if headers is None else headers
        return wire.call("POST", self.server.url, body, headers=headers, timeout_s=30).status

    def trips(self) -> dict[str, Any]:
        switch = self.store.collection("ops").document("switch").get().to_dict() or {}
        trips: dict[str, Any] = switch.get("trips", {})
        return trips

    def changes(self) -> list[str]:
        log = self.store.collection("ops").document("changes").collection("log").get()
        return sorted(str((record.to_dict() or {})["what"]) for record in log)

    def documents(self) -> list[str]:
        return sorted(document.id for document in self.store.collection("budget_notices").get())

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.server.log.splitlines() if line.startswith("{")]


@contextmanager
def alerting(stack: Stack, folder: Path) -> Iterator[Alerts]:
    database = f"alerts-{uuid.uuid4().hex[:12]}"
    with hooked(folder) as hook, FaultProxy(stack.firestore_host).running() as proxy:
        env = {
            "FUNCTION_SIGNATURE_TYPE": "cloudevent",
            "FIRESTORE_EMULATOR_HOST": proxy.address,
            "BUDGET_POLICIES": f"{ACCOUNT}/{BUDGET}: 50%=tighten(50) 100%=trip(firestore)",
            "BUDGET_WEBHOOK_URL": hook.url,
            "TEST_DATABASE": database,
            "HOOK_CERTIFICATE": str(hook.certificate),
        }
        source = Path(__file__).parent / "alerts" / "main.py"
        with deployed("on_budget_alert", stack, folder / "log", env=env, source=source) as server:
            store = client_at(stack.firestore_host, database=database)
            yield Alerts(server=server, hook=hook, proxy=proxy, store=store)


@pytest.fixture(scope="module")
def shared(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alerts]:
    """For what leaves nothing behind."""
    with alerting(stack, tmp_path_factory.mktemp("alerts")) as alerts:
        yield alerts


@pytest.fixture
def alerts(stack: Stack, tmp_path: Path) -> Iterator[Alerts]:
    with alerting(stack, tmp_path) as alerts:
        yield alerts


def encoded(fields: object) -> str:
    return base64.b64encode(json.dumps(fields).encode()).decode()


def notice(*, actual: float | None = None, **more: object) -> dict[str, object]:
    fields = {"budgetDisplayName": NAME, "costAmount": 101, "costIntervalStart": START, "budgetAmount": 100}
    exceeded = {} if actual is None else {"alertThresholdExceeded": actual}
    published = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}789Z"
    return {
        "data": encoded(fields | exceeded),
        "attributes": ATTRIBUTES,
        "messageId": uuid.uuid4().hex,
        "publishTime": published,
    } | more


def enveloped(message: object) -> dict[str, object]:
    return {"message": message, "subscription": "projects/demo-firebreak/subscriptions/s"}


def structured(message: object, **more: object) -> dict[str, object]:
    return CLOUD_EVENT | {"specversion": "1.0", "data": enveloped(message)} | more


FINE = {"time": "2026-11-29T00:00:00.123456789Z"}
JUNK: dict[str, tuple[object, dict[str, str]]] = {
    "no body": (None, BINARY),
    "a list": ([1], BINARY),
    "a text": ("junk", BINARY),
    "no message": ({}, BINARY),
    "a null message": (enveloped(None), BINARY),
    "a message that is a list": (enveloped([1, 2]), BINARY),
    "an empty message": (enveloped({}), BINARY),
    "no data, attributes alone": (enveloped({"attributes": ATTRIBUTES, "messageId": "1"}), BINARY),
    "data that is a number": (enveloped({"attributes": ATTRIBUTES, "data": 7}), BINARY),
    "data that is no base64": (enveloped({"attributes": ATTRIBUTES, "data": "é!"}), BINARY),
    "data that is not JSON": (enveloped({"attributes": ATTRIBUTES, "data": "//79"}), BINARY),
    "data that is a list": (enveloped({"attributes": ATTRIBUTES, "data": encoded([1])}), BINARY),
    "data without an interval": (enveloped({"attributes": ATTRIBUTES, "data": encoded({"costAmount": 1})}), BINARY),
    "data that is deep": (
        enveloped({"attributes": ATTRIBUTES, "data": base64.b64encode(b"[" * 40_000).decode()}),
        BINARY,
    ),
    "data that is long": (enveloped({"attributes": ATTRIBUTES, "data": "A" * 8_000_000}), BINARY),
    "a threshold that is a text": (
        enveloped(
            {
                "attributes": ATTRIBUTES,
                "data": encoded({"costIntervalStart": START, "alertThresholdExceeded": "1.0"}),
            }
        ),
        BINARY,
    ),
    "attributes that are a list": (enveloped({"attributes": [1], "data": encoded({})}), BINARY),
    "attributes that are numbers": (enveloped(notice(attributes={"budgetId": 1, "billingAccountId": 2})), BINARY),
    "an anomaly notification": (
        enveloped(notice(actual=1.0, attributes={"scope": "project", "resourceName": "r", "SchemaVersion": "1.0"})),
        BINARY,
    ),
    "another budget": (enveloped(notice(actual=1.0, attributes=ATTRIBUTES | {"budgetId": "x" * 900})), BINARY),
    "another account": (enveloped(notice(actual=1.0, attributes=ATTRIBUTES | {"billingAccountId": "X"})), BINARY),
    "another schema": (enveloped(notice(actual=1.0, attributes=ATTRIBUTES | {"schemaVersion": "9"})), BINARY),
    "a year long ago": (enveloped(notice(data=encoded({"costIntervalStart": "0001-01-01T00:00:00Z"}))), BINARY),
    "structured, no data": (CLOUD_EVENT | {"specversion": "1.0"}, STRUCTURED),
    "structured, a null message": (structured(None), STRUCTURED),
    "structured, attributes alone, fine times": (structured({"attributes": ATTRIBUTES, "x": 1}, **FINE), STRUCTURED),
    "a push without a CloudEvent": (enveloped({"data": "", "messageId": "1"}), {}),
}


@pytest.mark.parametrize("kind", JUNK)
def test_junk_is_taken_told_in_the_log_and_leaves_nothing(shared: Alerts, kind: str) -> None:
    body, headers = JUNK[kind]
    before = len(shared.events())

    status = shared.push(body, headers)

    assert status == 200
    budget, audit = shared.events()[before:]
    assert (budget["message"], audit["message"]) == ("firebreak.budget", "firebreak.request")
    assert budget["outcome"] == audit["outcome"]
    assert budget["outcome"] in {"not-a-notice", "not-in-settings"}
    assert (shared.documents(), shared.changes(), shared.hook.got) == ([], [], [])


@pytest.mark.parametrize("body", [b"\xff\xfe", b"not json", b""], ids=repr)
def test_a_body_that_is_not_json_is_taken(shared: Alerts, body: bytes) -> None:
    status = raw(shared.server.url, body)

    assert status == 200


@pytest.mark.parametrize("mode", ["binary", "structured", "push"])
def test_a_notice_acts_in_every_form_it_can_come_in(alerts: Alerts, mode: str) -> None:
    unknown = {"orderingKey": "o", "deliveryAttempt": 3, "a": {"new": "field"}}
    sent = notice(actual=1.0, **unknown)
    bodies: dict[str, tuple[object, dict[str, str]]] = {
        "binary": (enveloped(sent), BINARY | {"ce-time": "2026-11-29T00:00:00.123456789Z"}),
        "structured": (structured(sent, **FINE), STRUCTURED),
        "push": (enveloped(sent), {}),
    }

    status = alerts.push(*bodies[mode])

    assert status == 200
    assert "firestore" in alerts.trips()
    assert alerts.changes() == ["tighten", "trip"]
    assert [got["body"]["threshold"] for got in alerts.hook.got] == [50, 100]
    assert [event["outcome"] for event in alerts.events()] == ["applied", "applied"]


def test_a_failed_action_is_not_taken_and_the_next_delivery_acts_once(alerts: Alerts) -> None:
    sent = enveloped(notice(actual=1.0))
    alerts.proxy.plan(Fault("Commit", Way.LOSE_REPLY, grpc.StatusCode.UNAVAILABLE, times=1_000))
    alerts.proxy.plan(Fault("BatchGetDocuments", Way.BEFORE, grpc.StatusCode.UNAVAILABLE, skip=2, times=1_000))

    first = alerts.push(sent)
    alerts.proxy.forget()
    statuses = [alerts.push(sent) for _ in range(3)]

    assert (first, statuses) == (500, [200, 200, 200])
    assert alerts.changes() == ["tighten", "trip"]
    assert [got["body"]["threshold"] for got in alerts.hook.got] == [50, 100]
    assert "Traceback" not in alerts.server.log
    assert NAME not in alerts.server.log


def test_a_store_that_is_down_is_not_taken(alerts: Alerts) -> None:
    alerts.proxy.plan(Fault("BatchGetDocuments", Way.BEFORE, grpc.StatusCode.UNAVAILABLE, times=1_000))

    assert alerts.push(enveloped(notice(actual=1.0))) == 500

    assert alerts.events()[-1]["outcome"] == "store"


def test_news_that_nobody_takes_are_delivered_again_without_a_second_action(alerts: Alerts) -> None:
    sent = enveloped(notice(actual=1.0))
    alerts.hook.statuses += [503, 200, 503]

    statuses = [alerts.push(sent) for _ in range(4)]

    assert statuses == [500, 500, 200, 200]
    audits = [event["outcome"] for event in alerts.events() if event["message"] == "firebreak.request"]
    assert audits == ["again", "again", "repeated", "repeated"]
    assert "firebreak.unhandled" not in alerts.server.log
    assert alerts.changes() == ["tighten", "trip"]
    assert [got["body"]["threshold"] for got in alerts.hook.got] == [50, 50, 100, 100]


def test_ten_deliveries_at_once_act_once(alerts: Alerts) -> None:
    sent = enveloped(notice(actual=1.0))

    def until_taken(_: int) -> int:
        end = time.monotonic() + 60
        while (status := alerts.push(sent)) != 200:
            assert time.monotonic() < end
        return status

    with ThreadPoolExecutor(10) as threads:
        assert set(threads.map(until_taken, range(10))) == {200}

    assert alerts.changes() == ["tighten", "trip"]
    assert len(alerts.documents()) == 1


def raw(url: str, body: bytes) -> int:
    """Post bytes that are no JSON."""
    connection = HTTPConnection(url.removeprefix("http://"), timeout=30)
    try:
        connection.request("POST", "/", body, BINARY | {"Content-Type": "application/json"})
        return connection.getresponse().status
    finally:
        connection.close()
