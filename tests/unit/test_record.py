"""Documents as values, and names that never collide."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firebreak.bucket.arithmetic import Level
from firebreak.bucket.documents import Bucket, read_bucket
from firebreak.store.documents import Corrupt, document_id, user_key, user_of
from firebreak.store.times import from_us, to_us

NOW = datetime(2026, 1, 2, tzinfo=UTC)
UIDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=128) | st.text(
    "%/._25F", min_size=1, max_size=12
)


TENANTS = st.none() | st.sampled_from(["a", "b", "_", "__a"]) | st.text("ab-%._", min_size=1, max_size=64)
USERS = st.tuples(UIDS, TENANTS)


@given(USERS, USERS)
def test_different_users_have_different_documents(one: tuple[str, str | None], other: tuple[str, str | None]) -> None:
    assert (user_key(*one) == user_key(*other)) == (one == other)


@given(USERS)
def test_a_key_tells_its_user(user: tuple[str, str | None]) -> None:
    assert user_of(user_key(*user)) == user


@pytest.mark.parametrize(
    ("uid", "tenant", "key"),
    [
        ("alice", None, "alice"),
        ("alice", "acme", "acme.alice"),
        ("acme.alice", None, "acme%2Ealice"),
        ("b.alice", "acme", "acme.b%2Ealice"),
        ("alice__", "__acme", "%5F_acme.alice__"),
    ],
)
def test_a_uid_is_told_apart_by_its_tenant(uid: str, tenant: str | None, key: str) -> None:
    assert user_key(uid, tenant) == key


@given(USERS)
def test_every_user_is_a_legal_document_id(user: tuple[str, str | None]) -> None:
    name = user_key(*user)

    assert "/" not in name
    assert name not in (".", "..")
    assert not re.fullmatch(r"__.*__", name, re.DOTALL)
    assert 1 <= len(name.encode()) <= 1500


def test_an_ordinary_uid_is_its_own_document_id() -> None:
    assert document_id("Zq3kT_b-1") == "Zq3kT_b-1"


@given(st.integers(0, 4 * 10**15))
def test_microseconds_survive_the_way_to_a_timestamp_and_back(us: int) -> None:
    assert to_us(from_us(us)) == us


def test_a_bucket_of_the_published_pattern_is_read() -> None:
    bucket = read_bucket({"tokens": 12.9, "updatedAt": NOW}, updated=NOW, read=NOW).bucket

    assert bucket.level == Level(tokens=12, updated_us=to_us(NOW))
    assert bucket.version is None


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tokens": float("nan")},
        {"tokens": float("inf")},
        {"tokens": "100"},
        {"tokens": True},
        {"tokens": None},
        {"updatedAt": 5},
        {"updatedAt": None},
        {"override": -1},
        {"override": "5"},
        {"override": True},
        {"override": 1.5},
    ],
)
def test_a_corrupt_bucket_admits_nobody(fields: dict[str, object]) -> None:
    data = {"tokens": 5, "updatedAt": NOW} | fields if fields else {}

    with pytest.raises(Corrupt):
        read_bucket(data, updated=NOW, read=NOW)


def bucket(override: int | None) -> Bucket:
    return Bucket(level=None, version=None, override=override, updated=None)


@pytest.mark.parametrize(
    ("override", "percent", "limit"),
    [(None, 50, 1_000), (400, 100, 400), (400, 50, 200), (1, 50, 1), (0, 50, 0), (0, 100, 0)],
)
def test_a_limit_of_the_buckets_own_is_tightened_like_every_other_and_blocks_nobody_whom_it_did_not(
    override: int | None, percent: int, limit: int
) -> None:
    assert bucket(override).limit(1_000, percent=percent) == limit
