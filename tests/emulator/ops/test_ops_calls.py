"""Who spent the most, what was never settled, and what is left of the pool."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.cloud import firestore

from firebreak.bucket.documents import Status
from firebreak.limits.pool import Pool
from firebreak.store.documents import document_id
from scripts.local.dotenv import dotenv
from scripts.local.layout import PROJECT, ROOT
from scripts.ops import calls
from scripts.ops.limits import FUNCTIONS
from tests.emulator.ops.conftest import Ops


@pytest.fixture
def call(direct: firestore.Client) -> Iterator[Any]:
    """Puts a call where the ledger would, `ago_s` seconds back; all calls of the database are these."""
    for other in direct.collection_group("calls").get():
        other.reference.delete()
    made: list[firestore.DocumentReference] = []

    def call(uid: str, request_id: str, ago_s: int, estimated: int, actual: int | None = None) -> None:
        document = (
            direct.collection("token_buckets").document(document_id(uid)).collection("calls").document(request_id)
        )
        status = "held" if actual is None else "settled"
        fields = {"status": status, "estimated": estimated, "createdAt": datetime.now(UTC) - timedelta(seconds=ago_s)}
        document.set(fields if actual is None else fields | {"actual": actual})
        made.append(document)

    yield call
    for document in made:
        document.delete()


def test_held_finds_what_is_held_for_longer_newest_first(ops: Ops, call: Any, uid: str) -> None:
    call(uid, "running", 60, 1)
    call(uid, "old", 700, 2)
    call(f"{uid}/%", "older", 3_700, 3)
    call(uid, "settled", 700, 4, 4)

    data = ops("calls", "held", "--json").data
    hour = ops("calls", "held", "--older", "1h", "--json").data

    assert [(held["uid"], held["request_id"], held["tokens"]) for held in data["calls"]] == [
        (uid, "old", 2),
        (f"{uid}/%", "older", 3),
    ]
    assert data["truncated"] is False
    assert [held["request_id"] for held in hour["calls"]] == ["older"]


def test_held_reads_one_more_than_it_shows_and_says_if_there_are_more(ops: Ops, call: Any, uid: str) -> None:
    for number in range(8):
        call(uid, f"r{number}", 1_000 + number, number)

    ran = ops("calls", "held", "--limit", "3", "--json")

    assert [held["request_id"] for held in ran.data["calls"]] == ["r0", "r1", "r2"]
    assert ran.data["truncated"] is True
    assert "older ones are not shown" in ran.said
    assert "read 5, wrote 0" in ran.said


def test_top_has_who_was_charged_the_most(ops: Ops, call: Any, uid: str) -> None:
    call(f"{uid}-a", "r1", 10, 5_000, 100)
    call(f"{uid}-a", "r2", 20, 5_000)
    call(f"{uid}-b", "r1", 30, 9_000, 7_000)
    call(f"{uid}-b", "r2", 4_000, 9_000, 9_000)

    data = ops("calls", "top", "--json").data
    first = ops("calls", "top", "--limit", "1", "--since", "2h", "--json")

    rows = [(user["uid"], user["calls"], user["held"], user["tokens"]) for user in data["users"]]
    assert rows == [(f"{uid}-b", 1, 0, 7_000), (f"{uid}-a", 2, 1, 5_100)]
    assert [(user["uid"], user["tokens"]) for user in first.data["users"]] == [(f"{uid}-b", 16_000)]
    assert "1 more users are not shown" in first.said


def test_top_says_what_it_reads_before_and_reads_no_more(ops: Ops, call: Any, uid: str) -> None:
    for number in range(12):
        call(uid, f"r{number}", number, 1, 1)

    ran = ops("calls", "top", "--reads", "5", "--json")

    assert (ran.data["calls"], ran.data["read"], ran.data["users"][0]["tokens"]) == (12, 5, 5)
    assert "12 calls since" in ran.said.splitlines()[1]
    assert ran.said.splitlines()[1].endswith("reading the newest 5")
    assert "7 older calls were not read" in ran.said
    assert "read 7, wrote 0" in ran.said


def test_more_calls_than_a_page_are_each_read_once(ops: Ops, call: Any, direct: firestore.Client, uid: str) -> None:
    """Also where all were made at the same time."""
    calls = direct.collection("token_buckets").document(uid).collection("calls")
    then = datetime.now(UTC) - timedelta(minutes=5)
    for start in range(0, 700, 350):
        batch = direct.batch()
        for number in range(start, start + 350):
            batch.set(calls.document(f"r{number}"), {"status": "settled", "actual": 1, "createdAt": then})
        batch.commit()

    some = ops("calls", "top", "--reads", "650", "--json").data
    all_of_them = ops("calls", "top", "--json").data
    direct.recursive_delete(calls)

    assert (some["read"], some["users"][0]["tokens"]) == (650, 650)
    assert (all_of_them["read"], all_of_them["users"][0]["tokens"]) == (700, 700)


def test_calls_of_another_collection_of_that_name_are_not_ours(
    ops: Ops, call: Any, direct: firestore.Client, uid: str
) -> None:
    call(uid, "ours", 700, 1)
    theirs = direct.collection("phones").document(uid).collection("calls").document("x")
    theirs.set({"status": "held", "createdAt": datetime.now(UTC) - timedelta(minutes=20)})

    data = ops("calls", "held", "--json").data
    theirs.delete()

    assert [held["request_id"] for held in data["calls"]] == ["ours"]


def test_every_query_has_its_index(direct: firestore.Client) -> None:
    """The emulator asks for none; in the cloud a query over all users fails without."""
    indexes = json.loads((ROOT / "firestore.indexes.json").read_text())["indexes"]

    for query in (calls.newest(direct, Status.HELD), calls.newest(direct, Status.HELD, Status.SETTLED)):
        asked = query._to_protobuf()
        wanted = [(asked.where.field_filter.field.field_path, "ASCENDING")]
        wanted += [(order.field.field_path, order.direction.name) for order in asked.order_by]
        assert asked.from_[0].all_descendants
        assert wanted in [
            [(field["fieldPath"], field["order"]) for field in index["fields"]]
            for index in indexes
            if (index["collectionGroup"], index["queryScope"]) == (asked.from_[0].collection_id, "COLLECTION_GROUP")
        ]


# The pool


@pytest.fixture
def empty_pool(direct: firestore.Client) -> Iterator[firestore.CollectionReference]:
    """No shard is there before the test, nor after it."""
    pool = direct.collection("pool")
    for shard in pool.get():
        shard.reference.delete()
    yield pool
    for shard in pool.get():
        shard.reference.delete()


def test_a_pool_that_nobody_drew_from_is_full(ops: Ops, empty_pool: firestore.CollectionReference) -> None:
    ran = ops("pool", "show", "--json")

    hour = int(dotenv(FUNCTIONS, PROJECT)["POOL_TOKENS_PER_HOUR"])
    total = ran.data["total"]
    assert (total["tokens"], total["limit"], total["percent"]) == (hour, hour, 100)
    assert [share["share"] for share in ran.data["shares"]] == ["anonymous", "default", "common"]
    assert ran.said.endswith("read 16, wrote 0\n")


def test_what_was_drawn_is_gone_from_its_share_and_refills(
    ops: Ops, empty_pool: firestore.CollectionReference, direct: firestore.Client
) -> None:
    hour = int(dotenv(FUNCTIONS, PROJECT)["POOL_TOKENS_PER_HOUR"])
    shares = {"anonymous": 10, "default": 50}
    Pool(direct, tokens_per_hour=hour, shares=shares).take("anonymous", hour // 12)

    drawn = ops("pool", "show", "--json").data
    for shard in empty_pool.get():
        level = (shard.to_dict() or {})["levels"]["anonymous"]
        earlier = level | {"updatedAt": level["updatedAt"] - timedelta(hours=1)}
        shard.reference.update({"levels.anonymous": earlier})
    refilled = ops("pool", "show", "--json").data

    left = [share["tokens"] for share in drawn["shares"]]
    assert hour - hour // 12 <= drawn["total"]["tokens"] == sum(left) < hour - hour // 20
    assert [share["percent"] < 100 for share in drawn["shares"]] == [True, False, True]
    assert refilled["shares"][0]["percent"] == 100


def test_a_damaged_shard_is_named(ops: Ops, empty_pool: firestore.CollectionReference) -> None:
    empty_pool.document("3").set({"levels": "none"})

    ran = ops("pool", "show", "--json")

    assert ran.data["broken"] == [3]
    assert "pool/3" in ran.said
    assert ran.data["total"]["percent"] < 100


# What was changed


def test_changes_are_shown_newest_first_and_no_more_than_asked_for(ops: Ops, uid: str) -> None:
    ops("user", "limit", uid, "5", "--reason", "first")
    ops("switch", "trip", "--scope", "gemini", "--reason", "second", "--by", "ann")

    ran = ops("changes", "show", "--limit", "2", "--json")

    rows = [(change["what"], change["reason"]) for change in ran.data["changes"]]
    assert rows == [("trip", "second"), ("user.limit", "first")]
    assert "read 2, wrote 0" in ran.said


def test_what_would_steer_a_terminal_is_not_printed(ops: Ops, call: Any, uid: str) -> None:
    call(f"{uid}\x1b[2J", "r", 700, 1)

    assert "\x1b" not in ops("calls", "held").out
    assert ops("calls", "held", "--json").data["calls"][0]["uid"] == f"{uid}\x1b[2J"
