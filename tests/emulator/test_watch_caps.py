"""The watch over the spend caps, against the billing stand-in and the real store."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.cloud import firestore

from firebreak.budgets.caps_watch import TRIES, CapsApi, watch
from firebreak.errors import StoreUnavailable
from firebreak.metering.meter import AlreadyMetered, metered
from firebreak.switch import change
from firebreak.switch.change import Reset, Trip
from scripts.local.client import client_at, metered_at
from scripts.local.environment import write_credentials
from scripts.local.layout import PROJECT, Layout
from scripts.local.stack import Stack
from scripts.local.wire import call
from tests.conftest import StandIn
from tests.e2e.budgets import ACCOUNT, Budgets
from tests.emulator.switch.hand import Hand
from tests.fault_proxy import Fault, FaultProxy, Way
from tests.unit.test_billing_rules import CAP

GEMINI, AGENT_PLATFORM, RUN = "services/AEFD-7695-64FA", "services/C7E2-9256-1C43", "services/152E-C115-5142"
AMOUNT = 20
LIFT = {"spendCap": {"inputState": "AWAITING_NEXT_PERIOD"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The world of a test: what is spent, which caps stand and are on record, and what the watch makes of it."""

    store: firestore.Client
    billing: StandIn
    budgets: Budgets
    client: firestore.Client

    def run(self, *, get_s: float = 10) -> None:
        """Let the watch run once, as a new instance, through the fault proxy; its pauses take no time."""
        clock = Hand().clock
        watch(self.client, CapsApi(host=self.billing.url.removeprefix("http://"), get_s=get_s, clock=clock), clock)

    def tell(self, what: str, **fields: object) -> None:
        answer = call("POST", f"{self.billing.url}/_billing/{what}", fields)
        assert answer.status == 200, answer.body

    def provision(self, key: str, service: str, scope: str = "gemini") -> str:
        """Make a cap and write it down, as provisioning does."""
        body = CAP | {"budgetFilter": CAP["budgetFilter"] | {"services": [service]}}
        name = str(self.budgets.create(body)["name"])
        entry = {"intent": "keep", "name": name, "service": service, "scope": scope}
        self.store.collection("ops").document("caps").set({"caps": {key: entry}}, merge=True)
        return name

    def spend(self, amount: float, service: str = GEMINI) -> None:
        self.tell("spend", project=PROJECT, service=service.removeprefix("services/"), amount=amount)

    def lift(self, name: str) -> None:
        assert self.budgets.patch(name, LIFT, "spendCap.inputState").status_code == 200

    def on_record(self, key: str) -> dict[str, Any]:
        fields = self.store.collection("ops").document("caps").get().to_dict() or {}
        return dict(fields["caps"][key])

    def tripped(self) -> set[tuple[str, str]]:
        return {(trip.scope, trip.owner) for trip in change.read(self.store, timeout_s=5).trips}

    def changes(self) -> list[str]:
        log = self.store.collection("ops").document("changes").collection("log").order_by("at").get()
        return [str(record.get("what")) for record in log]

    def asked(self) -> int:
        return len(self.billing.log("get"))


@pytest.fixture
def database() -> str:
    return f"caps-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def scene(
    stack: Stack,
    faults: FaultProxy,
    firestore_host: str,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[Scene]:
    layout = Layout()
    write_credentials(layout)
    account = json.loads(layout.service_account.read_text()) | {"token_uri": f"{stack.standins_url}/token"}
    (tmp_path / "account.json").write_text(json.dumps(account))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
    billing = StandIn(url=stack.standins_url, service="billing")
    billing.reset()
    scene = Scene(
        store=client_at(firestore_host, database=database),
        billing=billing,
        budgets=Budgets(stack.standins_url),
        client=metered_at(faults.address, database=database).guards(),
    )
    scene.tell("flaky", reconcilingViews=0)
    faults.clear()
    yield scene
    billing.reset()


def events(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [line for line in lines if line["message"] == "firebreak.cap"]


def test_an_enforced_cap_trips_and_a_lifted_one_resets(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    name = scene.provision("gemini", GEMINI)
    scene.run()
    assert (scene.tripped(), scene.on_record("gemini")["outputState"]) == (set(), "CONFIGURED")

    scene.spend(AMOUNT + 1)
    scene.run()
    assert (scene.tripped(), scene.on_record("gemini")["outputState"]) == ({("gemini", "caps")}, "ENFORCED")

    scene.lift(name)
    scene.run()
    assert (scene.tripped(), scene.on_record("gemini")["outputState"]) == (set(), "AWAITING_NEXT_PERIOD")
    assert scene.changes() == ["trip", "reset"]
    assert [(e["severity"], e.get("after"), e.get("change")) for e in events(capsys)] == [
        ("WARNING", "CONFIGURED", None),
        ("WARNING", "ENFORCED", None),
        ("WARNING", None, "trip"),
        ("WARNING", "AWAITING_NEXT_PERIOD", None),
        ("WARNING", None, "reset"),
    ]


def test_a_trip_says_why_in_words_for_users(scene: Scene) -> None:
    scene.provision("gemini", GEMINI)
    scene.spend(AMOUNT + 1)
    scene.run()

    (trip,) = change.read(scene.store, timeout_s=5).trips
    assert (trip.reason, trip.by, trip.until_us) == ("A spend cap of the app was reached.", "watch_caps", None)


def test_a_state_that_stays_is_seen_and_changes_nothing(scene: Scene) -> None:
    scene.provision("gemini", GEMINI)
    scene.spend(AMOUNT + 1)
    scene.run()
    before = scene.on_record("gemini")
    scene.run()
    after = scene.on_record("gemini")

    assert scene.changes() == ["trip"]
    assert after["seenAt"] > before["seenAt"]
    assert after["changedAt"] == before["changedAt"]


def test_what_provisioning_wrote_stays(scene: Scene) -> None:
    name = scene.provision("agent-platform", AGENT_PLATFORM)
    scene.run()

    kept = {"intent": "keep", "name": name, "service": AGENT_PLATFORM, "scope": "gemini"}
    assert kept.items() <= scene.on_record("agent-platform").items()


def test_a_scope_waits_for_all_its_caps(scene: Scene) -> None:
    names = scene.provision("gemini", GEMINI), scene.provision("agent-platform", AGENT_PLATFORM)
    scene.spend(AMOUNT + 1, GEMINI)
    scene.spend(AMOUNT + 1, AGENT_PLATFORM)
    scene.run()

    scene.lift(names[0])
    scene.run()
    assert scene.tripped() == {("gemini", "caps")}
    scene.lift(names[1])
    scene.run()
    assert scene.tripped() == set()


def test_a_cap_of_cloud_run_trips_everything(scene: Scene) -> None:
    scene.provision("run", RUN, "all")
    scene.spend(AMOUNT + 1, RUN)
    scene.run()

    assert scene.tripped() == {("all", "caps")}


def test_the_operators_own_trip_is_left_alone(scene: Scene) -> None:
    name = scene.provision("gemini", GEMINI)
    mine = Trip(scope="gemini", owner="operator", reason="mine", by="ann")
    change.apply(scene.store, [mine], timeout_s=10)
    scene.spend(AMOUNT + 1)
    scene.run()
    assert scene.tripped() == {("gemini", "operator"), ("gemini", "caps")}

    scene.lift(name)
    scene.run()
    assert scene.tripped() == {("gemini", "operator")}


def test_a_cap_that_is_still_enforced_trips_again_what_an_operator_has_reset(scene: Scene) -> None:
    scene.provision("gemini", GEMINI)
    scene.spend(AMOUNT + 1)
    scene.run()
    change.apply(scene.store, [Reset(scope=None, owner="caps", reason="", by="")], timeout_s=10)
    scene.run()

    assert scene.tripped() == {("gemini", "caps")}


def test_a_404_now_and_then_is_tried_again_within_the_run(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.provision("gemini", GEMINI)
    scene.spend(AMOUNT + 1)
    scene.tell("flaky", getNotFound=TRIES - 1)
    before = scene.asked()
    scene.run()

    assert scene.tripped() == {("gemini", "caps")}
    assert scene.asked() - before == TRIES
    assert all("unreadable" not in event for event in events(capsys))


# What the API answers, and what the log says of it; only a 404 is asked for again.
UNREADABLE: dict[str, tuple[dict[str, Any], str]] = {
    "404": ({"status": 404}, "HTTP 404"),
    "403": ({"status": 403}, "HTTP 403"),
    "503": ({"status": 503}, "HTTP 503"),
    "dropped": ({"dropAfter": "nothing"}, "ConnectionError"),
    "junk": ({"body": "<html>"}, "JSONDecodeError"),
    "no object": ({"body": "[]"}, "not a JSON object"),
    "no cap": ({"body": "{}"}, "not a spend cap"),
    "no known state": ({"body": '{"spendCap": {"outputState": "NEW"}}'}, "in no state that is known"),
}


def unreadable(how: str) -> list[dict[str, Any]]:
    return [{"for": "get"} | UNREADABLE[how][0]] * (TRIES if how == "404" else 1)


@pytest.mark.parametrize("how", UNREADABLE)
def test_a_cap_that_cannot_be_read_keeps_its_trip_and_the_log_says_so(
    scene: Scene, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = scene.provision("gemini", GEMINI)
    scene.spend(AMOUNT + 1)
    scene.run()
    scene.lift(name)
    before = scene.on_record("gemini")
    capsys.readouterr()
    scene.billing.script(*unreadable(how))

    scene.run()

    assert scene.tripped() == {("gemini", "caps")}
    assert scene.on_record("gemini") == before
    assert [(e["severity"], e["cap"], e["unreadable"]) for e in events(capsys)] == [
        ("ERROR", "gemini", UNREADABLE[how][1])
    ]


@pytest.mark.parametrize("how", UNREADABLE)
def test_a_cap_that_cannot_be_read_trips_nothing_and_the_next_run_does(scene: Scene, how: str) -> None:
    scene.provision("gemini", GEMINI)
    scene.spend(AMOUNT + 1)
    scene.billing.script(*unreadable(how))
    scene.run()
    assert scene.tripped() == set()

    scene.run()
    assert scene.tripped() == {("gemini", "caps")}


def test_an_answer_that_does_not_come_is_not_waited_for(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.provision("gemini", GEMINI)
    scene.billing.script({"for": "get", "delayMs": 60_000})
    scene.run(get_s=0.2)

    (event,) = events(capsys)
    assert event["unreadable"] in {"Late", "ReadTimeout"}


def test_caps_that_are_all_gone_do_not_hold_up_the_run_for_ever(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = {f"cap{n:02}": {"name": f"{ACCOUNT}/budgets/gone-{n}", "scope": "gemini"} for n in range(20)}
    scene.store.collection("ops").document("caps").set({"caps": gone})
    scene.run()

    told = [event["unreadable"] for event in events(capsys)]
    assert len(told) == 20
    assert told[0] == "HTTP 404"
    assert told[-1] == "no time left"


def test_one_cap_that_cannot_be_read_does_not_hide_another(scene: Scene) -> None:
    scene.provision("run", RUN, "all")
    scene.provision("gemini", GEMINI)
    scene.spend(AMOUNT + 1, RUN)
    scene.billing.script({"for": "get", "status": 403})
    scene.run()

    # In the order of their keys: gemini got the 403.
    assert scene.tripped() == {("all", "caps")}


def test_a_cap_on_its_way_is_as_it_was(scene: Scene) -> None:
    name = scene.provision("gemini", GEMINI)
    scene.run()
    scene.tell("flaky", reconcilingViews=1)
    scene.spend(AMOUNT + 1)

    scene.run()
    assert (scene.tripped(), scene.on_record("gemini")["outputState"]) == (set(), "CONFIGURED")
    scene.run()
    assert scene.tripped() == {("gemini", "caps")}

    # The answer to the lift is the first that shows it on its way.
    scene.tell("flaky", reconcilingViews=2)
    scene.lift(name)
    scene.run()
    assert scene.tripped() == {("gemini", "caps")}
    scene.run()
    assert scene.tripped() == set()


def test_a_trip_whose_cap_was_taken_off_the_record_is_reset(scene: Scene) -> None:
    scene.provision("gemini", GEMINI)
    scene.spend(AMOUNT + 1)
    scene.run()
    scene.store.collection("ops").document("caps").update({"caps.gemini": firestore.DELETE_FIELD})
    scene.run()

    assert scene.tripped() == set()


@pytest.mark.parametrize("fields", [None, {"caps": "none"}, {"caps": {"gemini": {"name": 5}}}], ids=str)
def test_without_a_record_that_can_be_read_nothing_is_changed(scene: Scene, fields: dict[str, Any] | None) -> None:
    held = Trip(scope="gemini", owner="caps", reason="", by="")
    change.apply(scene.store, [held], timeout_s=10)
    if fields is not None:
        scene.store.collection("ops").document("caps").set(fields)
    scene.run()

    assert scene.tripped() == {("gemini", "caps")}
    assert scene.asked() == 0


def test_an_entry_whose_budget_is_not_made_yet_is_passed_over(scene: Scene) -> None:
    scene.store.collection("ops").document("caps").set({"caps": {"gemini": {"intent": "create", "service": GEMINI}}})
    scene.run()

    assert scene.asked() == 0
    assert scene.on_record("gemini") == {"intent": "create", "service": GEMINI}


@pytest.mark.parametrize("method", ["Commit", "BatchGetDocuments"])
@pytest.mark.parametrize("skip", [0, 1, 2])
@pytest.mark.parametrize("way", list(Way), ids=lambda way: way.name)
def test_it_trips_once_whatever_fails_once(scene: Scene, faults: FaultProxy, way: Way, skip: int, method: str) -> None:
    scene.provision("gemini", GEMINI)
    scene.spend(AMOUNT + 1)
    faults.plan(Fault(method, way, skip=skip))

    scene.run()
    faults.release()

    assert scene.tripped() == {("gemini", "caps")}
    assert scene.on_record("gemini")["outputState"] == "ENFORCED"
    assert scene.changes() == ["trip"]


def test_provisioning_in_between_is_not_overwritten(scene: Scene, faults: FaultProxy) -> None:
    """The entry goes while the watch is about to write to it: no stub of it comes back."""
    scene.provision("gemini", GEMINI)
    scene.provision("run", RUN, "all")

    def destroy() -> None:
        scene.store.collection("ops").document("caps").update({"caps.run": firestore.DELETE_FIELD})

    faults.plan(Fault("Commit", Way.BEFORE, first=destroy))
    scene.run()

    fields = scene.store.collection("ops").document("caps").get().to_dict() or {}
    assert set(fields["caps"]) == {"gemini"}


def test_if_the_store_does_not_answer_the_run_fails_and_changes_nothing(scene: Scene, faults: FaultProxy) -> None:
    scene.provision("gemini", GEMINI)
    scene.spend(AMOUNT + 1)
    faults.plan(Fault("Commit", Way.BEFORE, grpc.StatusCode.UNAVAILABLE, times=1_000))

    with pytest.raises(StoreUnavailable):
        scene.run()

    faults.clear()
    assert scene.tripped() == set()
    assert "outputState" not in scene.on_record("gemini")


def test_it_does_not_run_inside_a_request(scene: Scene) -> None:
    with metered(reads=1, writes=1), pytest.raises(AlreadyMetered):
        scene.run()


def test_without_credentials_a_cap_cannot_be_read(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.provision("gemini", GEMINI)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "nowhere.json"))
    scene.run()

    assert [e["unreadable"] for e in events(capsys)] == ["DefaultCredentialsError"]
