"""What an admission, a refusal and a settle cost at the wire, and that the memory behind it never admits too much."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from google.cloud import firestore

from firebreak import errors
from firebreak.bucket import memory
from firebreak.bucket.ledger import Ledger
from firebreak.bucket.reserve import Ask
from firebreak.store.documents import document_id
from firebreak.store.tries import Clock
from tests.emulator.books import books
from tests.emulator.shifted import Shifted
from tests.fault_proxy import Fault, FaultProxy, Way

LIMIT = 1_000


def ask(estimate: int = 100, limit: int = LIMIT) -> Ask:
    return Ask(estimate=estimate, limit=limit, model="m")


@pytest.fixture
def ledger(through_proxy: firestore.Client, faults: FaultProxy, shifted: Shifted) -> Ledger:
    return Ledger(through_proxy, Clock(monotonic=shifted))


def test_a_known_user_is_admitted_with_one_commit_and_settled_with_one(
    ledger: Ledger, faults: FaultProxy, uid: str
) -> None:
    ledger.settle(ledger.reserve(uid, "first", ask()), actual=10, counters={})
    faults.clear()

    for number in range(5):
        hold = ledger.reserve(uid, f"r{number}", ask())
        ledger.settle(hold, actual=10, counters={"calls": 1})

    assert faults.calls == {"Commit": 10}


def test_an_unknown_user_is_admitted_with_one_read_and_one_commit(ledger: Ledger, faults: FaultProxy, uid: str) -> None:
    ledger.reserve(uid, "r", ask())

    assert faults.calls == {"BatchGetDocuments": 1, "Commit": 1}


def test_a_refusal_from_what_is_known_costs_nothing(ledger: Ledger, faults: FaultProxy, uid: str) -> None:
    ledger.reserve(uid, "r", ask(950))
    faults.clear()

    for number in range(100):
        with pytest.raises(errors.BucketEmpty) as refusal:
            ledger.reserve(uid, f"s{number}", ask())

    assert faults.calls == {}
    assert refusal.value.details["remaining"] == 50


def test_a_refusal_is_never_staler_than_its_bound(
    ledger: Ledger, direct: firestore.Client, shifted: Shifted, uid: str
) -> None:
    ledger.reserve(uid, "r", ask(950))
    other = Ledger(direct)
    other.settle(other.reserve(uid, "s", ask(40)), actual=0, counters={})
    direct.collection("token_buckets").document(uid).update({"tokens": LIMIT, "version": firestore.Increment(1)})

    with pytest.raises(errors.BucketEmpty):
        ledger.reserve(uid, "t", ask())
    shifted.by += memory.REFUSE_S + 0.1

    assert ledger.reserve(uid, "t", ask())


def test_a_settle_of_this_instance_clears_a_refusal_at_once(ledger: Ledger, faults: FaultProxy, uid: str) -> None:
    hold = ledger.reserve(uid, "r", ask(950))
    with pytest.raises(errors.BucketEmpty):
        ledger.reserve(uid, "s", ask())
    ledger.settle(hold, actual=100, counters={})
    faults.clear()

    assert ledger.reserve(uid, "s", ask())
    assert faults.calls == {"Commit": 1}


def test_a_wrong_guess_costs_one_retry_and_admits_nothing_that_does_not_fit(
    ledger: Ledger, direct: firestore.Client, faults: FaultProxy, uid: str
) -> None:
    ledger.reserve(uid, "r", ask(100))
    Ledger(direct).reserve(uid, "other", ask(850))
    faults.clear()

    with pytest.raises(errors.BucketEmpty):
        ledger.reserve(uid, "s", ask(100))

    assert faults.calls == {"Commit": 1, "BatchGetDocuments": 2}
    assert books(direct, uid).charged == 950


def test_a_foreign_write_that_kept_the_version_is_not_mistaken_for_the_known_state(
    ledger: Ledger, direct: firestore.Client, uid: str
) -> None:
    """The precondition is the update_time; an operator's tool that forgot the version cannot fool it."""
    ledger.reserve(uid, "r", ask(100))
    direct.collection("token_buckets").document(uid).update({"tokens": 50})

    with pytest.raises(errors.BucketEmpty):
        ledger.reserve(uid, "s", ask(100))


def test_an_override_that_an_operator_set_is_obeyed(ledger: Ledger, direct: firestore.Client, uid: str) -> None:
    ledger.reserve(uid, "r", ask(100))
    direct.collection("token_buckets").document(uid).update({"override": 0, "version": firestore.Increment(1)})

    with pytest.raises(errors.Blocked):
        ledger.reserve(uid, "s", ask(100))


def test_a_bucket_that_was_deleted_starts_anew_and_its_version_fits_no_old_chain(
    ledger: Ledger, direct: firestore.Client, uid: str
) -> None:
    """Rule 3: what an instance knows of the old bucket must not match the new one."""
    bucket = direct.collection("token_buckets").document(document_id(uid))
    ledger.reserve(uid, "r", ask(400))
    before = (bucket.get().to_dict() or {})["version"]
    bucket.delete()

    ledger.reserve(uid, "s", ask(500))

    after = (bucket.get().to_dict() or {})["version"]
    assert abs(after - before) > 1_000


def test_a_lost_settle_leaves_the_state_unknown_and_the_next_reserve_reads(
    ledger: Ledger, direct: firestore.Client, faults: FaultProxy, uid: str
) -> None:
    hold = ledger.reserve(uid, "r", ask(100))
    faults.plan(Fault("Commit", Way.LOSE_REPLY, grpc.StatusCode.UNAVAILABLE))
    ledger.settle(hold, actual=0, counters={})
    faults.clear()

    ledger.reserve(uid, "s", ask(1_000))

    assert faults.calls == {"BatchGetDocuments": 1, "Commit": 1}
    assert books(direct, uid).charged == 1_000


@pytest.mark.parametrize("way", [Way.BEFORE, Way.LOSE_REPLY, Way.LATE, Way.TWICE], ids=lambda way: way.name)
@pytest.mark.parametrize("status", [grpc.StatusCode.ABORTED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL])
def test_the_hot_path_charges_once_whatever_fails_once(
    ledger: Ledger, direct: firestore.Client, faults: FaultProxy, uid: str, way: Way, status: grpc.StatusCode
) -> None:
    ledger.reserve(uid, "first", ask(100))
    faults.plan(Fault("Commit", way, status))

    hold = ledger.reserve(uid, "r", ask(200))
    ledger.settle(hold, actual=50, counters={})
    faults.release()

    seen = books(direct, uid)
    assert seen.charged == 150
    assert seen.bucket is not None
    assert LIMIT - 150 <= seen.bucket["tokens"] <= LIMIT - 149


def test_instances_that_all_know_an_old_state_admit_exactly_what_fits(
    direct: firestore.Client, through_proxy: firestore.Client, uid: str
) -> None:
    instances = [Ledger(client) for client in (direct, through_proxy) for _ in range(4)]
    for number, instance in enumerate(instances):
        instance.reserve(uid, f"warm{number}", ask(10))
    start = threading.Barrier(8)

    def call(number: int) -> str:
        start.wait()
        for _ in range(200):
            try:
                instances[number % 8].reserve(uid, f"r{number}", ask(100))
            except errors.Contention:
                continue
            except errors.Refused as refusal:
                return refusal.reason.value
            return "admitted"
        return "undecided"

    with ThreadPoolExecutor(max_workers=8) as pool:
        outcomes = Counter(pool.map(call, range(16)))

    assert outcomes == {"admitted": 9, "tokens": 7}
    assert books(direct, uid).charged == 80 + 900


def test_an_instance_that_was_suspended_refills_no_more_than_the_server_would(
    ledger: Ledger, shifted: Shifted, uid: str
) -> None:
    """A monotonic clock that jumps forward is believed for a minute at most, and then the server is asked."""
    ledger.reserve(uid, "r", ask(950))
    shifted.by += 3_600

    with pytest.raises(errors.BucketEmpty) as refusal:
        ledger.reserve(uid, "s", ask())

    assert int(refusal.value.details["remaining"]) <= 51


def test_a_monotonic_clock_that_runs_fast_within_its_minute_buys_no_more_than_that_minute(
    ledger: Ledger, direct: firestore.Client, shifted: Shifted, uid: str
) -> None:
    ledger.reserve(uid, "r", ask(1_000))
    shifted.by += 59
    with pytest.raises(errors.BucketEmpty) as refusal:
        ledger.reserve(uid, "s", ask())

    assert int(refusal.value.details["remaining"]) <= 1
    assert books(direct, uid).charged == 1_000
