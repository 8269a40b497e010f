"""Reads what the story left in Firestore: the token buckets and their calls, over the emulator's REST interface."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from scripts.clients.client import Json
from scripts.demo.books import Books, Bucket, CallDocument
from scripts.local import wire

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PAGE = 300


class Records:
    """The documents under `token_buckets`, read as the emulator's owner: clients can read none of them."""

    def __init__(self, *, project: str, firestore_host: str) -> None:
        self._root = f"http://{firestore_host}/v1/projects/{project}/databases/(default)/documents/token_buckets"

    def books(self, uid: str) -> Books:
        """Bucket and calls of one user; the Auth emulator's uids need no escaping."""
        document = self._get(f"/{uid}")
        return Books(
            bucket=_bucket(document) if document else None,
            calls=tuple(_call(call["fields"]) for call in self._list(f"/{uid}/calls")),
        )

    def _list(self, path: str) -> Iterator[Json]:
        page = ""
        while True:
            answer = self._get(f"{path}?pageSize={PAGE}&pageToken={page}") or {}
            yield from answer.get("documents", [])
            page = answer.get("nextPageToken", "")
            if not page:
                return

    def _get(self, path: str) -> Json:
        answer = wire.call("GET", self._root + path, headers={"Authorization": "Bearer owner"})
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise OSError(f"Firestore answered {answer.status} to a read of {path}")
        return answer.json


class ModelLog:
    """The requests that the Gemini stand-in has received."""

    def __init__(self, standins_url: str) -> None:
        self._url = f"{standins_url}/_log/gemini"

    def requests(self) -> list[Json]:
        """All of them, countTokens included."""
        return list(wire.call("GET", self._url).json)

    def generations(self, mark: str, *, since: int) -> int:
        """How many after the first `since` asked for an answer to a text that holds `mark`."""
        return sum("generateContent" in json.dumps(r) and mark in json.dumps(r) for r in self.requests()[since:])


def _bucket(document: Json) -> Bucket:
    fields = document["fields"]
    return Bucket(
        level=int(fields["tokens"]["integerValue"]),
        opened_us=_microseconds(document["createTime"]),
        updated_us=_microseconds(fields["updatedAt"]["timestampValue"]),
    )


def _call(fields: Json) -> CallDocument:
    actual = fields.get("actual")
    return CallDocument(
        status=fields["status"]["stringValue"],
        estimated=int(fields["estimated"]["integerValue"]),
        actual=int(actual["integerValue"]) if actual else None,
    )


def _microseconds(stamp: str) -> int:
    return (datetime.fromisoformat(stamp) - EPOCH) // timedelta(microseconds=1)
