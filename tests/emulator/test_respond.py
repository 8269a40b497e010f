"""Budget notices at the real store: ten times, out of order, at once and through faults, they act once."""

import base64
import json
import random
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import grpc
import pytest
from cloudevents.http import CloudEvent
from google.cloud import firestore

from firebreak.budgets.announce import NotTold
from firebreak.budgets.notice import Message
from firebreak.budgets.respond import Responder
from firebreak.errors import StoreUnavailable
from firebreak.guard import pubsub
from firebreak.metering.meter import metered
from firebreak.settings import policies
from firebreak.switch import change
from scripts.local.client import client_at, metered_at
from tests.emulator.switch.hand import Hand
from tests.fault_proxy import Fault, FaultProxy, Way
from tests.hook import Hook, hooked

ACCOUNT, BUDGET = "01D4EE-079462-DFD6EC", "11111111-2222-3333-4444-555555555555"
OWNER = f"budget:{BUDGET}"
OTHER = "99999999-2222-3333-4444-555555555555"
POLICIES = f"{ACCOUNT}/{BUDGET}: 50%=tighten(50) 100%=trip(firestore) forecast 120%=record; {ACCOUNT}/{OTHER}"
ENOUGH_S = 30.0

# Of the period that now is in; an hour more or less is the same to the code.
NOW = datetime.now(ZoneInfo("America/Los_Angeles"))
START = f"{NOW:%Y-%m}-01T08:00:00Z"
LAST_START = f"{NOW.replace(day=1) - timedelta(days=1):%Y-%m}-01T08:00:00Z"


@pytest.fixture
def database() -> str:
    return f"budgets-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def store(firestore_host: str, database: str) -> firestore.Client:
    """Straight to the emulator, for looking."""
    client = client_at(firestore_host, database=database)
    client.collection("warm").document("up").get()
    return client


@pytest.fixture
def responder(faults: FaultProxy, database: str) -> Responder:
    """Its every RPC goes through the proxy; its pauses take no time."""
    client = client_at(faults.address, database=database)
    client.collection("warm").document("up").get()
    faults.clear()
    return Responder(client=client, budgets=policies.parse(POLICIES), webhook_url="none", clock=Hand().clock)


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[Hook]:
    with hooked(tmp_path) as running:
        yield running


def message(
    *,
    actual: float | None = None,
    forecast: float | None = None,
    cost: float | None = None,
    age_s: int = 0,
    **changes: Any,
) -> Message:
    """As Pub/Sub delivers it, `age_s` seconds after it was published; its cost is what its threshold says."""
    fields = {
        "budgetDisplayName": "Firestore",
        "costAmount": 100 * (actual or 0.01) if cost is None else cost,
        "costIntervalStart": changes.get("start", START),
        "budgetAmount": changes.get("amount", 100),
        "budgetAmountType": "SPECIFIED_AMOUNT",
        "alertThresholdExceeded": actual,
        "forecastThresholdExceeded": forecast,
        "currencyCode": "EUR",
    }
    attributes = {"billingAccountId": ACCOUNT, "budgetId": BUDGET, "schemaVersion": "1.0"}
    published = datetime.now(UTC) - timedelta(seconds=age_s)
    return delivered(
        {
            "data": base64.b64encode(json.dumps({k: v for k, v in fields.items() if v is not None}).encode()).decode(),
            "attributes": attributes | changes.get("attributes", {}),
            "messageId": changes.get("id", uuid.uuid4().hex),
            "publishTime": f"{published:%Y-%m-%dT%H:%M:%S.%f}789Z",
        }
    )


def delivered(fields: dict[str, Any]) -> Message:
    attributes = {"type": "google.cloud.pubsub.topic.v1.messagePublished", "source": "//pubsub"}
    return pubsub.read(CloudEvent(attributes, {"message": fields, "subscription": "s"}))


def records(store: firestore.Client) -> list[str]:
    """What was changed about the switch, in order."""
    found = [r.to_dict() or {} for r in store.collection("ops").document("changes").collection("log").get()]
    found.sort(key=lambda record: (record["at"], record["after"]["version"], record["what"]))
    return [f"{record['what']} {record.get('percent', record.get('scope'))}" for record in found]


def trips(store: firestore.Client) -> set[tuple[str, str]]:
    return {(trip.scope, trip.owner) for trip in change.read(store, timeout_s=ENOUGH_S).trips}


def notices(store: firestore.Client) -> dict[str, dict[str, Any]]:
    return {notice.id: notice.to_dict() or {} for notice in store.collection("budget_notices").get()}


def notice(store: firestore.Client) -> dict[str, Any]:
    (fields,) = notices(store).values()
    return fields


def deliver(responder: Responder, sent: Message, *, times: int = 20) -> int:
    """As Pub/Sub does: again until it is taken; the number of deliveries."""
    for number in range(1, times):
        try:
            responder.respond(sent)
        except (StoreUnavailable, NotTold):
            continue
        return number
    raise AssertionError("it was never taken")


def events(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_routine_notice_is_recorded_and_changes_nothing(responder: Responder, store: firestore.Client) -> None:
    responder.respond(message(cost=12.34))

    fields = notice(store)
    assert {name: fields[name] for name in ("account", "budget", "name", "period", "costMicros", "budgetMicros")} == {
        "account": ACCOUNT,
        "budget": BUDGET,
        "name": "Firestore",
        "period": START[:7],
        "costMicros": 12_340_000,
        "budgetMicros": 100_000_000,
    }
    assert (fields["currency"], fields["applied"], list(fields["points"].values())) == ("EUR", {}, [12_340_000])
    assert timedelta(0) <= datetime.now(UTC) - fields["asOf"] < timedelta(minutes=5)
    assert fields["start"] < datetime.now(UTC) < fields["end"]
    assert fields["expireAt"] - fields["end"] == timedelta(days=730)
    assert records(store) == []


def test_a_threshold_trips_the_switch_until_the_end_of_the_period(
    responder: Responder, store: firestore.Client
) -> None:
    sent = message(actual=1.0, cost=101)
    responder.respond(sent)

    state = change.read(store, timeout_s=ENOUGH_S)
    fields = notice(store)
    (trip,), (tightening,) = state.trips, state.tightened
    assert (trip.scope, trip.owner, trip.by) == ("firestore", OWNER, f"budget {BUDGET}, actual 100%")
    assert (tightening.owner, tightening.percent) == (OWNER, 50)
    end_us = round(fields["end"].timestamp()) * 1_000_000
    assert (trip.until_us, tightening.until_us) == (end_us, end_us)
    assert records(store) == ["tighten 50", "trip firestore"]
    assert {key: (done["action"], done["message"], done["told"]) for key, done in fields["applied"].items()} == {
        "actual 50%": ("tighten(50)", sent.id, "nobody"),
        "actual 100%": ("trip(firestore)", sent.id, "nobody"),
    }


def test_no_amount_and_no_name_is_shown_to_clients(responder: Responder, store: firestore.Client) -> None:
    responder.respond(message(actual=1.0, cost=101))

    (trip,) = change.read(store, timeout_s=ENOUGH_S).trips
    assert trip.reason == "The app's budget for this period is used up."


def test_ten_deliveries_out_of_order_act_once(responder: Responder, store: firestore.Client) -> None:
    sent = [message(actual=a, cost=100 * a, age_s=round(200 - 100 * a)) for a in (0.3, 0.5, 0.9, 1.0)]
    sent.append(message(forecast=1.2, cost=40, age_s=180))
    delivery = sent * 10
    random.Random(7).shuffle(delivery)

    for each in delivery:
        responder.respond(each)

    assert sorted(records(store)) == ["tighten 50", "trip firestore"]
    fields = notice(store)
    assert {"actual 50%", "actual 100%", "forecast 120%"} <= set(fields["applied"])
    assert fields["costMicros"] == 100_000_000


def test_ten_threads_at_once_act_once(firestore_host: str, database: str, store: firestore.Client) -> None:
    """Two instances, each with a client of its own and the real pauses."""
    instances = [
        Responder(
            client=client_at(firestore_host, database=database), budgets=policies.parse(POLICIES), webhook_url="none"
        )
        for _ in range(2)
    ]
    sent = [message(actual=a) for a in (0.5, 1.0)]

    with ThreadPoolExecutor(10) as threads:
        jobs = [threads.submit(deliver, instances[n % 2], sent[n // 2 % 2]) for n in range(20)]
        assert all(job.result() for job in jobs)

    assert sorted(records(store)) == ["tighten 50", "trip firestore"]
    assert trips(store) == {("firestore", OWNER)}


def test_a_routine_notice_that_was_overtaken_forgets_nothing(
    responder: Responder, store: firestore.Client, faults: FaultProxy
) -> None:
    """Between its read and its commit another instance acts, and an operator takes that back."""

    def overtake() -> None:
        faults.forget()
        replace(responder, client=store).respond(message(actual=1.0, cost=100))
        change.apply(store, [change.Reset(scope=None, owner=None, reason="we pay", by="ann")], timeout_s=ENOUGH_S)

    sent = message(cost=30, age_s=60)
    responder.respond(message(cost=20, age_s=90))
    faults.plan(Fault("Commit", Way.BEFORE, first=overtake))
    responder.respond(sent)
    responder.respond(message(actual=1.0, cost=100))

    assert records(store).count("trip firestore") == 1
    assert trips(store) == set()
    assert notice(store)["costMicros"] == 100_000_000


def test_marking_what_was_told_forgets_nothing_either(
    responder: Responder, store: firestore.Client, faults: FaultProxy, hook: Hook
) -> None:
    """While the first threshold is told, another instance acts on the second."""
    told = replace(responder, webhook_url=hook.url, http=hook.client())
    faults.plan(
        Fault(
            "Commit",
            Way.BEFORE,
            skip=1,
            first=lambda: replace(responder, client=store).respond(message(actual=1.0)),
        )
    )

    told.respond(message(actual=0.5))

    assert {key: done["told"] for key, done in notice(store)["applied"].items()} == {
        "actual 50%": "told",
        "actual 100%": "nobody",
    }


@pytest.mark.parametrize("way", [Way.BEFORE, Way.LOSE_REPLY, Way.LATE, Way.TWICE], ids=lambda way: way.name)
@pytest.mark.parametrize(
    "status",
    [
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.PERMISSION_DENIED,
    ],
    ids=lambda status: status.name,
)
@pytest.mark.parametrize("place", [("Commit", 0), ("BatchGetDocuments", 0), ("BatchGetDocuments", 1)], ids=str)
@pytest.mark.parametrize("times", [1, 1_000], ids=["once", "throughout"])
def test_whatever_fails_it_is_done_once_in_the_end(
    responder: Responder,
    store: firestore.Client,
    faults: FaultProxy,
    way: Way,
    status: grpc.StatusCode,
    place: tuple[str, int],
    times: int,
) -> None:
    """One RPC fails, or all of its kind until the delivery is given up; the next deliveries meet no fault."""
    method, skip = place
    sent = message(actual=1.0)
    faults.plan(Fault(method, way, status, skip=skip, times=times))
    try:
        responder.respond(sent)
    except StoreUnavailable:
        faults.forget()
    faults.forget()

    deliver(responder, sent)
    faults.release()
    deliver(responder, sent)

    assert records(store) == ["tighten 50", "trip firestore"]
    assert set(notice(store)["applied"]) == {"actual 50%", "actual 100%"}


def test_a_late_commit_after_the_redelivery_acted_is_refused(
    responder: Responder, store: firestore.Client, faults: FaultProxy
) -> None:
    """The first delivery's commits are still on their way when the operator has already taken the trip back."""
    sent = message(actual=1.0)
    faults.plan(Fault("Commit", Way.LATE, grpc.StatusCode.UNAVAILABLE, times=1_000))
    with pytest.raises(StoreUnavailable):
        responder.respond(sent)
    faults.forget()
    responder.respond(sent)
    reset = change.Reset(scope=None, owner=None, reason="we pay", by="ann")
    change.apply(store, [reset], timeout_s=ENOUGH_S)

    faults.release()

    assert trips(store) == set()
    assert records(store).count("trip firestore") == 1


def test_an_operators_reset_stays(responder: Responder, store: firestore.Client) -> None:
    responder.respond(message(actual=1.0))
    change.apply(store, [change.Reset(scope=None, owner=None, reason="we pay", by="ann")], timeout_s=ENOUGH_S)

    for _ in range(3):
        responder.respond(message(actual=1.0))
        responder.respond(message(actual=0.9))

    assert trips(store) == set()


def test_a_raised_budget_trips_again_after_the_reset(responder: Responder, store: firestore.Client) -> None:
    responder.respond(message(actual=1.0))
    change.apply(store, [change.Reset(scope=None, owner=None, reason="raised", by="ann")], timeout_s=ENOUGH_S)

    for _ in range(3):
        responder.respond(message(actual=0.5, cost=101, amount=200))
        responder.respond(message(actual=1.0, cost=100))
    assert trips(store) == set()

    for _ in range(3):
        responder.respond(message(actual=1.0, cost=201, amount=200))

    assert trips(store) == {("firestore", OWNER)}
    assert records(store).count("trip firestore") == 2
    assert notice(store)["applied"]["actual 100%"]["budgetMicros"] == 200_000_000


def test_a_notice_that_contradicts_itself_is_recorded_and_trips_nothing(
    responder: Responder, store: firestore.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    responder.respond(message(actual=1.0, cost=12))

    (event,) = events(capsys)
    assert (event["severity"], event["outcome"]) == ("WARNING", "contradictory")
    assert (notice(store)["costMicros"], notice(store)["applied"], records(store)) == (12_000_000, {}, [])


def test_a_trip_of_a_custom_period_lasts_until_that_period_ends(responder: Responder, store: firestore.Client) -> None:
    first, last = f"{NOW - timedelta(days=40):%Y-%m-%d}", f"{NOW + timedelta(days=100):%Y-%m-%d}"
    custom = policies.parse(f"{ACCOUNT}/{BUDGET} {first}..{last}: 100%=trip(all)")

    replace(responder, budgets=custom).respond(message(actual=1.0, start=f"{first}T08:00:00Z"))

    (trip,) = change.read(store, timeout_s=ENOUGH_S).trips
    fields = notice(store)
    assert trip.until_us == round(fields["end"].timestamp()) * 1_000_000
    assert f"{fields['end'] - timedelta(days=1):%Y-%m-%d}" == last
    assert set(notices(store)) == {f"{BUDGET}:{first}..{last}"}


@pytest.mark.parametrize(("actual", "severity"), [(1.0, "WARNING"), (None, "INFO")])
def test_a_notice_of_a_period_that_is_over_is_a_warning_at_once_if_it_is_above_a_threshold(
    responder: Responder, capsys: pytest.CaptureFixture[str], actual: float | None, severity: str
) -> None:
    """The first of a quarter's months has just ended: whoever reads the log hears of it now."""
    responder.respond(message(actual=actual, start=LAST_START, age_s=31 * 86_400))

    (event,) = events(capsys)
    assert (event["severity"], event["outcome"]) == (severity, "period-over")


def test_a_notice_outside_a_custom_period_leaves_a_warning_and_no_document(
    responder: Responder, store: firestore.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    custom = policies.parse(f"{ACCOUNT}/{BUDGET} 2020-01-01..2020-06-30: 100%=trip(all)")

    replace(responder, budgets=custom).respond(message(actual=1.0))

    (event,) = events(capsys)
    assert (event["severity"], event["outcome"]) == ("WARNING", "period-unknown")
    assert "BUDGET_POLICIES" in event["why"]
    assert notices(store) == {}


def test_a_store_that_is_down_raises_so_that_it_is_delivered_again(
    responder: Responder, faults: FaultProxy, capsys: pytest.CaptureFixture[str]
) -> None:
    faults.plan(Fault("BatchGetDocuments", Way.BEFORE, grpc.StatusCode.UNAVAILABLE, times=1_000))

    with pytest.raises(StoreUnavailable):
        responder.respond(message(actual=1.0))

    (event,) = events(capsys)
    assert (event["message"], event["step"], event["error"]) == ("firebreak.store", "notice", "ServiceUnavailable")


@pytest.mark.parametrize("document", [f"budget_notices/{BUDGET}:{START[:7]}", "ops/switch"])
def test_a_document_that_makes_no_sense_raises_and_nothing_is_done(
    responder: Responder, store: firestore.Client, document: str
) -> None:
    store.document(document).set({"trips": "none", "applied": 7})

    with pytest.raises(StoreUnavailable):
        responder.respond(message(actual=1.0))

    assert records(store) == []


@pytest.mark.parametrize(
    "attributes", [{"budgetId": OTHER[:-1] + "6"}, {"billingAccountId": "FFFFFF-079462-DFD6EC"}, {"budgetId": ""}]
)
def test_a_stranger_leaves_a_line_in_the_log_and_no_document(
    responder: Responder,
    store: firestore.Client,
    faults: FaultProxy,
    capsys: pytest.CaptureFixture[str],
    attributes: dict[str, str],
) -> None:
    for _ in range(5):
        responder.respond(message(actual=1.0, attributes=attributes))

    assert faults.calls == {}
    assert notices(store) == {}
    found = events(capsys)
    assert len(found) == 5
    assert {event["outcome"] for event in found} <= {"not-in-settings", "not-a-notice"}


def test_who_knows_the_budget_cannot_fill_the_store_either(responder: Responder, store: firestore.Client) -> None:
    years = [f"{year:04}-01-01T08:00:00Z" for year in (1, 1970, 2000, 2025, 2027, 9999)]

    for start in years:
        for n in range(3):
            responder.respond(message(actual=1.0 + n / 7, start=start))

    assert notices(store) == {}
    assert records(store) == []


def test_a_repeated_notice_costs_one_read(responder: Responder, faults: FaultProxy) -> None:
    sent = message(actual=1.0)
    responder.respond(sent)
    faults.clear()

    responder.respond(sent)

    assert faults.calls == {"BatchGetDocuments": 1}


def test_a_notice_is_counted_and_bounded_like_any_request(firestore_host: str, database: str) -> None:
    responder = Responder(
        client=metered_at(firestore_host, database=database), budgets=policies.parse(POLICIES), webhook_url="none"
    )

    with metered(reads=2, writes=4) as acting:
        responder.respond(message(actual=1.0))
    with metered(reads=1, writes=1) as routine:
        responder.respond(message())

    assert (acting.reads.used, acting.writes.used) == (2, 4)
    assert (routine.reads.used, routine.writes.used) == (1, 1)


def test_a_late_message_of_the_last_period_is_recorded_and_sets_nothing_off(
    responder: Responder, store: firestore.Client
) -> None:
    responder.respond(message(actual=1.0, start=LAST_START, cost=88))

    assert notice(store)["costMicros"] == 88_000_000
    assert records(store) == []


def test_each_period_has_a_document_of_its_own(responder: Responder, store: firestore.Client) -> None:
    responder.respond(message(actual=1.0, start=LAST_START))
    responder.respond(message(actual=1.0))

    assert set(notices(store)) == {f"{BUDGET}:{LAST_START[:7]}", f"{BUDGET}:{START[:7]}"}
    assert records(store) == ["tighten 50", "trip firestore"]


def test_a_budget_whose_periods_are_longer_than_said_is_an_error(
    responder: Responder, capsys: pytest.CaptureFixture[str]
) -> None:
    responder.respond(message(actual=1.0, start="2026-01-01T08:00:00Z"))

    (event,) = events(capsys)
    assert (event["severity"], event["outcome"]) == ("ERROR", "period-over")
    assert "BUDGET_POLICIES" in event["why"]


def test_another_budget_neither_loosens_nor_cuts_short(responder: Responder, store: firestore.Client) -> None:
    both = f"{ACCOUNT}/{BUDGET} year: 50%=tighten(20) 100%=trip(all); {ACCOUNT}/{OTHER}: 50%=tighten(80) 100%=trip(all)"
    responder = replace(responder, budgets=policies.parse(both))
    responder.respond(message(actual=1.0))
    before = change.read(store, timeout_s=ENOUGH_S)

    responder.respond(message(actual=1.0, attributes={"budgetId": OTHER}))

    after = change.read(store, timeout_s=ENOUGH_S)
    assert set(before.trips) < set(after.trips)
    assert set(before.tightened) < set(after.tightened)
    assert after.percent(None) == 20
    assert len(records(store)) == 4


def test_the_budget_that_is_raised_is_reset_alone_or_with_all_budgets(
    responder: Responder, store: firestore.Client
) -> None:
    both = f"{ACCOUNT}/{BUDGET}: 100%=trip(all); {ACCOUNT}/{OTHER}: 100%=trip(all)"
    responder = replace(responder, budgets=policies.parse(both))
    for budget in (BUDGET, OTHER):
        responder.respond(message(actual=1.0, attributes={"budgetId": budget}))

    for owner, left in ((OWNER, {("all", f"budget:{OTHER}")}), ("budget", set())):
        reset = change.Reset(scope=None, owner=owner, reason="we pay", by="ann")
        change.apply(store, [reset], timeout_s=ENOUGH_S)
        assert trips(store) == left


def test_a_trip_of_another_owner_is_left_alone(responder: Responder, store: firestore.Client) -> None:
    mine = change.Trip(scope="firestore", owner="operator", reason="a leak", by="ann")
    change.apply(store, [mine], timeout_s=ENOUGH_S)

    responder.respond(message(actual=1.0))

    assert trips(store) == {("firestore", "operator"), ("firestore", OWNER)}


def test_people_are_told_after_it_is_done_and_once(responder: Responder, store: firestore.Client, hook: Hook) -> None:
    responder = replace(responder, webhook_url=hook.url, http=hook.client())

    for _ in range(3):
        responder.respond(message(actual=1.0, cost=101.5))

    assert [got["body"]["action"] for got in hook.got] == ["tighten(50)", "trip(firestore)"]
    body = hook.got[1]["body"]
    assert {name: body[name] for name in ("budget", "budgetId", "kind", "threshold", "cost", "currency")} == {
        "budget": "Firestore",
        "budgetId": BUDGET,
        "kind": "actual",
        "threshold": 100,
        "cost": 101.5,
        "currency": "EUR",
    }
    assert body["text"].startswith("Budget Firestore is past 100% (101.50 of 100.00 EUR so far): firestore is switched")
    assert {done["told"] for done in notice(store)["applied"].values()} == {"told"}


def test_a_webhook_that_fails_is_told_again_by_the_redelivery_which_acts_no_more(
    responder: Responder, store: firestore.Client, hook: Hook
) -> None:
    responder = replace(responder, webhook_url=hook.url, http=hook.client())
    hook.statuses += [500, 200, 503]
    sent = message(actual=1.0)

    assert deliver(responder, sent) == 3

    assert [got["body"]["threshold"] for got in hook.got] == [50, 50, 100, 100]
    assert records(store) == ["tighten 50", "trip firestore"]
    assert {done["told"] for done in notice(store)["applied"].values()} == {"told"}


def test_a_webhook_that_never_answers_is_given_up_after_an_hour_and_poisons_nothing(
    responder: Responder, store: firestore.Client, hook: Hook, capsys: pytest.CaptureFixture[str]
) -> None:
    responder = replace(responder, webhook_url=hook.url, http=hook.client())
    hook.statuses += [500] * 9
    sent = message(actual=0.5)
    with pytest.raises(NotTold):
        responder.respond(sent)
    document = store.collection("budget_notices").document(f"{BUDGET}:{START[:7]}")
    applied = notice(store)["applied"]
    applied["actual 50%"]["at"] -= timedelta(hours=1)
    document.update({"applied": applied})
    capsys.readouterr()

    responder.respond(sent)
    responder.respond(sent)

    assert len(hook.got) == 1
    assert notice(store)["applied"]["actual 50%"]["told"] == "given-up"
    assert [event["outcome"] for event in events(capsys)] == ["repeated", "not-told", "repeated"]


def test_what_was_told_and_could_not_be_marked_may_be_told_again_but_is_not_done_again(
    responder: Responder, store: firestore.Client, hook: Hook, faults: FaultProxy
) -> None:
    responder = replace(responder, webhook_url=hook.url, http=hook.client())
    sent = message(actual=0.5)
    faults.plan(Fault("Commit", Way.BEFORE, grpc.StatusCode.PERMISSION_DENIED, skip=1))
    with pytest.raises(StoreUnavailable):
        responder.respond(sent)

    responder.respond(sent)

    assert len(hook.got) == 2
    assert records(store) == ["tighten 50"]


def test_a_name_cannot_call_everybody_in_a_chat(responder: Responder, hook: Hook) -> None:
    responder = replace(responder, webhook_url=hook.url, http=hook.client())
    fields = {"budgetDisplayName": "<!channel> & co", "costIntervalStart": START, "alertThresholdExceeded": 0.5}
    attributes = {"billingAccountId": ACCOUNT, "budgetId": OTHER}
    data = base64.b64encode(json.dumps(fields).encode()).decode()

    responder.respond(delivered({"data": data, "attributes": attributes}))

    assert hook.got[0]["body"]["text"] == "Budget &lt;!channel&gt; &amp; co is past 50%: nothing was changed."


def test_a_webhook_that_is_none_is_named_and_the_switch_is_tripped_all_the_same(
    responder: Responder, store: firestore.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    replace(responder, webhook_url="http://hooks.example.test/secret").respond(message(actual=1.0))

    assert trips(store) == {("firestore", OWNER)}
    lines = capsys.readouterr().out
    assert "BUDGET_WEBHOOK_URL must be an https URL" in lines
    assert "secret" not in lines


def test_one_event_tells_what_a_notice_did(responder: Responder, capsys: pytest.CaptureFixture[str]) -> None:
    sent = message(actual=1.0, cost=101)

    responder.respond(sent)
    responder.respond(sent)

    first, second = events(capsys)
    assert (first["message"], first["outcome"], second["outcome"]) == ("firebreak.budget", "applied", "repeated")
    assert first["applied"] == ["actual 50%=tighten(50)", "actual 100%=trip(firestore)"]
    assert (first["period"], first["exceeded"], first["cost"]) == (START[:7], ["actual 100%"], 101_000_000)
