"""What the bucket's documents hold, as values; and how a uid becomes a document's name."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

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


def document_id(uid: str) -> str:
    """The uid as a document id: different uids never share one, whatever characters a custom one holds."""
    escaped = uid.replace("%", "%25").replace("/", "%2F").replace(".", "%2E")
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
