"""Every RPC of a lease failing each way: what is admitted was taken before, once; a lost chunk is gone."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from google.cloud import firestore

from firebreak import errors
from firebreak.limits.requests import TAKE_S, Rate
from scripts.local.client import client_at
from tests.emulator.test_rate import LIMIT, admitted, stored
from tests.fault_proxy import Fault, FaultProxy, Way

STATUSES = [
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.INTERNAL,
]
WAYS = [Way.BEFORE, Way.LOSE_REPLY, Way.LATE, Way.TWICE]
# The first commit, which creates, one that goes from a known state, and reads.
PLACES = [("Commit", 0), ("Commit", 2), ("BatchGetDocuments", 0)]
# The largest lease of a limit of 40.
CHUNK = LIMIT // 8


@pytest.fixture
def rate(through_proxy: firestore.Client, faults: FaultProxy) -> Rate:
    return Rate(through_proxy)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"{place[0]}-{place[1]}")
@pytest.mark.parametrize("status", STATUSES, ids=lambda status: status.name)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_whatever_fails_once_admits_no_more_than_the_limit_and_loses_a_chunk_at_most(
    rate: Rate,
    direct: firestore.Client,
    faults: FaultProxy,
    uid: str,
    way: Way,
    status: grpc.StatusCode,
    place: tuple[str, int],
) -> None:
    method, skip = place
    faults.plan(Fault(method, way, status, skip=skip))

    first = admitted(rate, uid)
    faults.release()
    count = first + admitted(Rate(direct), uid)

    assert LIMIT - CHUNK <= count <= LIMIT
    assert stored(direct, uid)["levels"]["read"]["tokens"] == 0


def test_what_a_lost_reply_took_is_gone(rate: Rate, direct: firestore.Client, faults: FaultProxy, uid: str) -> None:
    for _ in range(3):
        rate.take(uid, "read", LIMIT)
    faults.plan(Fault("Commit", Way.LOSE_REPLY))

    assert admitted(rate, uid) == LIMIT - 3 - 4


@pytest.mark.parametrize("way", [Way.LOSE_REPLY, Way.LATE, Way.TWICE], ids=lambda way: way.name)
def test_instances_whose_commits_fail_again_and_again_never_admit_more_than_the_limit(
    direct: firestore.Client, proxy: FaultProxy, faults: FaultProxy, uid: str, way: Way
) -> None:
    rates = [Rate(client_at(proxy.address)) for _ in range(3)]
    faults.plan(*(Fault("Commit", way, skip=skip) for skip in range(0, 24, 3)))

    with ThreadPoolExecutor(max_workers=24) as callers:
        counts = list(callers.map(lambda number: admitted(rates[number % 3], uid), range(24)))
    faults.release()
    counts.append(admitted(Rate(direct), uid))

    assert sum(counts) <= LIMIT
    assert stored(direct, uid)["levels"]["read"]["tokens"] == 0


def test_a_store_that_is_down_refuses_in_time_and_admits_when_it_is_back(
    rate: Rate, faults: FaultProxy, uid: str, capsys: pytest.CaptureFixture[str]
) -> None:
    faults.plan(Fault("BatchGetDocuments", Way.BEFORE, times=1_000), Fault("Commit", Way.BEFORE, times=1_000))

    with pytest.raises(errors.StoreUnavailable) as refusal:
        rate.take(uid, "read", LIMIT)
    faults.forget()

    assert refusal.value.details == {"reason": "store", "retryAfterSeconds": 5}
    assert '"step": "rate"' in capsys.readouterr().out
    rate.take(uid, "read", LIMIT)


def test_what_is_leased_is_admitted_while_the_store_is_down(rate: Rate, faults: FaultProxy, uid: str) -> None:
    for _ in range(2):
        rate.take(uid, "read", LIMIT)
    faults.plan(Fault("BatchGetDocuments", Way.BEFORE, times=1_000), Fault("Commit", Way.BEFORE, times=1_000))

    rate.take(uid, "read", LIMIT)


def test_a_store_that_denies_refuses_at_once(rate: Rate, faults: FaultProxy, uid: str) -> None:
    faults.plan(Fault("BatchGetDocuments", Way.BEFORE, grpc.StatusCode.PERMISSION_DENIED, times=1_000))

    with pytest.raises(errors.StoreUnavailable):
        rate.take(uid, "read", LIMIT)

    assert faults.calls == {"BatchGetDocuments": 1}


def test_callers_that_wait_for_a_lease_without_an_answer_are_refused_with_it(
    rate: Rate, faults: FaultProxy, uid: str
) -> None:
    go_on = threading.Event()

    def hang() -> None:
        go_on.wait(10 * TAKE_S)

    faults.plan(Fault("BatchGetDocuments", Way.BEFORE, times=1_000, first=hang))

    with ThreadPoolExecutor(max_workers=8) as callers:
        waiting = [callers.submit(rate.take, uid, "read", LIMIT) for _ in range(8)]
        refusals = {type(call.exception(timeout=10 * TAKE_S)) for call in waiting}
    go_on.set()

    assert refusals == {errors.StoreUnavailable}


def test_others_that_win_each_time_are_contention(
    rate: Rate, direct: firestore.Client, faults: FaultProxy, uid: str
) -> None:
    document = direct.collection("request_buckets").document(uid)
    document.set({"version": 1})

    def win() -> None:
        document.update({"version": firestore.Increment(1), "at": time.monotonic()})

    faults.plan(Fault("Commit", Way.BEFORE, times=1_000, first=win))

    with pytest.raises(errors.Contention):
        rate.take(uid, "read", LIMIT)

    assert "levels" not in stored(direct, uid)
