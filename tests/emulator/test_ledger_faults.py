"""Every RPC of reserve and settle failing each way: no call is charged twice, refunded twice, or free."""

import json
from collections.abc import Callable

import grpc
import pytest
from google.cloud import firestore

from firebreak import errors
from firebreak.bucket.ledger import Ledger
from firebreak.bucket.reserve import Ask
from tests.emulator.books import books
from tests.fault_proxy import Fault, FaultProxy, Way

LIMIT = 1_000
ESTIMATE = 100
ASK = Ask(estimate=ESTIMATE, limit=LIMIT, model="m")
STATUSES = [
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.INTERNAL,
]
WAYS = [Way.BEFORE, Way.LOSE_REPLY, Way.LATE, Way.TWICE]
PLACES = [("Commit", 0), ("Commit", 1), ("BatchGetDocuments", 0), ("BatchGetDocuments", 1), ("BatchGetDocuments", 2)]


def holds(word: bytes) -> Callable[[bytes], bool]:
    return lambda request: word in request


@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"{place[0]}-{place[1]}")
@pytest.mark.parametrize("status", STATUSES, ids=lambda status: status.name)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_a_call_is_charged_once_whatever_fails_once(
    ledger: Ledger,
    direct: firestore.Client,
    faults: FaultProxy,
    uid: str,
    way: Way,
    status: grpc.StatusCode,
    place: tuple[str, int],
) -> None:
    """Both commits, and each read that a first failure brings about, fail in turn."""
    method, skip = place
    faults.plan(Fault(method, way, status, skip=skip))
    if method == "BatchGetDocuments" and skip:
        faults.plan(Fault("Commit", Way.LOSE_REPLY, grpc.StatusCode.UNAVAILABLE))

    hold = ledger.reserve(uid, "r", ASK)
    settled = ledger.settle(hold, actual=40, counters={"calls": 1})
    faults.release()

    seen = books(direct, uid)
    assert settled.booked
    assert seen.statuses() == ["settled"]
    assert seen.bucket is not None
    assert LIMIT - 40 <= seen.bucket["tokens"] <= LIMIT - 39
    assert seen.bucket["lifetime"] == {"calls": 1}


@pytest.mark.parametrize("way", [Way.BEFORE, Way.LOSE_REPLY, Way.LATE], ids=lambda way: way.name)
def test_a_debt_is_booked_once_whatever_fails_once(
    ledger: Ledger, direct: firestore.Client, faults: FaultProxy, uid: str, way: Way
) -> None:
    hold = ledger.reserve(uid, "r", ASK)
    faults.plan(Fault("Commit", way, grpc.StatusCode.UNAVAILABLE))

    ledger.settle(hold, actual=400, counters={"calls": 1})
    faults.release()

    seen = books(direct, uid)
    assert seen.bucket is not None
    assert LIMIT - 400 <= seen.bucket["tokens"] <= LIMIT - 399


def test_a_refusal_with_a_live_attempt_voids_the_call_first(
    ledger: Ledger, direct: firestore.Client, faults: FaultProxy, uid: str
) -> None:
    """Rule 5: every commit of the reserve is still on its way when time runs out."""
    faults.plan(Fault("Commit", Way.LATE, grpc.StatusCode.DEADLINE_EXCEEDED, times=1_000, matches=holds(b"held")))

    with pytest.raises(errors.StoreUnavailable):
        ledger.reserve(uid, "r", ASK)
    faults.release()

    seen = books(direct, uid)
    assert seen.statuses() == ["void"]
    assert seen.bucket is None


def test_an_attempt_that_lands_between_the_two_looks_is_found(
    ledger: Ledger, direct: firestore.Client, faults: FaultProxy, uid: str
) -> None:
    """Rule 4: the bucket is read before the call; the other way round the attempt would look like a stranger's."""
    faults.plan(
        Fault("Commit", Way.LATE, grpc.StatusCode.UNAVAILABLE),
        Fault("BatchGetDocuments", Way.BEFORE, skip=2, first=faults.release),
    )

    hold = ledger.reserve(uid, "r", Ask(estimate=LIMIT, limit=LIMIT, model="m"))

    assert hold.estimated == LIMIT
    assert books(direct, uid).statuses() == ["held"]


def test_an_attempt_that_was_applied_after_all_is_found_when_it_is_voided(
    ledger: Ledger, direct: firestore.Client, faults: FaultProxy, uid: str
) -> None:
    """Rule 5: no look succeeds until time is up; that the call cannot be voided tells that it may be held."""
    faults.plan(
        Fault("Commit", Way.LOSE_REPLY, grpc.StatusCode.UNAVAILABLE),
        Fault("Commit", Way.BEFORE, matches=holds(b"void"), first=faults.forget),
        Fault("BatchGetDocuments", Way.BEFORE, grpc.StatusCode.UNAVAILABLE, skip=1, times=1_000),
    )

    hold = ledger.reserve(uid, "r", ASK)

    seen = books(direct, uid)
    assert hold.estimated == ESTIMATE
    assert seen.statuses() == ["held"]
    assert seen.bucket is not None
    assert seen.bucket["tokens"] == LIMIT - ESTIMATE


def test_an_attempt_that_was_applied_and_that_no_look_finds_stays_held(
    ledger: Ledger, direct: firestore.Client, faults: FaultProxy, uid: str, capsys: pytest.CaptureFixture[str]
) -> None:
    faults.plan(
        Fault("Commit", Way.LOSE_REPLY, grpc.StatusCode.UNAVAILABLE),
        Fault("BatchGetDocuments", Way.BEFORE, grpc.StatusCode.UNAVAILABLE, skip=1, times=1_000),
    )

    with pytest.raises(errors.StoreUnavailable):
        ledger.reserve(uid, "r", ASK)

    assert books(direct, uid).statuses() == ["held"]
    assert "firebreak.reserve_unresolved" in capsys.readouterr().out


def test_no_answer_at_all_leaves_the_call_held_once_and_says_so(
    ledger: Ledger, direct: firestore.Client, faults: FaultProxy, uid: str, capsys: pytest.CaptureFixture[str]
) -> None:
    faults.plan(Fault("Commit", Way.LATE, grpc.StatusCode.UNAVAILABLE, times=1_000))

    with pytest.raises(errors.StoreUnavailable):
        ledger.reserve(uid, "r", ASK)
    faults.release()

    seen = books(direct, uid)
    assert len(seen.calls) == 1
    assert seen.bucket is None or seen.bucket["tokens"] == LIMIT - ESTIMATE
    messages = [json.loads(line)["message"] for line in capsys.readouterr().out.splitlines()]
    assert "firebreak.reserve_unresolved" in messages


def test_a_settle_that_gets_no_answer_stays_charged_at_the_estimate(
    ledger: Ledger, direct: firestore.Client, faults: FaultProxy, uid: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hold = ledger.reserve(uid, "r", ASK)
    faults.plan(Fault("Commit", Way.BEFORE, grpc.StatusCode.PERMISSION_DENIED, times=1_000))

    settled = ledger.settle(hold, actual=0, counters={"calls": 1})

    seen = books(direct, uid)
    assert not settled.booked
    assert seen.statuses() == ["held"]
    assert seen.bucket is not None
    assert seen.bucket["tokens"] == LIMIT - ESTIMATE
    assert json.loads(capsys.readouterr().out)["message"] == "firebreak.settle_failed"


def test_a_settle_after_the_bucket_was_deleted_books_the_call_alone(
    ledger: Ledger, direct: firestore.Client, uid: str
) -> None:
    hold = ledger.reserve(uid, "r", ASK)
    direct.collection("token_buckets").document(uid).delete()

    ledger.settle(hold, actual=40, counters={"calls": 1})

    seen = books(direct, uid)
    assert seen.bucket is None
    assert seen.calls["r"]["actual"] == 40


def test_a_settle_after_both_were_deleted_writes_nothing(ledger: Ledger, direct: firestore.Client, uid: str) -> None:
    hold = ledger.reserve(uid, "r", ASK)
    bucket = direct.collection("token_buckets").document(uid)
    bucket.collection("calls").document("r").delete()
    bucket.delete()

    ledger.settle(hold, actual=40, counters={"calls": 1})

    seen = books(direct, uid)
    assert (seen.bucket, seen.calls) == (None, {})
