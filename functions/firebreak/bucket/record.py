"""What the bucket's documents hold, as values; and how a user becomes a document's name."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any
from urllib.parse import unquote

from firebreak.bucket.arithmetic import DAY_US, Level, tightened

BUCKETS = "token_buckets"
CALLS = "calls"
KEPT_US = 30 * DAY_US

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_US = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_RESERVED = re.compile(r"__.*__", re.DOTALL)


class Status(StrEnum):
    """Of a call: charged at its estimate, charged at its usage, or never to run."""

    HELD = "held"
    SETTLED = "settled"
    VOID = "void"


class Corrupt(Exception):
    """A bucket's document holds something no bucket can hold; nobody is admitted on a guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A bucket as read: `updated` is the document's update_time, None where there is no document."""

    level: Level | None
    version: int | None
    override: int | None
    updated: datetime | None

    def limit(self, default: int, *, percent: int) -> int:
        """Tokens a day: `default`, unless the bucket has its own; of that `percent` hold while limits are tightened."""
        return default if self.override is None else tightened(self.override, percent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a read of a bucket's document gave, and the server's time of it."""

    bucket: Bucket
    at_us: int
    lifetime: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call as read; `updated` is the document's update_time."""

    status: str
    holder: str
    estimated: int
    actual: int | None
    updated: datetime


def document_id(name: str) -> str:
    """Any name as a document id: different names never share one, whatever characters they hold."""
    return _unreserved(_escaped(name))


def user_key(uid: str, tenant: str | None = None) -> str:
    """The document id of a user. A uid is unique only within its tenant, so the tenant is part of it.

    An escaped name holds no dot: a dot stands between tenant and uid, and is in no key of a user without a tenant.
    """
    return document_id(uid) if tenant is None else _unreserved(f"{_escaped(tenant)}.{_escaped(uid)}")


def user_of(key: str) -> tuple[str, str | None]:
    """The reverse of `user_key`: uid and tenant."""
    tenant, dot, uid = key.rpartition(".")
    return unquote(uid), unquote(tenant) if dot else None


def _escaped(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F").replace(".", "%2E")


def _unreserved(escaped: str) -> str:
    return "%5F" + escaped[1:] if _RESERVED.fullmatch(escaped) else escaped


def to_us(stamp: datetime) -> int:
    """Microseconds since the epoch, exactly."""
    return (stamp - _EPOCH) // timedelta(microseconds=1)


def from_us(us: int) -> datetime:
    """The time that is `us` microseconds after the epoch, or the last one there is: a debt can outlast the calendar."""
    return _EPOCH + timedelta(microseconds=min(us, _LAST_US))


def read_bucket(data: Mapping[str, Any] | None, *, updated: datetime | None, read: datetime) -> Read:
    """A bucket from its document's fields, None where there is no document; fractional tokens are rounded down.

    Raises:
        Corrupt: its level, time or override is not one.
    """
    fields = data or {}
    bucket = Bucket(
        level=None if data is None else read_level(fields),
        version=_version(fields),
        override=_override(fields),
        updated=updated,
    )
    return Read(bucket=bucket, at_us=to_us(read), lifetime=_mapping(fields.get("lifetime")))


def read_call(data: Mapping[str, Any], *, updated: datetime) -> Call:
    """A call from its document's fields.

    Raises:
        Corrupt: its counts are none.
    """
    actual = data.get("actual")
    if not _is_whole(data.get("estimated", 0)) or not (actual is None or _is_whole(actual)):
        raise Corrupt("estimated or actual is not a whole number")
    return Call(
        status=str(data.get("status")),
        holder=str(data.get("holder")),
        estimated=int(data.get("estimated", 0)),
        actual=None if actual is None else int(actual),
        updated=updated,
    )


def read_level(data: Mapping[str, Any]) -> Level:
    """A level from its fields; fractional tokens are rounded down.

    Raises:
        Corrupt: it is none.
    """
    tokens, updated = data.get("tokens"), data.get("updatedAt")
    if isinstance(tokens, bool) or not isinstance(tokens, int | float) or not math.isfinite(tokens):
        raise Corrupt("tokens is not a number")
    if not isinstance(updated, datetime):
        raise Corrupt("updatedAt is not a timestamp")
    return Level(tokens=math.floor(tokens), updated_us=to_us(updated))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _version(data: Mapping[str, Any]) -> int | None:
    version = data.get("version")
    return version if isinstance(version, int) and not isinstance(version, bool) else None


def _override(data: Mapping[str, Any]) -> int | None:
    override = data.get("override")
    if override is None:
        return None
    if isinstance(override, bool) or not isinstance(override, int) or override < 0:
        raise Corrupt("override is not a whole number of at least 0")
    return override


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
