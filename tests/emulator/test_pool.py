"""The pool: exact over instances and shards, shares kept apart, and free while a lease lasts and when it is empty."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from google.cloud import firestore

from firebreak import errors
from firebreak.limits.credit import LEASE_S
from firebreak.limits.lease import REFUSE_S
from firebreak.limits.pool import SHARDS, TERMS, Draw, Pool
from firebreak.store.tries import Clock
from scripts.local.client import client_at
from tests.emulator.shifted import Shifted
from tests.fault_proxy import Fault, FaultProxy, Way

pytestmark = pytest.mark.usefixtures("full_pool")

SHARES = {"anonymous": 10, "default": 50}
# A shard has 100, of which 10 are for anonymous users, 50 for signed-in ones, 40 for all. A minute buys it one or two.
PER_HOUR = SHARDS * 100
PATIENCE_S = 60.0


@pytest.fixture
def pool(through_proxy: firestore.Client, faults: FaultProxy, shifted: Shifted) -> Pool:
    return pool_at(through_proxy, clock=Clock(monotonic=shifted))


def pool_at(client: firestore.Client, per_hour: int = PER_HOUR, clock: Clock | None = None) -> Pool:
    return Pool(client, tokens_per_hour=per_hour, shares=SHARES, clock=clock)


def drained(pool: Pool, share: str, cost: int) -> int:
    """Tokens drawn until the pool refuses; a draw that nobody decided is tried again."""
    tokens, end = 0, time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            pool.take(share, cost)
        except errors.PoolEmpty:
            return tokens
        except errors.StoreUnavailable:
            continue
        tokens += cost
    raise TimeoutError


def stored(client: firestore.Client, level: str) -> int:
    """Tokens that all shards together have of a level; those without a document have it all."""
    full = {"anonymous": 10, "default": 50, "common": 40}[level]
    shards = (client.collection("pool").document(str(number)).get().to_dict() or {} for number in range(SHARDS))
    return sum(shard.get("levels", {}).get(level, {"tokens": full})["tokens"] for shard in shards)


def test_one_instance_alone_can_draw_the_whole_pool(pool: Pool, direct: firestore.Client) -> None:
    drawn = drained(pool, "default", 1)

    # What a minute buys, at most.
    assert 90 * SHARDS <= drawn <= 90 * SHARDS + 25
    assert stored(direct, "anonymous") == 10 * SHARDS


@pytest.mark.parametrize("cost", [1, 7, 30])
def test_instances_and_threads_draw_what_the_pool_has_and_no_more(
    firestore_host: str, direct: firestore.Client, cost: int
) -> None:
    pools = [pool_at(client_at(firestore_host)) for _ in range(4)]
    with ThreadPoolExecutor(max_workers=16) as callers:
        drawn = sum(callers.map(lambda number: drained(pools[number % 4], "default", cost), range(16)))

    left = stored(direct, "default") + stored(direct, "common")
    assert drawn <= 90 * SHARDS + 25
    # Up to a draw that does not fit any more, in each instance and in what is left.
    assert drawn >= 90 * SHARDS - left - 4 * (cost - 1)
    assert left < cost + SHARDS


def test_anonymous_users_never_draw_what_is_kept_for_others(pool: Pool, direct: firestore.Client) -> None:
    drawn = drained(pool, "anonymous", 1)

    assert 50 * SHARDS <= drawn <= 50 * SHARDS + 25
    assert stored(direct, "default") == 50 * SHARDS
    assert drained(pool, "default", 1) >= 50 * SHARDS


def test_a_share_is_drawn_before_what_is_common(pool: Pool, direct: firestore.Client) -> None:
    pool.take("default", 5)

    assert (stored(direct, "default"), stored(direct, "common")) == (50 * SHARDS - 5, 40 * SHARDS)


def test_a_tier_without_a_share_draws_from_what_is_common_alone(pool: Pool, direct: firestore.Client) -> None:
    drawn = drained(pool, "pro", 1)

    assert 40 * SHARDS <= drawn <= 40 * SHARDS + 25
    assert (stored(direct, "default"), stored(direct, "anonymous")) == (50 * SHARDS, 10 * SHARDS)


def test_what_one_tier_has_leased_of_its_share_no_other_draws(pool: Pool) -> None:
    draw = pool.take("default", 90)
    pool.give_back(draw, 90)
    drained(pool, "anonymous", 1)

    with pytest.raises(errors.PoolEmpty):
        pool.take("anonymous", 1)


def test_a_draw_larger_than_a_shard_comes_from_several(pool: Pool) -> None:
    pool.take("default", 90 * SHARDS)

    with pytest.raises(errors.PoolEmpty) as refusal:
        pool.take("default", 90 * SHARDS)
    assert int(refusal.value.details["retryAfterSeconds"]) > 3_000


def test_a_draw_larger_than_its_share_ever_is_is_refused_for_good_and_costs_nothing(
    pool: Pool, faults: FaultProxy
) -> None:
    with pytest.raises(errors.PoolEmpty) as refusal:
        pool.take("default", 90 * SHARDS + 1)

    assert refusal.value.details == {"reason": "pool"}
    assert faults.calls == {}


def test_a_refused_draw_takes_nothing(pool: Pool, direct: firestore.Client) -> None:
    pool.take("default", 88 * SHARDS)
    before = stored(direct, "default") + stored(direct, "common")

    with pytest.raises(errors.PoolEmpty):
        pool.take("default", 50)

    assert stored(direct, "default") + stored(direct, "common") == before


def test_a_draw_that_others_left_too_little_for_takes_nothing(
    pool: Pool, direct: firestore.Client, shifted: Shifted
) -> None:
    """It remembers thirteen full shards, of which others emptied twelve."""
    pool.take("default", 90 * 3)
    pool_at(direct).take("default", 90 * 12)
    shifted.by += TERMS.trusted_s + 1
    before = stored(direct, "default") + stored(direct, "common")

    with pytest.raises(errors.PoolEmpty):
        pool.take("default", 90 * 13)

    assert stored(direct, "default") + stored(direct, "common") == before


def test_the_first_draw_costs_one_read_and_one_commit(pool: Pool, faults: FaultProxy) -> None:
    pool.take("default", 5)

    assert faults.calls == {"BatchGetDocuments": 1, "Commit": 1}


def test_a_draw_within_a_lease_costs_nothing(through_proxy: firestore.Client, faults: FaultProxy) -> None:
    pool = pool_at(through_proxy, per_hour=1_000_000)
    for _ in range(2):
        pool.take("default", 1_000)
    faults.clear()

    pool.take("default", 1_000)

    assert faults.calls == {}


def test_a_hundred_draws_at_once_cost_a_dozen_commits(through_proxy: firestore.Client, faults: FaultProxy) -> None:
    pool = pool_at(through_proxy, per_hour=20_000_000)
    for _ in range(100):
        pool.take("default", 1_000)

    assert 1 <= faults.calls["Commit"] <= 12


def test_a_refused_flood_costs_nothing(pool: Pool, faults: FaultProxy) -> None:
    drained(pool, "default", 10)
    faults.clear()

    for _ in range(100):
        with pytest.raises(errors.PoolEmpty) as refusal:
            pool.take("default", 90)

    assert faults.calls == {}
    assert int(refusal.value.details["retryAfterSeconds"]) >= 1


def test_a_refusal_is_never_older_than_its_bound(pool: Pool, direct: firestore.Client, shifted: Shifted) -> None:
    drained(pool, "default", 10)
    for number in range(SHARDS):
        direct.collection("pool").document(str(number)).delete()
    with pytest.raises(errors.PoolEmpty):
        pool.take("default", 90)
    shifted.by += REFUSE_S + 1

    assert pool.take("default", 90)


def test_what_is_given_back_is_drawn_again_and_the_pool_is_not_asked(pool: Pool, faults: FaultProxy) -> None:
    draw = pool.take("default", 50)
    pool.give_back(draw, 40)
    faults.clear()

    pool.take("default", 40)

    assert faults.calls == {}


@pytest.mark.parametrize("back", [-5, 0, 50, 600])
def test_no_more_is_given_back_than_was_drawn(pool: Pool, back: int) -> None:
    draw = pool.take("default", 50)
    pool.give_back(draw, back)

    assert tokens(pool.take("default", 1)) == 1
    rest = drained(pool, "default", 1)
    assert rest + 1 + 50 - min(50, max(0, back)) <= 90 * SHARDS + 25


def test_what_is_given_back_lapses_with_its_lease(pool: Pool, faults: FaultProxy, shifted: Shifted) -> None:
    draw = pool.take("default", 50)
    shifted.by += LEASE_S - PATIENCE_S
    pool.give_back(draw, 50)
    again = pool.take("default", 50)
    pool.give_back(again, 50)
    faults.clear()
    shifted.by += PATIENCE_S + 1

    pool.take("default", 50)

    assert faults.calls["Commit"] == 1


def test_a_pool_of_nothing_admits_everything_and_costs_nothing(
    through_proxy: firestore.Client, faults: FaultProxy
) -> None:
    pool = pool_at(through_proxy, per_hour=0)

    draw = pool.take("default", 10**12)
    pool.give_back(draw, 10**12)

    assert faults.calls == {}


def test_a_tier_of_any_name_has_its_share(through_proxy: firestore.Client, direct: firestore.Client) -> None:
    names = ["a.b", "__x__", "ü`\\ö", "%2E", "a/b"]
    pool = Pool(through_proxy, tokens_per_hour=PER_HOUR, shares=dict.fromkeys(names, 20))

    for name in names:
        for _ in range(2):
            assert tokens(pool.take(name, 10)) == 10

    shards = [snapshot.to_dict() or {} for snapshot in direct.collection("pool").stream()]
    assert len({name for shard in shards for name in shard["levels"]}) == len(names)
    assert sum(20 - level["tokens"] for shard in shards for level in shard["levels"].values()) == 100


def test_a_lease_leaves_the_levels_of_other_shares_as_they_are(direct: firestore.Client) -> None:
    """Also those of a tier that only another revision knows."""
    documents = [direct.collection("pool").document(str(number)) for number in range(SHARDS)]
    for document in documents:
        document.set({"levels": {"gone": {"tokens": 7, "updatedAt": document.get().read_time}}, "version": 1})

    pool_at(direct).take("default", 90 * SHARDS)

    assert all((document.get().to_dict() or {})["levels"]["gone"]["tokens"] == 7 for document in documents)


def test_a_shard_that_holds_no_levels_is_left_alone_and_told_of(
    pool: Pool, direct: firestore.Client, faults: FaultProxy, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = direct.collection("pool").document("3")
    written = broken.set({"levels": "none"})

    pool.take("default", 90 * (SHARDS - 1))
    faults.clear()
    with pytest.raises(errors.StoreUnavailable):
        pool.take("default", 90)

    assert faults.calls == {}
    assert broken.get().update_time == written.update_time
    assert '"error": "Corrupt", "shard": 3' in capsys.readouterr().out


def test_while_one_tier_waits_for_the_store_another_draws(pool: Pool, faults: FaultProxy) -> None:
    draw = pool.take("default", 50)
    pool.give_back(draw, 50)
    stuck, go_on = threading.Event(), threading.Event()

    def hang() -> None:
        stuck.set()
        go_on.wait(PATIENCE_S)

    faults.plan(Fault("Commit", Way.BEFORE, first=hang))
    with ThreadPoolExecutor(max_workers=1) as slow:
        waiting = slow.submit(pool.take, "anonymous", 5)
        assert stuck.wait(PATIENCE_S)

        pool.take("default", 50)
        pool.take("default", 50)

        assert not waiting.done()
        go_on.set()
        assert waiting.exception(PATIENCE_S) is None


def test_a_refusal_from_memory_does_not_wait_for_a_lease(pool: Pool, faults: FaultProxy) -> None:
    pool.take("default", 90 * SHARDS - 5)
    with pytest.raises(errors.PoolEmpty):
        pool.take("default", 90)
    stuck, go_on = threading.Event(), threading.Event()

    def hang() -> None:
        stuck.set()
        go_on.wait(PATIENCE_S)

    faults.plan(Fault("Commit", Way.BEFORE, first=hang))
    with ThreadPoolExecutor(max_workers=1) as slow:
        waiting = slow.submit(pool.take, "default", 3)
        assert stuck.wait(PATIENCE_S)

        with pytest.raises(errors.PoolEmpty):
            pool.take("default", 90)

        assert not waiting.done()
        go_on.set()
        assert waiting.exception(PATIENCE_S) is None


def test_instances_lease_of_different_shards(direct: firestore.Client) -> None:
    for _ in range(8):
        pool_at(direct).take("default", 5)

    assert len(list(direct.collection("pool").list_documents())) > 1


def test_instances_that_were_refused_do_not_ask_again_at_once(
    through_proxy: firestore.Client, faults: FaultProxy, shifted: Shifted
) -> None:
    """What the refill brings is asked for after a pause by chance, here the longest."""
    pool = pool_at(through_proxy, 16_000_000, Clock(monotonic=shifted, uniform=lambda _, most: most))
    pool.take("default", 14_400_000)
    with pytest.raises(errors.PoolEmpty):
        pool.take("default", 1_500)
    faults.clear()
    shifted.by += TERMS.pause_s - 2

    with pytest.raises(errors.PoolEmpty):
        pool.take("default", 1_500)

    assert faults.calls == {}


def tokens(draw: Draw) -> int:
    return sum(lot.tokens for lot in draw.lots)
