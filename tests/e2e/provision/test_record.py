"""The record in Firestore: who writes it, and who must not."""

from collections.abc import Iterator

import pytest

from firebreak.store.tries import Clock
from scripts.local.client import client_at
from scripts.local.inject.raw_firestore import raw
from scripts.local.stack import Stack
from scripts.provision.failure import Failed, Raced
from scripts.provision.seen import Entry, Intent
from scripts.provision.state import Record
from scripts.provision.step import Kind
from tests.e2e.provision.world import World
from tests.fault_proxy import Fault, FaultProxy, Way

FIELDS = {"service": "services/AEFD-7695-64FA", "scope": "gemini"}
NAME = "billingAccounts/1/budgets/2"


@pytest.fixture
def proxy(stack: Stack) -> Iterator[FaultProxy]:
    with FaultProxy(stack.firestore_host).running() as running:
        yield running


@pytest.fixture
def record(world: World, proxy: FaultProxy) -> Record:
    return make(proxy.address)


def make(host: str) -> Record:
    return Record(raw(client_at(host), "writes the record"), Clock(sleep=lambda _: None, uniform=lambda low, _: low))


def begun(record: Record) -> Entry:
    return record.start(Kind.CAP, "agent-platform", FIELDS, was=None)


def test_what_is_written_is_what_is_read(record: Record) -> None:
    entry = record.write(Kind.CAP, "agent-platform", Intent.KEEP, {"name": NAME}, was=begun(record))

    assert record.read().caps["agent-platform"].name == NAME
    assert record.read().caps["agent-platform"].mark == entry.mark


def test_what_another_run_has_changed_meanwhile_is_not_written_over(record: Record) -> None:
    entry = begun(record)
    record.write(Kind.CAP, "agent-platform", Intent.KEEP, {"name": NAME}, was=entry)

    for act in (
        lambda: record.write(Kind.CAP, "agent-platform", Intent.KEEP, {"name": "another"}, was=entry),
        lambda: record.forget(Kind.CAP, "agent-platform", was=entry),
        lambda: begun(record),
    ):
        with pytest.raises(Raced):
            act()
    assert record.read().caps["agent-platform"].name == NAME


def test_what_another_run_writes_between_the_look_and_the_commit_is_not_written_over(
    world: World, proxy: FaultProxy, record: Record
) -> None:
    other, entry = make(world.firestore_host), begun(record)

    def meanwhile() -> None:
        other.write(Kind.CAP, "agent-platform", Intent.KEEP, {"name": NAME}, was=entry)

    proxy.plan(Fault(method="Commit", way=Way.BEFORE, first=meanwhile))

    with pytest.raises(Raced):
        record.write(Kind.CAP, "agent-platform", Intent.KEEP, {"name": "another"}, was=entry)
    assert record.read().caps["agent-platform"].name == NAME


def test_what_the_watch_has_written_meanwhile_does_not_hinder_and_is_kept(world: World, record: Record) -> None:
    entry = record.write(Kind.CAP, "gemini", Intent.KEEP, {"name": NAME}, was=None)
    world.store.document("ops/caps").update({"caps.gemini.outputState": "ENFORCED"})

    record.write(Kind.CAP, "gemini", Intent.KEEP, {"amount": "30"}, was=entry)

    assert world.record()["caps"]["gemini"]["outputState"] == "ENFORCED"


def test_an_entry_made_by_hand_is_forgotten_like_any_other(world: World, record: Record) -> None:
    world.store.document("ops/caps").set({"caps": {"gemini": {"intent": "keep", "name": NAME}}})

    record.forget(Kind.CAP, "gemini", was=record.read().caps["gemini"])

    assert world.record() == {"caps": {}}


def test_a_new_creation_takes_the_place_of_all_that_was_known_of_the_last(world: World, record: Record) -> None:
    entry = record.write(Kind.CAP, "gemini", Intent.KEEP, {"name": NAME, "outputState": "ENFORCED"}, was=None)

    record.start(Kind.CAP, "gemini", FIELDS, was=entry)

    assert world.record()["caps"]["gemini"].keys() == {"intent", "mark", "since", *FIELDS}


@pytest.mark.parametrize("way", [Way.BEFORE, Way.LOSE_REPLY, Way.TWICE])
def test_a_write_whose_reply_is_lost_is_written_once(proxy: FaultProxy, record: Record, way: Way) -> None:
    entry = begun(record)
    proxy.plan(Fault(method="Commit", way=way))

    record.write(Kind.CAP, "agent-platform", Intent.KEEP, {"name": NAME}, was=entry)

    assert record.read().caps["agent-platform"].name == NAME


@pytest.mark.parametrize("way", [Way.BEFORE, Way.LOSE_REPLY])
def test_a_first_write_whose_reply_is_lost_is_written_once(proxy: FaultProxy, record: Record, way: Way) -> None:
    proxy.plan(Fault(method="Commit", way=way))

    assert begun(record).mark == record.read().caps["agent-platform"].mark


def test_a_store_that_does_not_answer_fails_the_run(proxy: FaultProxy, record: Record) -> None:
    proxy.plan(Fault(method="Commit", way=Way.BEFORE, times=99))

    with pytest.raises(Failed, match="ops/caps"):
        begun(record)
