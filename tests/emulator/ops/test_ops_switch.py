"""The kill switch from a shell, as the functions then see it."""

import getpass
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest
from google.cloud import firestore

from firebreak.errors import SwitchedOff
from firebreak.switch.watch import Switch
from scripts.local.layout import PROJECT
from scripts.ops.limits import settings
from tests.emulator.ops.conftest import Ops, ops_at
from tests.fault_proxy import Fault, FaultProxy, Way

WHY = "the bill is burning"


def watched(client: firestore.Client) -> Switch:
    """The switch as an instance that has just started sees it."""
    return Switch(client, ttl_s=15)


def last_change(client: firestore.Client) -> dict[str, Any]:
    newest = client.collection("ops", "changes", "log").order_by("at", direction="DESCENDING")
    return newest.limit(1).get()[0].to_dict() or {}


def budget_trips(document: firestore.DocumentReference) -> None:
    trip = {"reason": "budget", "by": "budget", "at": datetime.now(UTC)}
    document.set({"version": 1, "trips": {"gemini": {"budget": trip}}, "tightened": {"budget": trip | {"percent": 25}}})


def test_a_trip_refuses_its_scope_alone_and_tells_the_reason(ops: Ops, direct: firestore.Client) -> None:
    ran = ops("switch", "trip", "--scope", "gemini", "--reason", WHY, "--for", "30m")

    with pytest.raises(SwitchedOff) as refusal:
        watched(direct).check({"gemini"})
    watched(direct).check({"firestore"})
    assert refusal.value.message == WHY
    assert 1_700 < int(refusal.value.details["retryAfterSeconds"]) <= 1_800
    assert "SWITCH_TTL_S" in ran.said


def test_a_trip_is_recorded_with_what_why_when_and_by_whom(ops: Ops, direct: firestore.Client) -> None:
    ops("switch", "trip", "--scope", "all", "--reason", WHY, "--for", "1d", "--by", "ann")

    record = last_change(direct)
    assert (record["what"], record["scope"], record["reason"], record["by"]) == ("trip", "all", WHY, "ann")
    until = record["after"]["trips"]["all"]["operator"]["until"] - record["at"]
    assert timedelta(hours=23, minutes=59) < until <= timedelta(days=1)


def test_a_change_is_signed_by_who_is_logged_in(ops: Ops, direct: firestore.Client) -> None:
    ops("switch", "trip", "--scope", "firestore", "--reason", WHY)

    assert last_change(direct)["by"] == getpass.getuser()


def test_show_has_every_trip_and_tightening(ops: Ops, switch: firestore.DocumentReference) -> None:
    budget_trips(switch)
    ops("switch", "trip", "--scope", "firestore", "--reason", WHY, "--for", "2h")
    ops("switch", "tighten", "--percent", "50", "--reason", WHY)

    data = ops("switch", "show", "--json").data
    words = ops("switch", "show").out

    held = [(trip["scope"], trip["owner"], trip["until"] is not None) for trip in data["trips"]]
    assert held == [("firestore", "operator", True), ("gemini", "budget", False)]
    assert [(t["owner"], t["percent"]) for t in data["tightened"]] == [("budget", 25), ("operator", 50)]
    assert (data["percent"], data["seenWithinSeconds"], data["killSwitch"]) == (25, settings(PROJECT).switch_ttl_s, [])
    assert all(word in words for word in ("firestore", "operator", WHY, "gemini", "budget", "25 %", "50 %"))


def test_reset_takes_back_what_the_operator_did_and_no_more(
    ops: Ops, switch: firestore.DocumentReference, direct: firestore.Client
) -> None:
    budget_trips(switch)
    ops("switch", "trip", "--scope", "gemini", "--reason", WHY)
    ops("switch", "trip", "--scope", "firestore", "--reason", WHY)

    left = ops("switch", "reset", "--all", "--reason", "over", "--json").data["trips"]

    assert [(trip["scope"], trip["owner"]) for trip in left] == [("gemini", "budget")]
    assert ops("switch", "reset", "--scope", "gemini", "--owner", "budget", "--reason", "over").status == 0
    watched(direct).check({"gemini", "firestore"})


def test_loosen_takes_a_budgets_tightening_back(
    ops: Ops, switch: firestore.DocumentReference, direct: firestore.Client
) -> None:
    budget_trips(switch)

    assert ops("switch", "loosen", "--owner", "budget", "--reason", "paid", "--json").data["percent"] == 100

    assert last_change(direct)["what"] == "loosen"


@pytest.mark.parametrize(("owner", "left"), [("budget", []), ("budget:b-1", ["budget:b-2"]), ("any", [])])
def test_a_budget_is_taken_back_alone_or_with_all_budgets(
    ops: Ops, switch: firestore.DocumentReference, owner: str, left: list[str]
) -> None:
    held = {f"budget:b-{n}": {"reason": "", "by": "", "percent": 20 * n} for n in (1, 2)}
    switch.set({"version": 1, "trips": {"gemini": held}, "tightened": held})

    loose = ops("switch", "loosen", "--owner", owner, "--reason", "paid", "--json").data
    reset = ops("switch", "reset", "--all", "--owner", owner, "--reason", "paid", "--json").data

    assert [entry["owner"] for entry in loose["tightened"]] == left
    assert [trip["owner"] for trip in reset["trips"]] == left


@pytest.mark.parametrize(
    "words", [("reset", "--all"), ("reset", "--scope", "gemini", "--owner", "caps"), ("loosen", "--owner", "any")]
)
def test_where_there_is_nothing_to_take_back_nothing_is_written(
    ops: Ops, switch: firestore.DocumentReference, words: tuple[str, ...]
) -> None:
    ran = ops("switch", *words, "--reason", "x")

    assert ran.status == 1
    assert "wrote 0" in ran.said
    assert ran.said.splitlines()[-1].startswith("nothing is ")
    assert not switch.get().exists


@pytest.mark.parametrize(
    "words",
    [
        ("trip", "--scope", "gemini"),
        ("trip", "--reason", "x"),
        ("trip", "--scope", "everything", "--reason", "x"),
        ("trip", "--scope", "gemini", "--reason", ""),
        ("trip", "--scope", "gemini", "--reason", "x", "--for", "30"),
        ("trip", "--scope", "gemini", "--reason", "x", "--for", "0m"),
        ("reset", "--reason", "x"),
        ("reset", "--reason", "x", "--all", "--scope", "gemini"),
        ("tighten", "--reason", "x", "--percent", "0"),
        ("reset", "--reason", "x", "--all", "--owner", "somebody"),
        ("loosen", "--reason", "x", "--owner", "budget:"),
    ],
)
def test_wrong_use_is_told_and_changes_nothing(
    ops: Ops, switch: firestore.DocumentReference, words: tuple[str, ...]
) -> None:
    ran = ops("switch", *words)

    assert (ran.status, ran.out) == (2, "")
    assert not switch.get().exists


def test_a_change_that_was_made_is_told_as_made_though_it_cannot_be_shown(
    faults: FaultProxy, switch: firestore.DocumentReference
) -> None:
    denied = grpc.StatusCode.PERMISSION_DENIED
    faults.plan(Fault("BatchGetDocuments", Way.BEFORE, denied, skip=1, times=1_000))

    ran = ops_at(faults.address)("switch", "trip", "--scope", "all", "--reason", WHY)

    assert (ran.status, "changed" in ran.said.splitlines()) == (0, True)
    assert "cannot be shown" in ran.said
    assert switch.get().exists


def test_a_project_without_a_database_is_told_and_not_a_traceback(
    faults: FaultProxy, switch: firestore.DocumentReference
) -> None:
    faults.plan(Fault("BatchGetDocuments", Way.BEFORE, grpc.StatusCode.NOT_FOUND, times=1_000))

    ran = ops_at(faults.address)("switch", "trip", "--scope", "all", "--reason", WHY)

    assert ran.status == 1
    assert "has no database" in ran.said.splitlines()[-1]
    assert not switch.get().exists


def test_a_damaged_switch_is_told_with_the_way_out(ops: Ops, switch: firestore.DocumentReference) -> None:
    switch.set({"version": 1, "trips": "none"})

    ran = ops("switch", "trip", "--scope", "all", "--reason", WHY)

    assert ran.status == 1
    assert "delete it in the console" in ran.said.splitlines()[-1]
