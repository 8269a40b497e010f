"""Reserve and settle against the real emulator, one caller at a time."""

import json
from datetime import timedelta

import grpc
import pytest
from google.cloud import firestore

from firebreak import errors
from firebreak.bucket import reserve
from firebreak.bucket.ledger import Ledger
from firebreak.bucket.reserve import Ask
from firebreak.metering.meter import unmetered
from firebreak.store.documents import document_id, user_key
from scripts.local.client import client_at, metered_at
from tests.emulator.books import books
from tests.fault_proxy import Fault, FaultProxy, Way

LIMIT = 10_000
COUNTERS = {"calls": 1, "charged": 7}


def ask(estimate: int = 1_000, limit: int = LIMIT) -> Ask:
    return Ask(estimate=estimate, limit=limit, model="m")


def test_reserve_charges_the_estimate_and_holds_the_call(ledger: Ledger, direct: firestore.Client, uid: str) -> None:
    ledger.reserve(uid, "r", ask())

    seen = books(direct, uid)
    assert seen.bucket is not None
    assert seen.bucket["tokens"] == LIMIT - 1_000
    assert seen.calls["r"]["status"] == "held"
    assert seen.calls["r"]["estimated"] == 1_000
    assert seen.calls["r"]["expireAt"] - seen.calls["r"]["createdAt"] == timedelta(days=30)


def test_reserve_is_one_read_and_one_commit_and_settle_is_one_commit(
    ledger: Ledger, faults: FaultProxy, uid: str
) -> None:
    hold = ledger.reserve(uid, "r", ask())
    assert faults.calls == {"BatchGetDocuments": 1, "Commit": 1}

    ledger.settle(hold, actual=1, counters=COUNTERS)

    assert faults.calls == {"BatchGetDocuments": 1, "Commit": 2}


def test_settle_refunds_what_was_not_used_and_counts_it(ledger: Ledger, direct: firestore.Client, uid: str) -> None:
    settled = ledger.settle(ledger.reserve(uid, "r", ask()), actual=300, counters=COUNTERS)

    seen = books(direct, uid)
    assert seen.bucket is not None
    assert settled.remaining == seen.bucket["tokens"] == LIMIT - 300
    assert seen.bucket["lifetime"] == COUNTERS
    assert (seen.calls["r"]["status"], seen.calls["r"]["actual"]) == ("settled", 300)


def test_settling_twice_is_settling_once(ledger: Ledger, direct: firestore.Client, uid: str) -> None:
    hold = ledger.reserve(uid, "r", ask())
    ledger.settle(hold, actual=300, counters=COUNTERS)
    again = ledger.settle(hold, actual=0, counters=COUNTERS)

    seen = books(direct, uid)
    assert seen.bucket is not None
    assert seen.bucket["tokens"] == LIMIT - 300
    assert seen.bucket["lifetime"] == COUNTERS
    assert again.booked


def test_a_refusal_writes_nothing(ledger: Ledger, direct: firestore.Client, uid: str) -> None:
    ledger.reserve(uid, "r", ask(9_500))
    before = books(direct, uid)

    with pytest.raises(errors.BucketEmpty) as refusal:
        ledger.reserve(uid, "s", ask())

    assert books(direct, uid) == before
    assert refusal.value.details["reason"] == "tokens"
    assert 500 <= int(refusal.value.details["remaining"]) < 510
    assert 4_200 <= int(refusal.value.details["retryAfterSeconds"]) <= 4_320
    assert refusal.value.details["limit"] == LIMIT


def test_an_estimate_above_the_limit_can_never_fit(ledger: Ledger, direct: firestore.Client, uid: str) -> None:
    with pytest.raises(errors.TooLarge) as refusal:
        ledger.reserve(uid, "r", ask(LIMIT + 1))

    assert books(direct, uid).bucket is None
    assert "retryAfterSeconds" not in refusal.value.details


def test_usage_above_the_estimate_is_a_debt(ledger: Ledger, direct: firestore.Client, uid: str) -> None:
    hold = ledger.reserve(uid, "r", ask())
    ledger.settle(hold, actual=15_000, counters=COUNTERS)

    seen = books(direct, uid)
    assert seen.bucket is not None
    assert -5_000 <= seen.bucket["tokens"] < -4_900
    assert seen.charged == 15_000
    with pytest.raises(errors.BucketEmpty):
        ledger.reserve(uid, "s", ask(1))


def test_a_debt_cannot_vanish_under_the_cap(ledger: Ledger, direct: firestore.Client, uid: str) -> None:
    """Rule 7: the level as of now is full; an increment on the old one would be refilled away."""
    hold = ledger.reserve(uid, "r", ask())
    bucket = direct.collection("token_buckets").document(document_id(uid))
    stored = bucket.get().to_dict() or {}
    bucket.update({"tokens": 5_000, "updatedAt": stored["updatedAt"] - timedelta(days=2), "version": 7})

    ledger.settle(hold, actual=4_000, counters=COUNTERS)

    with pytest.raises(errors.BucketEmpty):
        ledger.reserve(uid, "s", ask(LIMIT - 2_900))
    ledger.reserve(uid, "t", ask(LIMIT - 3_000))


def test_a_user_who_was_blocked_meanwhile_owes_what_the_call_cost_and_no_more(
    ledger: Ledger, direct: firestore.Client, uid: str
) -> None:
    hold = ledger.reserve(uid, "r", ask())
    direct.collection("token_buckets").document(uid).update({"override": 0, "version": firestore.Increment(1)})

    ledger.settle(hold, actual=1_500, counters=COUNTERS)

    seen = books(direct, uid)
    assert seen.bucket is not None
    assert seen.bucket["tokens"] == LIMIT - 1_500


def test_a_refund_is_never_above_the_limit(ledger: Ledger, uid: str) -> None:
    ledger.settle(ledger.reserve(uid, "r", ask()), actual=0, counters=COUNTERS)

    with pytest.raises(errors.TooLarge):
        ledger.reserve(uid, "s", ask(LIMIT + 1))
    ledger.reserve(uid, "t", ask(LIMIT))


@pytest.mark.parametrize(
    ("actual", "details"),
    [
        (None, {"reason": "duplicate", "status": "held", "charged": 1_000}),
        (300, {"reason": "duplicate", "status": "settled", "charged": 300}),
        (0, {"reason": "duplicate", "status": "settled", "charged": 0}),
    ],
)
def test_a_second_use_of_a_request_id_charges_nothing(
    ledger: Ledger, direct: firestore.Client, uid: str, actual: int | None, details: dict[str, object]
) -> None:
    hold = ledger.reserve(uid, "r", ask())
    if actual is not None:
        ledger.settle(hold, actual=actual, counters=COUNTERS)
    before = books(direct, uid)

    with pytest.raises(errors.Duplicate) as refusal:
        ledger.reserve(uid, "r", ask())

    assert refusal.value.details == details
    assert books(direct, uid) == before


def test_a_second_use_is_told_apart_from_an_empty_bucket(
    ledger: Ledger, direct: firestore.Client, through_proxy: firestore.Client, uid: str
) -> None:
    ledger.reserve(uid, "r", ask(LIMIT))

    with pytest.raises(errors.Duplicate):
        Ledger(through_proxy).reserve(uid, "r", ask(LIMIT))


def test_a_database_that_is_not_there_is_an_outage_and_no_lost_race(
    ledger: Ledger, faults: FaultProxy, uid: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for status in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION):
        faults.plan(Fault("BatchGetDocuments", Way.BEFORE, status))

        with pytest.raises(errors.StoreUnavailable):
            ledger.reserve(uid, "r", ask())

        assert json.loads(capsys.readouterr().out)["message"] == "firebreak.store"


def test_a_request_id_is_bound_to_its_user(ledger: Ledger, direct: firestore.Client, uid: str) -> None:
    ledger.reserve(uid, "r", ask())
    ledger.reserve(uid + "2", "r", ask())

    assert books(direct, uid + "2").statuses() == ["held"]


def test_an_override_wins_and_zero_blocks(ledger: Ledger, direct: firestore.Client, uid: str) -> None:
    ledger.reserve(uid, "r", ask())
    bucket = direct.collection("token_buckets").document(document_id(uid))

    bucket.update({"override": 500})
    with pytest.raises(errors.TooLarge) as refusal:
        ledger.reserve(uid, "s", ask(501))
    bucket.update({"override": 0})
    with pytest.raises(errors.Blocked):
        ledger.reserve(uid, "t", ask(1))

    assert refusal.value.details["limit"] == 500


@pytest.mark.parametrize("tokens", [float("nan"), "plenty", None, True])
def test_a_corrupt_level_refuses(
    ledger: Ledger,
    direct: firestore.Client,
    uid: str,
    tokens: object,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bucket = direct.collection("token_buckets").document(document_id(uid))
    bucket.set({"tokens": tokens, "updatedAt": firestore.SERVER_TIMESTAMP})

    with pytest.raises(errors.StoreUnavailable):
        ledger.reserve(uid, "r", ask(1))

    assert json.loads(capsys.readouterr().out)["message"] == "firebreak.store"


def test_a_bucket_of_the_published_pattern_is_adopted(ledger: Ledger, direct: firestore.Client, uid: str) -> None:
    bucket = direct.collection("token_buckets").document(document_id(uid))
    bucket.set({"tokens": 4_000.75, "updatedAt": firestore.SERVER_TIMESTAMP})

    hold = ledger.reserve(uid, "r", ask(3_000))
    ledger.settle(hold, actual=1_000, counters=COUNTERS)

    stored = bucket.get().to_dict() or {}
    assert 3_000 <= stored["tokens"] < 3_010
    assert isinstance(stored["version"], int)


def test_an_unreachable_store_refuses_within_three_seconds(uid: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(errors.StoreUnavailable) as refusal:
        Ledger(client_at("127.0.0.1:9")).reserve(uid, "r", ask())

    assert refusal.value.details == {"reason": "store", "retryAfterSeconds": 5}
    assert json.loads(capsys.readouterr().out)["message"] == "firebreak.store"
    assert reserve.RESERVE_S + reserve.VOID_S < 3


def test_a_uid_of_any_form_has_a_bucket_of_its_own(ledger: Ledger, direct: firestore.Client, uid: str) -> None:
    strange = [user_key(one) for one in (f"{uid}/x", f"{uid}.x", f"{uid}%2Fx", f"__{uid}__")]
    strange += [user_key(uid, tenant) for tenant in ("a", "b")]
    for one in strange:
        ledger.reserve(one, "r", ask())

    assert [books(direct, one).charged for one in strange] == [1_000] * 6


def test_overview_shows_the_refilled_level_and_writes_nothing(
    ledger: Ledger, direct: firestore.Client, faults: FaultProxy, uid: str
) -> None:
    ledger.settle(ledger.reserve(uid, "r", ask()), actual=300, counters=COUNTERS)
    before = books(direct, uid)
    faults.clear()

    seen = ledger.overview(uid, limit=LIMIT)

    assert LIMIT - 300 <= seen.level.tokens < LIMIT - 290
    assert seen.lifetime == COUNTERS
    assert [call["actual"] for call in seen.recent] == [300]
    assert books(direct, uid) == before
    assert faults.calls == {"BatchGetDocuments": 1, "RunQuery": 1}


def test_an_overview_whose_answer_breaks_off_is_unavailable(ledger: Ledger, faults: FaultProxy, uid: str) -> None:
    for request_id in ("r", "s"):
        ledger.reserve(uid, request_id, ask())
    shown = Ledger(metered_at(faults.address))
    faults.plan(Fault("RunQuery", Way.LOSE_REPLY, kept=1))

    with unmetered("a test"), pytest.raises(errors.StoreUnavailable):
        shown.overview(uid, limit=LIMIT)


def test_overview_of_a_new_user_is_a_full_bucket(ledger: Ledger, uid: str) -> None:
    seen = ledger.overview(uid, limit=LIMIT)

    assert (seen.level.tokens, seen.recent) == (LIMIT, [])


@pytest.mark.parametrize("actual", [50, 300], ids=["a refund", "a debt"])
def test_a_limit_of_the_buckets_own_does_not_expire_with_it(
    ledger: Ledger, direct: firestore.Client, uid: str, actual: int
) -> None:
    """Else a user whom an operator has bounded would be free of it a month after the last call."""
    bucket = direct.collection("token_buckets").document(uid)
    fields = {"tokens": 500, "updatedAt": firestore.SERVER_TIMESTAMP, "version": 1, "override": 500}
    bucket.set(fields)

    ledger.settle(ledger.reserve(uid, "r", ask(100)), actual=actual, counters={})

    assert "expireAt" not in (bucket.get().to_dict() or {})
