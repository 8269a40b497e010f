"""What the store in memory adds to a store: a network and a clock that tests hold, and time that lets things expire."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.api_core.exceptions import DeadlineExceeded, ServiceUnavailable
from google.cloud import firestore

from firebreak.bucket.ledger import Ledger
from firebreak.bucket.reserve import Ask
from firebreak.metering.meter import metered, unmetered
from firebreak.store.times import DAY_US, SECOND_US, from_us
from scripts.local.layout import ROOT
from tests.emulator.histories import History, Side, outcome
from tests.twin.client import client_on, metered_on
from tests.twin.clock import Virtual
from tests.twin.errors import NotCovered, refused
from tests.twin.store import Twin
from tests.twin.wire import Rpc

ASK = Ask(estimate=100, limit=1_000, model="m")
INDEXES = json.loads((ROOT / "firestore.indexes.json").read_text())["fieldOverrides"]
POLICIES = {index["collectionGroup"]: index["fieldPath"] for index in INDEXES if index.get("ttl")}


def test_a_network_fails_a_call_before_it_is_applied(twin: Twin, direct: firestore.Client) -> None:
    def network(rpc: Rpc) -> Any:
        raise refused(ServiceUnavailable, f"{rpc.method} is dropped")

    with pytest.raises(ServiceUnavailable, match="Commit is dropped"):
        client_on(twin, network).document("a/b").set({})

    assert not direct.document("a/b").get().exists


def test_a_network_loses_the_reply_of_a_call_that_is_applied(twin: Twin, direct: firestore.Client) -> None:
    def network(rpc: Rpc) -> Any:
        rpc.apply()
        raise refused(DeadlineExceeded, "no reply")

    with pytest.raises(DeadlineExceeded):
        client_on(twin, network).document("a/b").set({})

    assert direct.document("a/b").get().exists


def test_a_network_applies_a_call_late_and_as_it_was_sent(
    twin: Twin, direct: firestore.Client, virtual: Virtual
) -> None:
    late: list[Callable[[], Any]] = []

    def network(rpc: Rpc) -> Any:
        late.append(rpc.apply)
        raise refused(DeadlineExceeded, "it is on its way")

    fields = {"n": 1}
    with pytest.raises(DeadlineExceeded):
        client_on(twin, network).document("a/b").set(fields)
    fields["n"] = 2
    virtual.move(3_600)
    late[0]()

    found = direct.document("a/b").get()
    assert found.to_dict() == {"n": 1}
    assert found.update_time == from_us(virtual.now_us())


def test_a_network_delays_a_reply_and_sees_the_timeout(twin: Twin, virtual: Virtual) -> None:
    timeouts = []

    def network(rpc: Rpc) -> Any:
        timeouts.append(rpc.timeout_s)
        virtual.move(0.25)
        return rpc.apply()

    before_us = virtual.now_us()
    client_on(twin, network).document("a/b").get(retry=None, timeout=2.0)

    assert (virtual.now_us() - before_us, timeouts) == (SECOND_US // 4, [2.0])


def test_commits_have_an_order_even_if_no_time_passes(direct: firestore.Client) -> None:
    document = direct.document("a/b")
    times = [document.set({"n": number}).update_time for number in range(3)]

    assert times == sorted(set(times))
    assert document.get().read_time >= times[-1]


def test_the_guards_client_works_on_the_same_store_and_counts_apart(twin: Twin) -> None:
    client = metered_on(twin)
    ledger = Ledger(client.guards())

    with metered(reads=1, writes=0) as meters:
        ledger.settle(ledger.reserve("u", "r", ASK), actual=40, counters={})
        client.document("token_buckets/u").get()

    assert (meters.reads.used, meters.writes.used) == (1, 0)
    assert (meters.guard_reads.used, meters.guard_writes.used) == (1, 4)


def test_a_bucket_is_charged_held_and_gone_in_time(twin: Twin, direct: firestore.Client, virtual: Virtual) -> None:
    """Two months in no time: what the ledger writes expires as the deployed policies say."""
    ledger = Ledger(direct, virtual.clock)
    ledger.settle(ledger.reserve("u", "r", ASK), actual=100, counters={})
    virtual.move(29 * DAY_US / SECOND_US)
    assert twin.expire(POLICIES) == []
    virtual.move(DAY_US / SECOND_US)

    gone = twin.expire(POLICIES)

    # The bucket is full again a tenth of a day later than the call was made, and kept for as long.
    assert [name.rpartition("documents/")[2] for name in gone] == ["token_buckets/u/calls/r"]
    virtual.move(DAY_US / SECOND_US)
    assert [name.rpartition("documents/")[2] for name in twin.expire(POLICIES)] == ["token_buckets/u"]


@pytest.mark.parametrize(
    ("value", "expires"),
    [
        (timedelta(0), True),
        (timedelta(microseconds=1), False),
        (timedelta(days=-400), True),
        (None, False),
        ("2020-01-01", False),
        (0, False),
        ({"at": datetime(2020, 1, 1, tzinfo=UTC)}, False),
    ],
)
def test_only_a_time_that_is_past_expires(
    twin: Twin, direct: firestore.Client, virtual: Virtual, value: object, expires: bool
) -> None:
    stored = from_us(virtual.now_us()) + value if isinstance(value, timedelta) else value
    direct.document("calls/c").set({"expireAt": stored})
    direct.document("calls/c/below/b").set({"expireAt": stored})
    direct.document("others/c").set({"expireAt": stored})

    twin.expire({"calls": "expireAt"})

    assert direct.document("calls/c").get().exists == (not expires)
    assert direct.document("calls/c/below/b").get().exists
    assert direct.document("others/c").get().exists


def test_what_the_store_in_memory_cannot_do_it_says(twin: Twin, direct: firestore.Client) -> None:
    refused: list[Callable[[], object]] = [
        lambda: list(direct.collection_group("a").get_partitions(2)),
        lambda: direct.collection("a").where(filter=firestore.FieldFilter("n", "!=", 1)).get(),
        lambda: direct.document("a/b").get(read_time=datetime.now(UTC)),
    ]
    for ask in refused:
        with pytest.raises(NotCovered):
            ask()


def test_a_seed_is_the_same_history_to_the_microsecond() -> None:
    def played() -> list[Any]:
        history, virtual = History(7), Virtual()
        side = Side(metered_on(Twin(virtual.now_us)), history.root)
        steps = [history.step() for _ in range(150)]
        with unmetered("a history"):
            return [(what, outcome(step, side), side.last_us) for _, what, step in steps]

    assert repr(played()) == repr(played())
