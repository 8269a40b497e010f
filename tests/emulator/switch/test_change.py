"""Changing the switch: one commit with its record, applied once whatever fails, and no change of another's lost."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import grpc
import pytest
from google.api_core.exceptions import Aborted, AlreadyExists, DeadlineExceeded, FailedPrecondition, ServiceUnavailable
from google.cloud import firestore

from firebreak.store.documents import Corrupt
from firebreak.store.outcome import Unreadable
from firebreak.store.times import to_us
from firebreak.switch import change
from firebreak.switch.change import Loosen, Reset, Tighten, Trip
from firebreak.switch.state import OWNERS, SCOPES, State, fields_of
from tests.emulator.switch.hand import Hand
from tests.fault_proxy import Fault, FaultProxy, Way

ENOUGH_S = 30.0
TRIP = Trip(scope="gemini", owner="operator", reason="a loop", by="ann")


def records(client: firestore.Client) -> list[dict[str, Any]]:
    found = client.collection("ops").document("changes").collection("log").get()
    return sorted(((record.to_dict() or {}) for record in found), key=lambda record: record["after"]["version"])


def by_another(client: firestore.Client, asked: Trip) -> Callable[[], None]:
    def apply() -> None:
        change.apply(client, [asked], timeout_s=ENOUGH_S)

    return apply


def stored(client: firestore.Client) -> dict[str, Any] | None:
    fields: dict[str, Any] | None = client.collection("ops").document("switch").get().to_dict()
    return fields


def held(state: State) -> set[tuple[str, str]]:
    return {(trip.scope, trip.owner) for trip in state.trips}


def test_a_trip_is_there_with_reason_author_and_time(store: firestore.Client) -> None:
    until = datetime(2100, 1, 1, tzinfo=UTC)
    asked = Trip(scope="gemini", owner="operator", reason="a loop", by="ann", until_us=to_us(until))

    state = change.apply(store, [asked], timeout_s=ENOUGH_S)

    fields = stored(store)
    assert fields is not None
    assert fields == fields_of(state)
    entry = fields["trips"]["gemini"]["operator"]
    assert (entry["reason"], entry["by"], entry["until"]) == ("a loop", "ann", until)
    assert timedelta(0) <= datetime.now(UTC) - entry["at"] < timedelta(minutes=5)
    assert change.read(store, timeout_s=5) == state


def test_every_change_leaves_a_record(store: firestore.Client) -> None:
    change.apply(store, [TRIP], timeout_s=ENOUGH_S)
    change.apply(store, [Tighten(owner="budget", percent=50, reason="half", by="budget b")], timeout_s=ENOUGH_S)
    change.apply(store, [Reset(scope=None, owner="operator", reason="mended", by="ben")], timeout_s=ENOUGH_S)
    change.apply(store, [Loosen(owner="budget", reason="new month", by="ann")], timeout_s=ENOUGH_S)

    trip, tighten, reset, loosen = records(store)
    assert {name: trip[name] for name in ("what", "scope", "owner", "reason", "by")} == {
        "what": "trip",
        "scope": "gemini",
        "owner": "operator",
        "reason": "a loop",
        "by": "ann",
    }
    assert trip["before"] == {"version": 0, "trips": {}, "tightened": {}}
    assert trip["after"]["trips"]["gemini"]["operator"]["reason"] == "a loop"
    assert trip["expireAt"] - trip["at"] == timedelta(days=365)
    assert (tighten["what"], tighten["owner"], tighten["percent"]) == ("tighten", "budget", 50)
    assert (reset["what"], reset["owner"], "scope" in reset) == ("reset", "operator", False)
    assert (reset["before"]["trips"], reset["after"]["trips"]) == (trip["after"]["trips"], {})
    assert (loosen["what"], loosen["after"]["tightened"]) == ("loosen", {})
    assert loosen["after"] == stored(store)


def test_changes_of_one_commit_are_made_in_order_and_each_has_its_record(store: firestore.Client) -> None:
    state = change.apply(
        store,
        [
            TRIP,
            Reset(scope="gemini", owner=None, reason="", by=""),
            Tighten(owner="budget", percent=5, reason="", by=""),
        ],
        timeout_s=ENOUGH_S,
    )

    assert (held(state), state.percent(None)) == (set(), 5)
    assert sorted(record["what"] for record in records(store)) == ["reset", "tighten", "trip"]


def test_no_change_at_all_is_a_mistake(store: firestore.Client) -> None:
    with pytest.raises(ValueError, match="changes must not be empty"):
        change.apply(store, [], timeout_s=ENOUGH_S)


def test_of_8_threads_that_change_different_things_none_is_lost(store: firestore.Client) -> None:
    places = list(product(SCOPES, OWNERS))[:8]

    def trip(place: tuple[str, str]) -> None:
        scope, owner = place
        change.apply(store, [Trip(scope=scope, owner=owner, reason="", by="")], timeout_s=ENOUGH_S)

    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(trip, places))

    state = change.read(store, timeout_s=5)
    assert held(state) == set(places)
    assert state.version == 8
    assert len(records(store)) == 8


@pytest.mark.parametrize("owner", ["caps", "budget"])
def test_an_operators_trip_survives_the_reset_of_another(store: firestore.Client, owner: str) -> None:
    other = Trip(scope="gemini", owner=owner, reason="", by="")
    change.apply(store, [TRIP, other], timeout_s=ENOUGH_S)

    state = change.apply(store, [Reset(scope=None, owner=owner, reason="", by="")], timeout_s=ENOUGH_S)

    assert held(state) == {("gemini", "operator")}
    assert state.tripped(["gemini"], None) is not None


def test_resetting_everybody_leaves_nothing(store: firestore.Client) -> None:
    trips = [Trip(scope=scope, owner=owner, reason="", by="") for scope, owner in product(SCOPES, OWNERS)]
    change.apply(store, trips, timeout_s=ENOUGH_S)

    assert len(held(change.apply(store, [Reset(scope="gemini", owner=None, reason="", by="")], timeout_s=9))) == 6
    assert held(change.apply(store, [Reset(scope=None, owner=None, reason="", by="")], timeout_s=9)) == set()


def test_what_is_over_is_dropped_with_the_next_change(store: firestore.Client) -> None:
    past = Trip(scope="firestore", owner="operator", reason="", by="", until_us=1)
    change.apply(store, [past, Tighten(owner="budget", percent=1, reason="", by="", until_us=1)], timeout_s=ENOUGH_S)

    state = change.apply(store, [TRIP], timeout_s=ENOUGH_S)

    assert held(state) == {("gemini", "operator")}
    assert state.tightened == ()
    assert "firestore" in records(store)[-1]["before"]["trips"]


@pytest.mark.parametrize("also", [False, True], ids=["alone", "with another write"])
@pytest.mark.parametrize("method", ["Commit", "BatchGetDocuments"])
@pytest.mark.parametrize(
    "status",
    [
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.INTERNAL,
    ],
    ids=lambda status: status.name,
)
@pytest.mark.parametrize("way", list(Way), ids=lambda way: way.name)
def test_a_change_is_made_once_whatever_fails_once(
    proxied: firestore.Client,
    store: firestore.Client,
    faults: FaultProxy,
    way: Way,
    status: grpc.StatusCode,
    method: str,
    also: bool,
) -> None:
    faults.plan(Fault(method, way, status))

    state = change.apply(proxied, [TRIP], also=notice(proxied) if also else None, timeout_s=ENOUGH_S)
    faults.release()

    assert held(state) == {("gemini", "operator")}
    assert stored(store) == fields_of(state)
    assert state.version == 1
    assert len(records(store)) == 1
    assert store.collection("notices").document("n").get().exists == also


def test_two_replies_that_are_lost_in_a_row_are_one_change(
    proxied: firestore.Client, store: firestore.Client, faults: FaultProxy
) -> None:
    faults.plan(
        Fault("Commit", Way.LOSE_REPLY),
        Fault("BatchGetDocuments", Way.LOSE_REPLY, skip=1, times=3),
    )

    change.apply(proxied, [TRIP], timeout_s=ENOUGH_S)

    assert len(records(store)) == 1


def test_no_answer_until_the_time_is_up_is_an_error_and_at_most_one_change(
    proxied: firestore.Client, store: firestore.Client, faults: FaultProxy, hand: Hand
) -> None:
    faults.plan(Fault("Commit", Way.LATE, times=1_000))

    with pytest.raises(ServiceUnavailable):
        change.apply(proxied, [TRIP], timeout_s=5, clock=hand.clock)
    assert stored(store) is None

    faults.release()
    assert len(records(store)) == 1
    assert change.read(store, timeout_s=5).version == 1


def arrives(faults: FaultProxy, hand: Hand) -> Callable[[], None]:
    """The commit that was late is there now, and the time is up."""

    def arrive() -> None:
        faults.release()
        hand.move(ENOUGH_S)

    return arrive


@pytest.mark.parametrize("also", [False, True], ids=["alone", "with another write"])
def test_a_last_try_that_loses_to_its_own_late_twin_is_a_change_that_was_made(
    proxied: firestore.Client, store: firestore.Client, faults: FaultProxy, hand: Hand, also: bool
) -> None:
    faults.plan(Fault("Commit", Way.LATE), Fault("Commit", Way.BEFORE, first=arrives(faults, hand)))
    add = notice(proxied) if also else None

    state = change.apply(proxied, [TRIP], also=add, timeout_s=ENOUGH_S, clock=hand.clock)

    assert held(state) == {("gemini", "operator")}
    assert len(records(store)) == 1


def test_if_nobody_can_tell_what_came_of_the_last_try_it_is_not_called_lost(
    proxied: firestore.Client, faults: FaultProxy, hand: Hand
) -> None:
    def arrive() -> None:
        arrives(faults, hand)()
        faults.plan(Fault("BatchGetDocuments", Way.BEFORE, times=1_000))

    faults.plan(Fault("Commit", Way.LATE), Fault("Commit", Way.BEFORE, first=arrive))

    with pytest.raises(DeadlineExceeded):
        change.apply(proxied, [TRIP], timeout_s=ENOUGH_S, clock=hand.clock)


def test_a_race_that_is_lost_is_run_again(
    proxied: firestore.Client, store: firestore.Client, faults: FaultProxy
) -> None:
    other = Trip(scope="all", owner="budget", reason="", by="")
    faults.plan(Fault("Commit", Way.BEFORE, first=by_another(store, other)))

    state = change.apply(proxied, [TRIP], timeout_s=ENOUGH_S)

    assert held(state) == {("gemini", "operator"), ("all", "budget")}


def notice(client: firestore.Client) -> Callable[[firestore.WriteBatch], None]:
    return lambda batch: batch.create(client.collection("notices").document("n"), {"seen": True})


def test_what_else_is_written_is_written_with_it(store: firestore.Client) -> None:
    change.apply(store, [TRIP], also=notice(store), timeout_s=ENOUGH_S)

    assert store.collection("notices").document("n").get().to_dict() == {"seen": True}


def test_if_the_other_write_cannot_be_made_nothing_is_changed(
    proxied: firestore.Client, store: firestore.Client, faults: FaultProxy
) -> None:
    store.collection("notices").document("n").set({"seen": "by another"})

    with pytest.raises(AlreadyExists):
        change.apply(proxied, [TRIP], also=notice(proxied), timeout_s=ENOUGH_S)

    assert stored(store) is None
    assert records(store) == []
    assert faults.calls["Commit"] == 1


def test_with_another_write_a_lost_race_is_the_callers(
    proxied: firestore.Client, store: firestore.Client, faults: FaultProxy
) -> None:
    change.apply(store, [Reset(scope=None, owner=None, reason="", by="")], timeout_s=ENOUGH_S)
    faults.plan(Fault("Commit", Way.BEFORE, first=by_another(store, TRIP)))

    with pytest.raises(FailedPrecondition):
        change.apply(proxied, [Loosen(owner="budget", reason="", by="")], also=notice(proxied), timeout_s=ENOUGH_S)

    assert faults.calls["Commit"] == 1
    assert not store.collection("notices").document("n").get().exists


def test_with_another_write_an_aborted_commit_is_the_callers(proxied: firestore.Client, faults: FaultProxy) -> None:
    faults.plan(Fault("Commit", Way.BEFORE, grpc.StatusCode.ABORTED))

    with pytest.raises(Aborted):
        change.apply(proxied, [TRIP], also=notice(proxied), timeout_s=ENOUGH_S)


def test_a_corrupt_switch_is_not_changed_on_a_guess(store: firestore.Client) -> None:
    store.collection("ops").document("switch").set({"trips": "none"})

    with pytest.raises(Corrupt):
        change.apply(store, [TRIP], timeout_s=ENOUGH_S)
    assert stored(store) == {"trips": "none"}


def test_no_database_is_unreadable(proxied: firestore.Client, faults: FaultProxy) -> None:
    faults.plan(Fault("BatchGetDocuments", Way.BEFORE, grpc.StatusCode.NOT_FOUND))

    with pytest.raises(Unreadable):
        change.apply(proxied, [TRIP], timeout_s=ENOUGH_S)


def test_fields_that_others_have_added_stay(store: firestore.Client) -> None:
    store.collection("ops").document("switch").set({"note": "call ann first"})

    change.apply(store, [TRIP], timeout_s=ENOUGH_S)

    fields = stored(store)
    assert fields is not None
    assert fields["note"] == "call ann first"


def test_a_reason_of_any_length_is_cut(store: firestore.Client) -> None:
    change.apply(store, [Trip(scope="all", owner="operator", reason="x" * 10**6, by="y" * 10**6)], timeout_s=ENOUGH_S)

    (record,) = records(store)
    assert (record["reason"], record["by"]) == ("x" * 200, "y" * 200)
