"""A user's bucket looked at and changed from a shell, by the rules that the ledger goes by."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest
from google.cloud import firestore

from firebreak import errors
from firebreak.bucket.ledger import Ledger
from firebreak.bucket.reserve import Ask
from firebreak.events import pseudonym
from firebreak.store.documents import user_key
from tests.emulator.books import books
from tests.emulator.ops.conftest import Ops, ops_at, run
from tests.fault_proxy import Fault, FaultProxy, Way

# What functions/.env.demo-firebreak gives everybody.
LIMIT = 100_000
WHY = ("--reason", "asked for it")

type Records = Callable[[], list[dict[str, Any]]]


def ask(estimate: int = 1_000, limit: int = LIMIT) -> Ask:
    return Ask(estimate=estimate, limit=limit, model="m")


@pytest.fixture
def calls(direct: firestore.Client) -> Ledger:
    """The ledger of an instance that goes on meanwhile."""
    return Ledger(direct)


def spend(ledger: Ledger, uid: str, tokens: int, request_id: str = "spent") -> None:
    ledger.settle(ledger.reserve(uid, request_id, ask(tokens)), actual=tokens, counters={"calls": 1, "charged": tokens})


def test_show_has_the_level_as_of_now_and_what_is_held(
    ops: Ops, calls: Ledger, bucket: firestore.DocumentReference, uid: str, direct: firestore.Client
) -> None:
    spend(calls, uid, 60_000)
    calls.reserve(uid, "held", ask(1_000))
    level = {"tokens": 500, "updatedAt": firestore.SERVER_TIMESTAMP}
    direct.collection("request_buckets").document(uid).set({"levels": {"write": level}, "version": 1})
    stored = bucket.get().to_dict() or {}
    bucket.update({"updatedAt": stored["updatedAt"] - timedelta(hours=6), "version": firestore.Increment(1)})

    data = ops("user", "show", uid, "--json").data
    words = ops("user", "show", uid).out

    assert 39_000 + 25_000 <= data["bucket"]["tokens"] < 39_000 + 25_100
    assert data["limit"] == {"least": LIMIT, "most": LIMIT, "by": "functions/.env", "percent": 100}
    assert data["held"] == {"calls": 1, "tokens": 1_000, "truncated": False}
    assert data["bucket"]["lifetime"] == {"calls": 1, "charged": 60_000}
    assert 500 <= data["requests"]["write"] < 1_000
    assert data["pseudonym"] == pseudonym(uid)
    assert all(word in words for word in (uid, pseudonym(uid), "100,000", "1,000 tokens"))


def test_show_of_nobody_costs_four_reads_and_writes_nothing(ops: Ops, direct: firestore.Client, uid: str) -> None:
    ran = ops("user", "show", uid, "--json")

    assert ran.data["bucket"] is None
    assert ran.said.endswith("read 4, wrote 0\n")
    assert books(direct, uid).bucket is None


def test_a_tightened_limit_is_shown_as_it_holds(ops: Ops, uid: str) -> None:
    ops("switch", "tighten", "--percent", "25", *WHY)

    limit = ops("user", "show", uid, "--json").data["limit"]

    assert (limit["most"], limit["percent"]) == (LIMIT // 4, 25)


def test_where_the_settings_could_give_several_limits_the_largest_counts_and_that_is_said(
    firestore_host: str, uid: str
) -> None:
    """As they do here for a project without settings of its own: anonymous users have less."""
    words = ("user", "show", uid, "--json", "--project", "demo-shop")
    env = {"FIRESTORE_EMULATOR_HOST": firestore_host}

    unsure = run(*words, env=env)
    named = run(*words, "--limit", "10000", env=env)

    assert (unsure.data["limit"]["least"], unsure.data["limit"]["most"]) == (10_000, 100_000)
    assert "--limit names this one's" in unsure.said
    assert named.data["limit"] == {"least": 10_000, "most": 10_000, "by": "--limit", "percent": 100}


def test_a_grant_adds_to_the_level_and_is_recorded_in_the_same_commit(
    ops: Ops, calls: Ledger, direct: firestore.Client, uid: str, records: Records
) -> None:
    spend(calls, uid, 90_000)
    before = books(direct, uid).bucket or {}

    ran = ops("user", "grant", uid, "5000", *WHY, "--by", "ann", "--json")

    after = books(direct, uid).bucket or {}
    assert (after["tokens"], after["version"]) == (before["tokens"] + 5_000, before["version"] + 1)
    [record] = records()
    assert ran.data["changed"]["after"] == record["after"] == {"granted": 5_000}
    assert (record["what"], record["by"], record["reason"]) == ("user.grant", "ann", WHY[1])
    assert record["expireAt"] - record["at"] == timedelta(days=365)
    assert uid not in str(record)


def test_a_grant_that_the_next_refill_would_cut_is_refused(
    ops: Ops, calls: Ledger, direct: firestore.Client, uid: str, records: Records
) -> None:
    spend(calls, uid, 2_000)
    before = books(direct, uid)

    ran = ops("user", "grant", uid, "2001", *WHY)

    assert ran.status == 1
    assert "there is room for " in ran.said
    assert (books(direct, uid), records()) == (before, [])


def test_a_grant_to_a_user_without_a_bucket_says_so(ops: Ops, direct: firestore.Client, uid: str) -> None:
    ran = ops("user", "grant", uid, "5", *WHY)

    assert ran.status == 1
    assert "there is no bucket" in ran.said
    assert books(direct, uid).bucket is None


def test_a_grant_whose_reply_is_lost_is_made_once(
    proxy: FaultProxy, faults: FaultProxy, calls: Ledger, direct: firestore.Client, uid: str, records: Records
) -> None:
    spend(calls, uid, 90_000)
    before = books(direct, uid).bucket or {}
    faults.plan(Fault("Commit", Way.LOSE_REPLY))

    ran = ops_at(proxy.address)("user", "grant", uid, "5000", *WHY, "--json")

    assert ran.data["changed"]["after"] == {"granted": 5_000}
    assert (books(direct, uid).bucket or {})["tokens"] == before["tokens"] + 5_000
    assert len(records()) == 1


def test_a_grant_that_arrives_late_too_is_made_once(
    proxy: FaultProxy, faults: FaultProxy, calls: Ledger, direct: firestore.Client, uid: str, records: Records
) -> None:
    spend(calls, uid, 90_000)
    before = books(direct, uid).bucket or {}
    faults.plan(Fault("Commit", Way.LATE))

    ran = ops_at(proxy.address)("user", "grant", uid, "5000", *WHY)
    faults.release()

    assert ran.status == 0
    assert (books(direct, uid).bucket or {})["tokens"] == before["tokens"] + 5_000
    assert len(records()) == 1


def test_a_bucket_of_the_published_pattern_is_granted_to(
    ops: Ops, bucket: firestore.DocumentReference, uid: str
) -> None:
    bucket.set({"tokens": 4_000.75, "updatedAt": firestore.SERVER_TIMESTAMP})

    assert ops("user", "grant", uid, "1000", *WHY).status == 0

    stored = bucket.get().to_dict() or {}
    assert stored["tokens"] == 5_000.75
    assert stored["version"] > 2**20  # at random: a chain that starts anew must not fit another's


def test_reset_fills_the_bucket_and_keeps_the_rest(
    ops: Ops, calls: Ledger, direct: firestore.Client, uid: str, records: Records
) -> None:
    spend(calls, uid, LIMIT)
    before = books(direct, uid)

    assert ops("user", "reset", uid, *WHY).status == 0

    after = books(direct, uid)
    assert before.bucket is not None
    assert after.bucket is not None
    assert (after.bucket["tokens"], after.bucket["version"]) == (LIMIT, before.bucket["version"] + 1)
    assert (after.bucket["lifetime"], after.calls) == (before.bucket["lifetime"], before.calls)
    assert [record["what"] for record in records()] == ["user.reset"]
    Ledger(direct).reserve(uid, "again", ask(LIMIT))


def test_reset_fills_to_the_users_own_limit(ops: Ops, calls: Ledger, uid: str) -> None:
    spend(calls, uid, 1_000)
    ops("user", "limit", uid, "7000", *WHY)
    calls.reserve(uid, "all", ask(7_000))

    ops("user", "reset", uid, *WHY)

    assert ops("user", "show", uid, "--json").data["bucket"]["stored"]["tokens"] == 7_000


def test_a_full_bucket_is_not_reset_and_nothing_is_recorded(
    ops: Ops, calls: Ledger, uid: str, records: Records
) -> None:
    hold = calls.reserve(uid, "r", ask())
    calls.settle(hold, actual=0, counters={})

    ran = ops("user", "reset", uid, *WHY, "--json")

    assert (ran.data["changed"], records()) == (None, [])
    assert "wrote 0" in ran.said


@pytest.mark.parametrize("damage", [{"tokens": float("nan")}, {"updatedAt": "yesterday"}, {"tokens": "plenty"}])
def test_a_damaged_level_is_told_and_mended_by_reset(
    ops: Ops,
    calls: Ledger,
    direct: firestore.Client,
    bucket: firestore.DocumentReference,
    uid: str,
    damage: dict[str, object],
) -> None:
    spend(calls, uid, 1_000)
    bucket.update(damage)

    told = ops("user", "show", uid)
    mended = ops("user", "reset", uid, *WHY, "--json")

    assert told.status == 1
    assert "user reset" in told.said.splitlines()[-1]
    assert mended.data["changed"]["before"] == {"tokens": "damaged"}
    Ledger(direct).reserve(uid, "again", ask(LIMIT))


def test_a_damaged_override_is_mended_by_limit(
    ops: Ops, calls: Ledger, bucket: firestore.DocumentReference, uid: str
) -> None:
    spend(calls, uid, 1_000)
    bucket.update({"override": -1})

    told = ops("user", "reset", uid, *WHY)

    assert told.status == 1
    assert "user limit" in told.said.splitlines()[-1]
    assert ops("user", "limit", uid, "500", *WHY).status == 0


def test_a_limit_of_0_blocks_from_the_next_call_on_and_none_lifts_it(
    ops: Ops, calls: Ledger, direct: firestore.Client, uid: str, records: Records
) -> None:
    spend(calls, uid, 1_000)
    calls.reserve(uid, "known", ask())

    ops("user", "limit", uid, "0", *WHY)
    with pytest.raises(errors.Blocked):
        calls.reserve(uid, "blocked", ask())
    ops("user", "limit", uid, "--none", *WHY)

    # An instance that has just refused does so for 2 s more, another one not.
    Ledger(direct).reserve(uid, "lifted", ask())
    changes = [(record["before"], record["after"]) for record in records()]
    assert changes == [({"override": None}, {"override": 0}), ({"override": 0}, {"override": None})]


def test_a_limit_can_be_set_before_the_first_call(
    ops: Ops, calls: Ledger, direct: firestore.Client, uid: str, records: Records
) -> None:
    ops("user", "limit", uid, "700", *WHY)

    created = books(direct, uid).bucket or {}
    assert (created["tokens"], created["override"]) == (700, 700)
    assert created["version"] > 2**20
    assert [record["after"] for record in records()] == [{"override": 700}]
    with pytest.raises(errors.TooLarge):
        calls.reserve(uid, "r", ask(701))
    calls.reserve(uid, "s", ask(700))


def test_a_limit_does_not_expire_with_an_idle_bucket(
    ops: Ops, calls: Ledger, bucket: firestore.DocumentReference, uid: str
) -> None:
    spend(calls, uid, 1_000)

    ops("user", "limit", uid, "0", *WHY)
    blocked = bucket.get().to_dict() or {}
    ops("user", "limit", uid, "--none", *WHY)
    lifted = bucket.get().to_dict() or {}

    assert "expireAt" not in blocked
    assert lifted["expireAt"] - datetime.now(UTC) > timedelta(days=29)
    assert "override" not in lifted


def test_the_same_limit_again_changes_nothing(ops: Ops, uid: str, records: Records) -> None:
    ops("user", "limit", uid, "700", *WHY)

    assert ops("user", "limit", uid, "700", *WHY, "--json").data == {"changed": None}

    assert len(records()) == 1


def test_a_blocked_user_is_neither_granted_to_nor_reset(ops: Ops, uid: str) -> None:
    ops("user", "limit", uid, "0", *WHY)

    for words in (("grant", uid, "5"), ("reset", uid)):
        ran = ops("user", *words, *WHY)
        assert ran.status == 1
        assert "blocked" in ran.said.splitlines()[-1]


def test_a_user_of_any_form_is_found(ops: Ops, calls: Ledger, direct: firestore.Client, uid: str) -> None:
    strange = f"__{uid}/%.x__"

    ops("user", "limit", strange, "700", *WHY)

    assert (books(direct, user_key(strange)).bucket or {})["override"] == 700
    assert direct.collection("token_buckets").document(user_key(strange)).get().exists


def test_a_user_of_a_tenant_is_another_than_the_one_without(
    ops: Ops, direct: firestore.Client, uid: str, records: Callable[[], list[dict[str, Any]]]
) -> None:
    theirs = user_key(uid, "acme")
    Ledger(direct).reserve(uid, "r", ask(1_000))
    Ledger(direct).reserve(theirs, "r", ask(2_000))

    ops("user", "limit", uid, "700", "--tenant", "acme", *WHY)
    shown = ops("user", "show", uid, "--tenant", "acme", "--json").data
    limits = [(books(direct, key).bucket or {}).get("override") for key in (uid, theirs)]
    ran = ops("user", "forget", uid, "--tenant", "acme", *WHY)

    assert limits == [None, 700]
    assert (shown["uid"], shown["tenant"], shown["pseudonym"]) == (uid, "acme", pseudonym(theirs))
    assert shown["held"]["tokens"] == 2_000
    assert ran.status in (0, 1)
    assert books(direct, uid).charged == 1_000
    assert records() == []


def test_no_reason_may_name_the_user_for_a_record_outlives_them(ops: Ops, direct: firestore.Client, uid: str) -> None:
    ran = ops("user", "limit", uid, "0", "--reason", f"{uid} is a bot")

    assert (ran.status, books(direct, uid).bucket) == (2, None)


@pytest.mark.parametrize(
    "words",
    [
        ("grant", "ann"),
        ("grant", "ann", "0", *WHY),
        ("grant", "ann", "5"),
        ("reset", "ann"),
        ("limit", "ann", *WHY),
        ("limit", "ann", "5", "--none", *WHY),
        ("limit", "ann", "-1", *WHY),
        ("limit", "", "5", *WHY),
        ("show",),
    ],
)
def test_wrong_use_is_told(ops: Ops, words: tuple[str, ...]) -> None:
    ran = ops("user", *words)

    assert (ran.status, ran.out) == (2, "")


def test_nothing_is_changed_without_the_right_to(
    proxy: FaultProxy, faults: FaultProxy, direct: firestore.Client, uid: str
) -> None:
    faults.plan(Fault("Commit", Way.BEFORE, grpc.StatusCode.PERMISSION_DENIED))

    ran = ops_at(proxy.address)("user", "limit", uid, "0", *WHY)

    assert ran.status == 1
    assert "roles/datastore.user" in ran.said.splitlines()[-1]
    assert books(direct, uid).bucket is None
