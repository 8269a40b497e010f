"""The switch as a request meets it: what it refuses, and what that costs."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import grpc
import pytest
from google.cloud import firestore

from firebreak import errors
from firebreak.store.times import to_us
from firebreak.store.tries import RPC_S
from firebreak.switch import change
from firebreak.switch.watch import Switch, refuse
from tests.emulator.switch.hand import Hand
from tests.fault_proxy import Fault, FaultProxy, Way

TTL_S = 15
READ = "BatchGetDocuments"
GEMINI = frozenset({"gemini"})
FIRESTORE = frozenset({"firestore"})
NOTHING: frozenset[str] = frozenset()
DOWN = Fault(READ, Way.BEFORE, grpc.StatusCode.UNAVAILABLE, times=1_000)


def trip(client: firestore.Client, scope: str = "gemini", owner: str = "operator", until_us: int | None = None) -> None:
    asked = change.Trip(scope=scope, owner=owner, reason=f"{owner} says no", by="ann", until_us=until_us)
    change.apply(client, [asked], timeout_s=10)


def reset(client: firestore.Client, scope: str | None = None, owner: str | None = None) -> None:
    change.apply(client, [change.Reset(scope=scope, owner=owner, reason="over", by="ann")], timeout_s=10)


def server_us(client: firestore.Client) -> int:
    return to_us(client.collection("warm").document("up").get().read_time)


def write(client: firestore.Client, fields: dict[str, Any]) -> None:
    client.collection("ops").document("switch").set(fields)


def outcome(switch: Switch, spends: frozenset[str] = GEMINI) -> str:
    try:
        switch.check(spends)
    except errors.Refused as refusal:
        return refusal.reason.value
    return "ok"


def events(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [line for line in lines if line["message"] == "firebreak.switch"]


@contextmanager
def held_back(faults: FaultProxy) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Within this block the next read is held back: the first event tells that it came, the second lets it go on."""
    asked, answer = threading.Event(), threading.Event()

    def hold() -> None:
        asked.set()
        # Shorter than the read's own timeout.
        answer.wait(1.5)

    faults.plan(Fault(READ, Way.BEFORE, first=hold))
    yield asked, answer
    answer.set()


def waiting(switch: Switch, faults: FaultProxy, hand: Hand) -> list[str]:
    """What two requests get that come at once, the second while the first one's reading is on its way."""
    with held_back(faults) as (asked, answer), ThreadPoolExecutor(max_workers=2) as pool:
        first = pool.submit(outcome, switch)
        assert asked.wait(10)
        looked = threading.Event()
        hand.asked = looked.set
        second = pool.submit(outcome, switch)
        assert looked.wait(10)
        answer.set()
        return [first.result(10), second.result(10)]


def test_without_a_document_nothing_is_refused(switch: Switch) -> None:
    switch.check({"gemini", "firestore"})

    assert switch.percent() == 100


@pytest.mark.parametrize(
    ("scope", "spends", "wanted"),
    [
        ("gemini", GEMINI, "switch"),
        ("gemini", FIRESTORE, "ok"),
        ("gemini", NOTHING, "ok"),
        ("firestore", FIRESTORE, "switch"),
        ("firestore", GEMINI, "ok"),
        ("firestore", GEMINI | FIRESTORE, "switch"),
        ("all", NOTHING, "switch"),
        ("all", GEMINI, "switch"),
    ],
)
def test_a_scope_refuses_what_spends_it_and_all_refuses_everything(
    switch: Switch, store: firestore.Client, scope: str, spends: frozenset[str], wanted: str
) -> None:
    trip(store, scope)

    assert outcome(switch, spends) == wanted


def test_a_refusal_carries_the_operators_words_the_scope_and_when_to_come_again(
    switch: Switch, store: firestore.Client
) -> None:
    trip(store)

    with pytest.raises(errors.SwitchedOff) as refused:
        switch.check(GEMINI)
    assert refused.value.message == "operator says no"
    assert refused.value.details == {"reason": "switch", "scope": "gemini", "retryAfterSeconds": TTL_S}


def test_retry_after_is_what_is_left_until_it_is_over(switch: Switch, store: firestore.Client, hand: Hand) -> None:
    trip(store, until_us=server_us(store) + 3_600_000_000)
    switch.check(NOTHING)
    hand.move(14)

    with pytest.raises(errors.SwitchedOff) as refused:
        switch.check(GEMINI)
    # Of an hour, some of it has passed in the emulator, and 14 s by hand.
    assert 3_500 < int(refused.value.details["retryAfterSeconds"]) <= 3_600 - 14


def test_1000_checks_from_8_threads_while_tripped_cost_one_read(
    switch: Switch, store: firestore.Client, faults: FaultProxy
) -> None:
    trip(store)

    with ThreadPoolExecutor(max_workers=8) as pool:
        outcomes = list(pool.map(lambda _: outcome(switch), range(1_000)))

    assert outcomes == ["switch"] * 1_000
    assert faults.calls == {READ: 1}


@pytest.mark.parametrize("knob", ["gemini", "all", "firestore"])
def test_the_environments_knob_refuses_who_spends_what_it_names(knob: str) -> None:
    with pytest.raises(errors.SwitchedOff) as refusal:
        refuse({knob}, GEMINI | FIRESTORE, retry_after_s=TTL_S)

    assert refusal.value.details == {"reason": "switch", "scope": knob, "retryAfterSeconds": TTL_S}


def test_the_environments_knob_leaves_what_it_does_not_name() -> None:
    refuse({"gemini"}, FIRESTORE, retry_after_s=TTL_S)
    refuse(frozenset(), GEMINI | FIRESTORE, retry_after_s=TTL_S)


def test_a_change_is_seen_after_the_ttl_and_costs_nothing_before(
    switch: Switch, store: firestore.Client, faults: FaultProxy, hand: Hand
) -> None:
    switch.check(GEMINI)
    trip(store)

    hand.move(TTL_S - 1)
    assert outcome(switch) == "ok"
    hand.move(1)
    assert outcome(switch) == "switch"
    assert faults.calls[READ] == 2

    reset(store)
    hand.move(TTL_S)
    assert outcome(switch) == "ok"


def test_unreadable_at_the_start_refuses_and_asks_again_only_after_a_second(
    switch: Switch, faults: FaultProxy, hand: Hand, capsys: pytest.CaptureFixture[str]
) -> None:
    faults.plan(DOWN)

    with ThreadPoolExecutor(max_workers=8) as pool:
        outcomes = list(pool.map(lambda _: outcome(switch), range(200)))
    assert outcomes == ["store"] * 200
    assert faults.calls[READ] == 1
    assert [(e["severity"], e["change"], e["error"]) for e in events(capsys)] == [
        ("ERROR", "unreadable", "ServiceUnavailable")
    ]

    hand.move(1)
    assert outcome(switch) == "store"
    assert faults.calls[READ] == 2

    faults.forget()
    hand.move(0.9)
    assert outcome(switch) == "store"
    hand.move(0.1)
    assert outcome(switch) == "ok"


def test_unreadable_at_the_start_says_when_to_come_again(switch: Switch, faults: FaultProxy) -> None:
    faults.plan(DOWN)

    with pytest.raises(errors.StoreUnavailable) as refused:
        switch.check(GEMINI)
    assert refused.value.details["retryAfterSeconds"] == 1


@pytest.mark.parametrize("tripped", [True, False], ids=["tripped", "not tripped"])
def test_unreadable_later_keeps_what_is_known_however_old_and_says_so_once_per_refresh(
    switch: Switch,
    store: firestore.Client,
    faults: FaultProxy,
    hand: Hand,
    capsys: pytest.CaptureFixture[str],
    tripped: bool,
) -> None:
    if tripped:
        trip(store)
    wanted = "switch" if tripped else "ok"
    outcome(switch)
    faults.clear()
    faults.plan(DOWN)
    capsys.readouterr()

    for refreshes in range(1, 6):
        hand.move(TTL_S)
        assert [outcome(switch) for _ in range(20)] == [wanted] * 20
        assert faults.calls[READ] == refreshes
    hand.move(7 * 86_400)
    assert outcome(switch) == wanted
    assert [(e["severity"], e["change"]) for e in events(capsys)] == [("ERROR", "unreadable")] * 6

    faults.forget()
    reset(store) if tripped else trip(store)
    hand.move(TTL_S)
    assert outcome(switch) == ("ok" if tripped else "switch")


@pytest.mark.parametrize("status", [grpc.StatusCode.NOT_FOUND, grpc.StatusCode.PERMISSION_DENIED], ids=str)
def test_no_database_and_no_permission_are_unreadable(
    switch: Switch, faults: FaultProxy, status: grpc.StatusCode
) -> None:
    faults.plan(Fault(READ, Way.BEFORE, status))

    assert outcome(switch) == "store"


def test_a_corrupt_document_is_unreadable(
    switch: Switch, store: firestore.Client, hand: Hand, capsys: pytest.CaptureFixture[str]
) -> None:
    write(store, {"trips": {"gemin": {"operator": {}}}})
    assert outcome(switch) == "store"

    write(store, {"trips": {"gemini": {"operator": {"reason": "by hand"}}}})
    hand.move(1)
    assert outcome(switch) == "switch"

    write(store, {"trips": "none"})
    hand.move(TTL_S)
    assert outcome(switch) == "store"
    assert [e.get("error") for e in events(capsys)] == ["Corrupt", None, "Corrupt"]


@pytest.mark.parametrize(
    "fields",
    [
        {"trips": {"Gemini": {"operator": {}}}},
        {"trips": {"gemini": True}},
        {"trips": {"gemini": {"operator": {"until": "tomorrow"}}}},
        {"trips": ["gemini"]},
        {"trip": {"gemini": {"operator": {}}}},
        {"gemini": True},
    ],
    ids=str,
)
def test_what_was_meant_to_switch_off_but_cannot_be_read_lets_nobody_pass_who_passed_before(
    switch: Switch, store: firestore.Client, hand: Hand, fields: dict[str, Any]
) -> None:
    assert outcome(switch) == "ok"

    write(store, fields)
    hand.move(TTL_S)

    assert outcome(switch) == "store"


def test_a_deleted_document_is_nothing_tripped(switch: Switch, store: firestore.Client, hand: Hand) -> None:
    trip(store)
    outcome(switch)
    store.collection("ops").document("switch").delete()
    hand.move(TTL_S)

    assert outcome(switch) == "ok"


def test_a_trip_is_over_at_its_time_without_a_read(
    switch: Switch, store: firestore.Client, faults: FaultProxy, hand: Hand
) -> None:
    trip(store, until_us=server_us(store) + 10_000_000)
    assert outcome(switch) == "switch"

    hand.move(10)
    assert outcome(switch) == "ok"
    assert faults.calls[READ] == 1


def test_a_trip_whose_end_is_not_known_to_have_come_goes_on(
    proxied: firestore.Client, store: firestore.Client, faults: FaultProxy, hand: Hand
) -> None:
    """With a TTL of five minutes a reading tells the time for six; after that a trip stays, without a refresh."""
    switch = Switch(proxied, ttl_s=300, clock=hand.clock)
    trip(store, until_us=server_us(store) + 3_600_000_000)
    assert outcome(switch) == "switch"
    faults.plan(DOWN)

    hand.move(3_601)
    assert outcome(switch) == "switch"


def test_a_trip_that_was_over_stays_over_without_a_refresh(
    switch: Switch, store: firestore.Client, faults: FaultProxy, hand: Hand
) -> None:
    trip(store, until_us=server_us(store) + 10_000_000)
    assert outcome(switch) == "switch"
    faults.plan(DOWN)

    hand.move(86_400)
    assert outcome(switch) == "ok"


def test_within_a_long_ttl_a_trip_is_over_at_its_time(
    proxied: firestore.Client, store: firestore.Client, hand: Hand
) -> None:
    switch = Switch(proxied, ttl_s=300, clock=hand.clock)
    trip(store, until_us=server_us(store) + 200_000_000)
    assert outcome(switch) == "switch"

    hand.move(200)
    assert outcome(switch) == "ok"


def test_percent_is_the_smallest_and_never_asks(
    switch: Switch, store: firestore.Client, faults: FaultProxy, hand: Hand
) -> None:
    now_us = server_us(store)
    tighten = [
        change.Tighten(owner="budget", percent=50, reason="", by=""),
        change.Tighten(owner="operator", percent=20, reason="", by="", until_us=now_us + 12_000_000),
    ]
    change.apply(store, tighten, timeout_s=10)
    assert switch.percent() == 100
    assert faults.calls == {}

    switch.check(GEMINI)
    assert switch.percent() == 20
    hand.move(12)
    assert switch.percent() == 50
    hand.move(1_000)
    assert switch.percent() == 50
    assert faults.calls == {READ: 1}


def test_while_one_thread_refreshes_the_others_go_on(
    switch: Switch, store: firestore.Client, faults: FaultProxy, hand: Hand
) -> None:
    switch.check(GEMINI)
    trip(store)
    hand.move(TTL_S)

    with held_back(faults) as (asked, answer), ThreadPoolExecutor(max_workers=1) as pool:
        refreshing = pool.submit(outcome, switch)
        assert asked.wait(10)
        assert outcome(switch) == "ok"
        assert faults.calls[READ] == 2
        answer.set()
        assert refreshing.result(10) == "switch"
    assert outcome(switch) == "switch"


def test_a_first_reading_that_takes_long_refuses_nobody(switch: Switch, faults: FaultProxy) -> None:
    """An instance connects with it, and a cold one on a busy machine takes its time."""

    def connect() -> None:
        threading.Event().wait(RPC_S + 0.5)

    faults.plan(Fault(READ, Way.BEFORE, first=connect))

    assert outcome(switch) == "ok"
    assert faults.calls == {READ: 1}


def test_at_the_start_all_wait_for_the_one_reading(
    switch: Switch, store: firestore.Client, faults: FaultProxy, hand: Hand
) -> None:
    trip(store)
    assert waiting(switch, faults, hand) == ["switch"] * 2


def test_an_instance_that_had_no_request_for_long_does_not_go_by_what_it_knew(
    switch: Switch, store: firestore.Client, faults: FaultProxy, hand: Hand
) -> None:
    switch.check(GEMINI)
    trip(store)
    hand.move(3_600)

    assert waiting(switch, faults, hand) == ["switch"] * 2


def test_the_log_tells_once_what_became_of_the_switch(
    switch: Switch, store: firestore.Client, hand: Hand, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(seconds: float) -> list[dict[str, Any]]:
        hand.move(seconds)
        capsys.readouterr()
        for _ in range(3):
            outcome(switch)
        names = ("severity", "change", "scope", "owner", "reason", "by", "percent")
        return [{name: e[name] for name in names if name in e} for e in events(capsys)]

    tripped = {"scope": "gemini", "owner": "operator", "reason": "operator says no", "by": "ann"}
    assert told(0) == []

    trip(store)
    assert told(TTL_S) == [{"severity": "WARNING", "change": "tripped"} | tripped]
    assert told(TTL_S) == []

    reset(store)
    change.apply(store, [change.Tighten(owner="budget", percent=40, reason="", by="")], timeout_s=10)
    assert told(TTL_S) == [
        {"severity": "WARNING", "change": "reset"} | tripped,
        {"severity": "WARNING", "change": "percent", "percent": 40},
    ]
    assert told(TTL_S) == []


def test_the_log_tells_when_a_trip_is_over(
    switch: Switch, store: firestore.Client, hand: Hand, capsys: pytest.CaptureFixture[str]
) -> None:
    now = datetime.now(UTC)
    write(store, {"trips": {"all": {"operator": {"reason": "short", "until": now.replace(year=now.year + 1)}}}})
    outcome(switch)
    write(store, {"trips": {"all": {"operator": {"reason": "short", "until": now.replace(year=now.year - 1)}}}})
    hand.move(TTL_S)
    outcome(switch)

    assert [e["change"] for e in events(capsys)] == ["tripped", "reset"]


def test_the_log_does_not_tell_of_what_was_over_all_along(
    switch: Switch, store: firestore.Client, hand: Hand, capsys: pytest.CaptureFixture[str]
) -> None:
    trip(store, until_us=1)
    outcome(switch)
    reset(store)
    hand.move(TTL_S)
    outcome(switch)

    assert events(capsys) == []


def test_nothing_but_reads_is_ever_sent(
    switch: Switch, store: firestore.Client, faults: FaultProxy, hand: Hand
) -> None:
    for scope in ("gemini", "all"):
        trip(store, scope)
        hand.move(TTL_S)
        outcome(switch)

    assert set(faults.calls) == {READ}
