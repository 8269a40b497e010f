"""Hourly requests: exact over instances and threads, at a fraction of a write each, and free to refuse."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from google.cloud import firestore

from firebreak import errors
from firebreak.limits.credit import LEASE_S
from firebreak.limits.lease import REFUSE_S
from firebreak.limits.requests import FIRST, Rate
from firebreak.store.documents import document_id, user_key
from firebreak.store.tries import Clock
from scripts.local.client import client_at
from tests.emulator.shifted import Shifted
from tests.fault_proxy import Fault, FaultProxy, Way

# Buys no request in the time that a test takes.
LIMIT = 40
PATIENCE_S = 60.0


@pytest.fixture
def rate(through_proxy: firestore.Client, faults: FaultProxy, shifted: Shifted) -> Rate:
    return Rate(through_proxy, Clock(monotonic=shifted))


def stored(client: firestore.Client, uid: str) -> dict[str, Any]:
    data: dict[str, Any] = client.collection("request_buckets").document(document_id(uid)).get().to_dict() or {}
    return data


def admitted(rate: Rate, uid: str, limit: int = LIMIT) -> int:
    """How many requests are admitted until one is refused; one that nobody decided is sent again."""
    count, end = 0, time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            rate.take(uid, "read", limit)
        except errors.RequestsUsedUp:
            return count
        except (errors.Contention, errors.StoreUnavailable):
            continue
        count += 1
    raise TimeoutError


@pytest.mark.parametrize("instances", [1, 4])
def test_a_hundred_callers_are_admitted_exactly_as_far_as_the_limit_goes(
    direct: firestore.Client, firestore_host: str, uid: str, instances: int
) -> None:
    rates = [Rate(client_at(firestore_host)) for _ in range(instances)]
    with ThreadPoolExecutor(max_workers=100) as callers:
        counts = list(callers.map(lambda number: admitted(rates[number % instances], uid), range(100)))

    assert sum(counts) == LIMIT
    assert stored(direct, uid)["levels"]["read"]["tokens"] == 0


def test_an_unknown_user_costs_one_read_and_one_commit(rate: Rate, faults: FaultProxy, uid: str) -> None:
    rate.take(uid, "read", LIMIT)

    assert faults.calls == {"BatchGetDocuments": 1, "Commit": 1}


def test_a_request_within_a_lease_costs_nothing(rate: Rate, faults: FaultProxy, uid: str) -> None:
    for _ in range(2):
        rate.take(uid, "read", LIMIT)
    faults.clear()

    rate.take(uid, "read", LIMIT)

    assert faults.calls == {}


def test_the_next_lease_of_a_known_user_costs_one_commit(rate: Rate, faults: FaultProxy, uid: str) -> None:
    for _ in range(FIRST):
        rate.take(uid, "read", 1_000)
    faults.clear()

    rate.take(uid, "read", 1_000)

    assert faults.calls == {"Commit": 1}


def test_two_hundred_requests_cost_a_dozen_commits(rate: Rate, faults: FaultProxy, uid: str) -> None:
    for _ in range(200):
        rate.take(uid, "read", 1_000)

    assert faults.calls["Commit"] <= 12
    assert faults.calls["BatchGetDocuments"] == 1


def test_a_refused_flood_costs_nothing(rate: Rate, faults: FaultProxy, uid: str) -> None:
    admitted(rate, uid)
    faults.clear()

    for _ in range(100):
        with pytest.raises(errors.RequestsUsedUp) as refusal:
            rate.take(uid, "read", LIMIT)

    assert faults.calls == {}
    assert refusal.value.details == {
        "reason": "requests",
        "kind": "read",
        "retryAfterSeconds": pytest.approx(3_600 / LIMIT, abs=PATIENCE_S),
        "remaining": 0,
        "limit": LIMIT,
    }


def test_read_and_write_requests_are_counted_apart(rate: Rate, direct: firestore.Client, uid: str) -> None:
    rate.take(uid, "write", LIMIT)
    before = stored(direct, uid)["levels"]["write"]

    assert admitted(rate, uid) == LIMIT
    assert stored(direct, uid)["levels"]["write"] == before
    rate.take(uid, "write", LIMIT)


def test_what_else_the_document_holds_stays(rate: Rate, direct: firestore.Client, uid: str) -> None:
    document = direct.collection("request_buckets").document(uid)
    rate.take(uid, "read", LIMIT)
    gone = {"tokens": 7, "updatedAt": stored(direct, uid)["expireAt"]}
    document.update({"levels.gone": gone, "note": "of an operator"})

    rate.take(uid, "read", LIMIT)

    after = stored(direct, uid)
    assert (after["levels"]["gone"], after["note"]) == (gone, "of an operator")


def test_a_limit_of_nothing_is_refused_for_good_and_costs_nothing(rate: Rate, faults: FaultProxy, uid: str) -> None:
    with pytest.raises(errors.RequestsUsedUp) as refusal:
        rate.take(uid, "write", 0)

    assert faults.calls == {}
    assert refusal.value.details == {"reason": "requests", "kind": "write", "remaining": 0, "limit": 0}


def test_what_is_leased_and_not_used_lapses(rate: Rate, direct: firestore.Client, shifted: Shifted, uid: str) -> None:
    for _ in range(4):
        rate.take(uid, "read", LIMIT)
    left = stored(direct, uid)["levels"]["read"]["tokens"]
    assert left < LIMIT - 4
    shifted.by += LEASE_S + 1

    assert admitted(rate, uid) == left


def test_what_is_leased_is_used_until_it_lapses(
    rate: Rate, direct: firestore.Client, shifted: Shifted, uid: str
) -> None:
    for _ in range(4):
        rate.take(uid, "read", LIMIT)
    admitted(Rate(direct), uid)
    shifted.by += LEASE_S - PATIENCE_S

    # An eighth of the limit was leased at first, and four of that are used.
    assert admitted(rate, uid) == LIMIT // 8 - 4


def test_a_refused_user_is_admitted_when_the_limit_has_refilled(
    rate: Rate, direct: firestore.Client, shifted: Shifted, uid: str
) -> None:
    admitted(rate, uid)
    document = direct.collection("request_buckets").document(uid)
    earlier = stored(direct, uid)["levels"]["read"]["updatedAt"] - timedelta(hours=1) / LIMIT * 3
    document.update({"levels.read.updatedAt": earlier})
    shifted.by += REFUSE_S + 1

    assert admitted(rate, uid) == 3


def test_a_deleted_document_starts_anew_and_its_version_fits_no_old_chain(
    rate: Rate, direct: firestore.Client, shifted: Shifted, uid: str
) -> None:
    document = direct.collection("request_buckets").document(uid)
    admitted(rate, uid)
    before = stored(direct, uid)["version"]
    document.delete()
    shifted.by += REFUSE_S + 1

    assert admitted(rate, uid) == LIMIT
    assert abs(stored(direct, uid)["version"] - before) > 1_000


def test_a_document_that_is_deleted_between_two_leases_costs_a_retry(
    rate: Rate, direct: firestore.Client, faults: FaultProxy, uid: str
) -> None:
    for _ in range(FIRST):
        rate.take(uid, "read", 1_000)
    direct.collection("request_buckets").document(uid).delete()
    faults.clear()

    rate.take(uid, "read", 1_000)

    assert faults.calls == {"Commit": 2, "BatchGetDocuments": 1}


@pytest.mark.parametrize(
    "levels",
    [
        5,
        {"read": 5},
        {"read": {"tokens": "many"}},
        {"read": {"tokens": float("nan"), "updatedAt": None}},
        {"read": {"tokens": 5, "updatedAt": "now"}},
        {"write": {"tokens": True}},
    ],
)
def test_a_document_that_holds_no_levels_refuses(
    rate: Rate, direct: firestore.Client, uid: str, levels: object, capsys: pytest.CaptureFixture[str]
) -> None:
    document = direct.collection("request_buckets").document(uid)
    written = document.set({"levels": levels})

    with pytest.raises(errors.StoreUnavailable):
        rate.take(uid, "read", LIMIT)

    assert '"error": "Corrupt"' in capsys.readouterr().out
    assert document.get().update_time == written.update_time


def test_every_uid_has_a_document_of_its_own(rate: Rate, uid: str) -> None:
    for name in ["a/b{}", "a%2Fb{}", "a.b{}", "a%2Eb{}", "__{}__", "_{}_", "ü`\\{}"]:
        assert admitted(rate, user_key(name.format(uid)), 10) == 10
        assert admitted(rate, user_key(name.format(uid), "acme"), 10) == 10


def test_threads_that_need_a_lease_at_once_share_one(rate: Rate, faults: FaultProxy, uid: str) -> None:
    for _ in range(7):
        rate.take(uid, "read", 1_000)
    faults.clear()
    start = threading.Barrier(8)

    def call(_: int) -> None:
        start.wait()
        rate.take(uid, "read", 1_000)

    with ThreadPoolExecutor(max_workers=8) as callers:
        list(callers.map(call, range(8)))

    assert faults.calls == {"Commit": 1}


def test_while_one_user_waits_for_the_store_another_is_admitted(rate: Rate, faults: FaultProxy, uid: str) -> None:
    stuck, go_on = threading.Event(), threading.Event()

    def hang() -> None:
        stuck.set()
        go_on.wait(PATIENCE_S)

    faults.plan(Fault("Commit", Way.BEFORE, matches=lambda request: uid.encode() in request, first=hang))
    with ThreadPoolExecutor(max_workers=1) as slow:
        waiting = slow.submit(rate.take, uid, "read", LIMIT)
        assert stuck.wait(PATIENCE_S)

        rate.take("other" + uid, "read", LIMIT)

        assert not waiting.done()
        go_on.set()
        assert waiting.exception(PATIENCE_S) is None


def test_a_refusal_from_memory_does_not_wait_for_a_lease(rate: Rate, faults: FaultProxy, uid: str) -> None:
    admitted(rate, uid)
    stuck, go_on = threading.Event(), threading.Event()

    def hang() -> None:
        stuck.set()
        go_on.wait(PATIENCE_S)

    faults.plan(Fault("Commit", Way.BEFORE, first=hang))
    with ThreadPoolExecutor(max_workers=1) as slow:
        waiting = slow.submit(rate.take, uid, "write", LIMIT)
        assert stuck.wait(PATIENCE_S)

        with pytest.raises(errors.RequestsUsedUp):
            rate.take(uid, "read", LIMIT)

        assert not waiting.done()
        go_on.set()
        assert waiting.exception(PATIENCE_S) is None
