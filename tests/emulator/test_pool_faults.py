"""Every RPC of a draw failing each way: no more is drawn than the pool had; what a lost reply took is gone."""

import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from google.cloud import firestore

from firebreak import errors
from firebreak.limits.pool import SHARDS, Pool
from scripts.local.client import client_at
from tests.emulator.test_pool import drained, pool_at, stored, tokens
from tests.fault_proxy import Fault, FaultProxy, Way

pytestmark = pytest.mark.usefixtures("full_pool")

STATUSES = [grpc.StatusCode.ABORTED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED]
WAYS = [Way.BEFORE, Way.LOSE_REPLY, Way.LATE, Way.TWICE]
PLACES = [("Commit", 0), ("Commit", 5), ("BatchGetDocuments", 0), ("BatchGetDocuments", 3)]
ALL = 90 * SHARDS


@pytest.fixture
def pool(through_proxy: firestore.Client, faults: FaultProxy) -> Pool:
    return pool_at(through_proxy)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"{place[0]}-{place[1]}")
@pytest.mark.parametrize("status", STATUSES, ids=lambda status: status.name)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_whatever_fails_once_no_more_is_drawn_than_the_pool_had(
    pool: Pool,
    direct: firestore.Client,
    faults: FaultProxy,
    way: Way,
    status: grpc.StatusCode,
    place: tuple[str, int],
) -> None:
    method, skip = place
    faults.plan(Fault(method, way, status, skip=skip))

    drawn = drained(pool, "default", 10)
    faults.release()
    drawn += drained(pool_at(direct), "default", 10)

    # At most one lease is lost, and a draw that does not fit any more is left in each shard.
    assert ALL - 50 - 10 * SHARDS <= drawn <= ALL + 25
    assert stored(direct, "anonymous") == 10 * SHARDS


@pytest.mark.parametrize("way", [Way.LOSE_REPLY, Way.LATE, Way.TWICE], ids=lambda way: way.name)
def test_instances_whose_commits_fail_again_and_again_never_draw_more_than_the_pool_had(
    direct: firestore.Client, proxy: FaultProxy, faults: FaultProxy, way: Way
) -> None:
    pools = [pool_at(client_at(proxy.address)) for _ in range(3)]
    faults.plan(*(Fault("Commit", way, skip=skip) for skip in range(0, 60, 3)))

    with ThreadPoolExecutor(max_workers=12) as callers:
        drawn = sum(callers.map(lambda number: drained(pools[number % 3], "default", 10), range(12)))
    faults.release()
    drawn += drained(pool_at(direct), "default", 1)

    assert drawn <= ALL + 25


def test_what_was_leased_before_a_failure_is_there_for_the_next_draw(
    pool: Pool, direct: firestore.Client, faults: FaultProxy
) -> None:
    """A draw of several shards, whose second commit never gets an answer."""
    faults.plan(Fault("Commit", Way.BEFORE, skip=1, times=1_000))
    with pytest.raises(errors.StoreUnavailable):
        pool.take("default", 180)
    faults.clear()

    assert tokens(pool.take("default", 180)) == 180
    assert stored(direct, "default") + stored(direct, "common") >= ALL - 180 - 90


def test_a_store_that_is_down_refuses_in_time_and_draws_when_it_is_back(
    pool: Pool, faults: FaultProxy, capsys: pytest.CaptureFixture[str]
) -> None:
    faults.plan(Fault("BatchGetDocuments", Way.BEFORE, times=1_000), Fault("Commit", Way.BEFORE, times=1_000))

    with pytest.raises(errors.StoreUnavailable) as refusal:
        pool.take("default", 10)
    faults.forget()

    assert refusal.value.details == {"reason": "store", "retryAfterSeconds": 5}
    assert '"step": "pool"' in capsys.readouterr().out
    assert tokens(pool.take("default", 10)) == 10


def test_a_store_that_denies_refuses_at_once(pool: Pool, faults: FaultProxy) -> None:
    faults.plan(Fault("BatchGetDocuments", Way.BEFORE, grpc.StatusCode.PERMISSION_DENIED, times=1_000))

    with pytest.raises(errors.StoreUnavailable):
        pool.take("default", 10)

    assert faults.calls == {"BatchGetDocuments": 1}


def test_a_shard_that_is_deleted_or_written_meanwhile_costs_a_retry(
    pool: Pool, direct: firestore.Client, faults: FaultProxy
) -> None:
    changed = threading.Event()

    def interfere() -> None:
        for number in range(SHARDS):
            direct.collection("pool").document(str(number)).set({"version": 5})
        changed.set()

    faults.plan(Fault("Commit", Way.BEFORE, first=interfere))

    assert tokens(pool.take("default", 10)) == 10
    assert changed.is_set()
    assert faults.calls["Commit"] == 2
    assert stored(direct, "default") == 50 * SHARDS - 10
