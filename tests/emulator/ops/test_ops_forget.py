"""Forgetting a user: nothing of them is left, and nothing is gained by it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest
from google.cloud import firestore

from firebreak import errors
from firebreak.bucket.arithmetic import Level
from firebreak.bucket.ledger import Ledger
from firebreak.bucket.reserve import Ask
from firebreak.store.times import DAY_US
from graph.documents import graph_of
from scripts.ops.limits import Limits
from tests.emulator.books import books
from tests.emulator.ops.conftest import Ops, ops_at
from tests.fault_proxy import Fault, FaultProxy, Way

LIMIT = 100_000
WHY = ("--reason", "the user has left")
PAGE = 450

type Records = Callable[[], list[dict[str, Any]]]


def ask(estimate: int) -> Ask:
    return Ask(estimate=estimate, limit=LIMIT, model="m")


def spend(ledger: Ledger, uid: str, tokens: int) -> None:
    ledger.settle(ledger.reserve(uid, "spent", ask(tokens)), actual=tokens, counters={"calls": 1, "charged": tokens})


def fill(collection: firestore.CollectionReference, count: int, fields: dict[str, object]) -> None:
    for start in range(0, count, PAGE):
        batch = collection._client.batch()
        for number in range(start, min(count, start + PAGE)):
            batch.set(collection.document(f"d{number}"), fields)
        batch.commit()


def live(direct: firestore.Client, uid: str, *, calls: int, nodes: int) -> None:
    """Give a user old calls, a graph, and hourly requests."""
    then = datetime.now(UTC) - timedelta(days=2)
    settled = {"status": "settled", "estimated": 9, "actual": 9, "createdAt": then}
    fill(direct.collection("token_buckets").document(uid).collection("calls"), calls, settled)
    fill(graph_of(uid, direct).collection("nodes"), nodes, {"label": "n"})
    fill(graph_of(uid, direct).collection("edges"), nodes, {"from": "d0", "to": "d1", "label": "e"})
    direct.collection("request_buckets").document(uid).set({"levels": {}, "version": 1})


def left(direct: firestore.Client, uid: str) -> list[str]:
    """The paths of all documents of a user but for the bucket."""
    bucket, graph = direct.collection("token_buckets").document(uid), graph_of(uid, direct)
    collections = [*bucket.collections(), *graph.collections()]
    found = [document.path for collection in collections for document in collection.list_documents()]
    requests = direct.collection("request_buckets").document(uid)
    return found + ([requests.path] if requests.get().exists else [])


def test_five_thousand_calls_and_a_graph_are_gone_but_for_the_bare_level(
    ops: Ops, direct: firestore.Client, uid: str, records: Records
) -> None:
    spend(Ledger(direct), uid, 60_000)
    live(direct, uid, calls=5_000, nodes=400)
    live(direct, other := uid + "x", calls=3, nodes=3)
    fill(direct.collection("token_buckets").document(uid).collection("notes"), 3, {"of": "an adopter's own"})

    ran = ops("user", "forget", uid, *WHY, "--json")

    assert left(direct, uid) == []
    assert ran.data["deleted"] == {"request_buckets": 1, "calls": 5_001, "notes": 3, "nodes": 400, "edges": 400}
    assert len(left(direct, other)) == 10
    bare = books(direct, uid).bucket or {}
    assert bare.keys() == {"tokens", "updatedAt", "version", "expireAt"}
    full_in = bare["expireAt"] - bare["updatedAt"]
    assert abs(full_in - timedelta(days=0.6)) < timedelta(minutes=1)
    assert [(record["what"], record["reason"]) for record in records()] == [("user.forget", WHY[1])]
    assert uid not in str(records())


def test_signing_up_anew_refills_nothing(ops: Ops, direct: firestore.Client, uid: str) -> None:
    spend(Ledger(direct), uid, 99_000)

    assert ops("user", "forget", uid, *WHY).status == 0

    with pytest.raises(errors.BucketEmpty):
        Ledger(direct).reserve(uid, "r", ask(2_000))
    Ledger(direct).reserve(uid, "s", ask(1_000))


def test_a_full_bucket_goes_too(ops: Ops, direct: firestore.Client, uid: str) -> None:
    ledger = Ledger(direct)
    ledger.settle(ledger.reserve(uid, "r", ask(5)), actual=0, counters={})

    ran = ops("user", "forget", uid, *WHY, "--json")

    seen = books(direct, uid)
    assert (seen.bucket, seen.calls) == (None, {})
    assert ran.data == {"deleted": {"calls": 1, "token_buckets": 1}, "kept": None, "running": 0}


def test_a_call_that_may_be_running_is_kept_with_the_bucket_and_settles(
    ops: Ops, direct: firestore.Client, uid: str
) -> None:
    """Its settling may owe more than was held: without its document that would be lost."""
    ledger = Ledger(direct)
    spend(ledger, uid, 1_000)
    hold = ledger.reserve(uid, "running", ask(1_000))

    ran = ops("user", "forget", uid, *WHY)
    ledger.settle(hold, actual=80_000, counters={})

    seen = books(direct, uid)
    assert ran.status == 1
    assert "run it again in an hour" in ran.said.splitlines()[-1]
    assert list(seen.calls) == ["running"]
    assert (seen.bucket or {})["tokens"] < LIMIT - 80_000
    assert ops("user", "forget", uid, *WHY).status == 0
    assert books(direct, uid).calls == {}


def test_a_full_bucket_with_a_call_that_may_be_running_stays(
    ops: Ops, direct: firestore.Client, bucket: firestore.DocumentReference, uid: str
) -> None:
    Ledger(direct).reserve(uid, "running", ask(1_000))
    bucket.update({"tokens": LIMIT, "version": firestore.Increment(1)})

    assert ops("user", "forget", uid, *WHY).status == 1

    kept = books(direct, uid).bucket or {}
    assert kept["tokens"] == LIMIT
    assert timedelta(hours=23) < kept["expireAt"] - datetime.now(UTC) < timedelta(hours=25)


def test_a_call_that_was_held_for_more_than_an_hour_stays_charged(
    ops: Ops, direct: firestore.Client, bucket: firestore.DocumentReference, uid: str
) -> None:
    Ledger(direct).reserve(uid, "lost", ask(1_000))
    bucket.collection("calls").document("lost").update({"createdAt": datetime.now(UTC) - timedelta(minutes=61)})

    assert ops("user", "forget", uid, *WHY).status == 0

    seen = books(direct, uid)
    assert (seen.calls, (seen.bucket or {})["tokens"]) == ({}, LIMIT - 1_000)


def test_a_blocked_user_stays_blocked(ops: Ops, direct: firestore.Client, uid: str) -> None:
    spend(Ledger(direct), uid, 1_000)
    ops("user", "limit", uid, "0", "--reason", "abuse")

    ran = ops("user", "forget", uid, *WHY)

    assert ran.status == 0
    assert (books(direct, uid).bucket or {}).keys() == {"tokens", "updatedAt", "version", "override"}
    with pytest.raises(errors.Blocked):
        Ledger(direct).reserve(uid, "r", ask(1))


def test_forgetting_again_finds_nothing_to_delete(ops: Ops, direct: firestore.Client, uid: str) -> None:
    spend(Ledger(direct), uid, 60_000)
    ops("user", "forget", uid, *WHY)
    before = books(direct, uid)

    again = ops("user", "forget", uid, *WHY, "--json")

    assert again.data["deleted"] == {}
    assert books(direct, uid) == before


def test_what_broke_off_is_recorded_and_goes_on_when_run_again(
    proxy: FaultProxy, faults: FaultProxy, direct: firestore.Client, uid: str, records: Records
) -> None:
    spend(Ledger(direct), uid, 60_000)
    live(direct, uid, calls=900, nodes=5)
    # The record's commit and a page of 300 get through.
    faults.plan(Fault("Commit", Way.BEFORE, grpc.StatusCode.PERMISSION_DENIED, skip=2))

    broken = ops_at(proxy.address)("user", "forget", uid, *WHY)
    midway = len(books(direct, uid).calls)
    again = ops_at(proxy.address)("user", "forget", uid, *WHY)

    assert (broken.status, midway, again.status) == (1, 601, 0)
    assert left(direct, uid) == []
    assert [record["what"] for record in records()] == ["user.forget"] * 2


def test_a_lost_reply_in_between_is_no_failure(
    proxy: FaultProxy, faults: FaultProxy, direct: firestore.Client, uid: str, records: Records
) -> None:
    spend(Ledger(direct), uid, 60_000)
    live(direct, uid, calls=400, nodes=5)
    faults.plan(Fault("Commit", Way.LOSE_REPLY), Fault("Commit", Way.LOSE_REPLY, skip=2), Fault("RunQuery", Way.BEFORE))

    ran = ops_at(proxy.address)("user", "forget", uid, *WHY)

    assert (ran.status, left(direct, uid), len(records())) == (0, [], 1)


def test_a_call_that_comes_meanwhile_is_forgotten_too(
    proxy: FaultProxy, faults: FaultProxy, direct: firestore.Client, bucket: firestore.DocumentReference, uid: str
) -> None:
    """Between the last look at the calls and the commit that bares the bucket."""
    ledger = Ledger(direct)
    spend(ledger, uid, 60_000)

    def call() -> None:
        hold = ledger.reserve(uid, "meanwhile", ask(1_000))
        ledger.settle(hold, actual=1_000, counters={"calls": 1})

    bares = b"expireAt"
    faults.plan(Fault("Commit", Way.BEFORE, first=call, matches=lambda sent: bares in sent and b"reason" not in sent))

    ran = ops_at(proxy.address)("user", "forget", uid, *WHY)

    seen = books(direct, uid)
    assert (ran.status, seen.calls) == (0, {})
    assert (seen.bucket or {}).keys() == {"tokens", "updatedAt", "version", "expireAt"}
    assert LIMIT - 61_000 <= (seen.bucket or {})["tokens"] < LIMIT - 60_900


def test_a_damaged_bucket_is_told_before_anything_is_deleted(
    ops: Ops, direct: firestore.Client, bucket: firestore.DocumentReference, uid: str, records: Records
) -> None:
    spend(Ledger(direct), uid, 60_000)
    bucket.update({"tokens": "plenty"})

    ran = ops("user", "forget", uid, *WHY)

    assert (ran.status, list(books(direct, uid).calls), records()) == (1, ["spent"], [])


@pytest.mark.parametrize(("tokens", "slowest"), [(60_000, 100_000), (-60_000, 1_000)])
def test_in_doubt_about_the_limit_the_level_is_kept_the_longest(tokens: int, slowest: int) -> None:
    """A large bucket takes the longest to fill, a debt the longest to pay with a small limit."""
    level = Level(tokens=tokens, updated_us=0)

    full_us = Limits(tokens=frozenset({0, 1_000, 100_000}), by="settings").full_at_us(level)

    assert full_us == (slowest - tokens) * DAY_US // slowest


def test_a_debt_is_paid_by_what_is_left_of_a_tightened_limit() -> None:
    limits = Limits(tokens=frozenset({1_000}), by="settings", percent=10)

    assert limits.full_at_us(Level(tokens=-100, updated_us=0)) == 2 * DAY_US
    assert limits.full_at_us(Level(tokens=0, updated_us=0)) == DAY_US
