"""What is on record: `ops/caps` in Firestore, which holds every intent before it is acted on, and every name after."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from google.api_core.exceptions import GoogleAPICallError, NotFound, PermissionDenied, RetryError, Unauthenticated
from google.auth.exceptions import GoogleAuthError
from google.cloud import firestore

from firebreak.store.tries import Clock
from scripts.provision.failure import Failed, Raced
from scripts.provision.seen import Entry, Intent
from scripts.provision.step import Kind

DOCUMENT = "ops/caps"
FIELDS = {Kind.CAP: "caps", Kind.BUDGET: "budgets"}
type Changes = Mapping[tuple[str, ...], Any]

_RPC_S = 10.0
_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """All entries as read, and the time of that on Firestore's clock."""

    caps: Mapping[str, Entry]
    alerts: Mapping[str, Entry]


class Record:
    """The document, as one run writes it."""

    def __init__(self, client: firestore.Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._document: firestore.DocumentReference = client.document(DOCUMENT)

    def read(self) -> Recorded:
        """Every entry.

        Raises:
            Failed: Firestore does not give it.
        """
        snapshot = self._attempt(self._get)
        fields = snapshot.to_dict() or {}
        at = snapshot.read_time
        return Recorded(
            caps=_entries(fields.get(FIELDS[Kind.CAP]), at), alerts=_entries(fields.get(FIELDS[Kind.BUDGET]), at)
        )

    def raw(self, kind: Kind) -> dict[str, dict[str, Any]]:
        """The entries of a kind with all that others have added to them, for showing.

        Raises:
            Failed: Firestore does not give it.
        """
        entries = (self._attempt(self._get).to_dict() or {}).get(FIELDS[kind], {})
        return {key: entry for key, entry in entries.items() if isinstance(entry, dict) and entry.get("intent")}

    def start(self, kind: Kind, key: str, fields: Mapping[str, Any], *, was: Entry | None) -> Entry:
        """Note that a creation begins, in place of all that the entry held; raises as `write`."""
        entry = Entry(intent=Intent.CREATE, mark=secrets.token_hex(8))
        path = (FIELDS[kind], key)
        self._change(path, {path: {**fields, **_noted(entry)}}, entry.mark, was)
        return entry

    def write(self, kind: Kind, key: str, intent: Intent, fields: Mapping[str, Any], *, was: Entry | None) -> Entry:
        """Set the intent and other fields of one entry, if it is still as it `was` when this run looked; as it is now.

        Raises:
            Raced: another run has changed the entry meanwhile.
            Failed: Firestore does not take it.
        """
        entry = Entry(
            intent=intent,
            name=fields.get("name", was.name if was else None),
            adopted=fields.get("adopted", was.adopted if was else False),
            mark=secrets.token_hex(8),
        )
        path = (FIELDS[kind], key)
        made = {"createdAt": firestore.SERVER_TIMESTAMP} if was and was.is_open and entry.name else {}
        noted = {**fields, **made, **_noted(entry)}
        self._change(path, {(*path, name): value for name, value in noted.items()}, entry.mark, was)
        return entry

    def forget(self, kind: Kind, key: str, *, was: Entry | None) -> None:
        """Remove one entry, with all that others have added to it; raises as `write`."""
        path = (FIELDS[kind], key)
        self._change(path, {path: firestore.DELETE_FIELD}, None, was)

    def _change(self, path: tuple[str, str], changes: Changes, mark: str | None, was: Entry | None) -> None:
        """Make the changes, by their field paths, if the entry is still as it was.

        `mark` is the one that the entry then has; None: it is then gone.
        """

        def attempt() -> None:
            snapshot = self._get()
            kind, key = path
            entry = _entry(_mapping((snapshot.to_dict() or {}).get(kind)).get(key), snapshot.read_time)
            # A reply that was lost: this very change is there already.
            if (entry.mark if entry else None) == mark:
                return
            if _identity(entry) != _identity(was):
                raise Raced(f"another run has changed {kind}.{key} meanwhile; wait for its end, then run `plan`")
            if not snapshot.exists:
                self._document.create({}, retry=None, timeout=_RPC_S)
                snapshot = self._get()
            named = {self._client.field_path(*names): value for names, value in changes.items()}
            unchanged = self._client.write_option(last_update_time=snapshot.update_time)
            self._document.update(named, option=unchanged, retry=None, timeout=_RPC_S)

        self._attempt(attempt)

    def _get(self) -> Any:  # noqa: ANN401  # a DocumentSnapshot
        return self._document.get(retry=None, timeout=_RPC_S)

    def _attempt[T](self, act: Callable[[], T]) -> T:
        for number in range(_TRIES):
            try:
                return act()
            except NotFound as error:
                raise Failed(
                    "Firestore has no database (default) in this project; docs/adopting.md, section 1"
                ) from error
            except (GoogleAPICallError, RetryError, GoogleAuthError) as error:
                if number == _TRIES - 1 or isinstance(error, PermissionDenied | Unauthenticated | GoogleAuthError):
                    raise Failed(
                        f"Firestore, where {DOCUMENT} keeps what was made: {type(error).__name__}: {error}"
                    ) from error
                self._clock.sleep(self._clock.uniform(0, 0.2 * 2**number))
        raise AssertionError("the last try returns or raises")


def _noted(entry: Entry) -> dict[str, Any]:
    return {"intent": entry.intent.value, "mark": entry.mark, "since": firestore.SERVER_TIMESTAMP}


def _entries(found: object, at: datetime | None) -> dict[str, Entry]:
    entries = {key: _entry(entry, at) for key, entry in _mapping(found).items()}
    return {key: entry for key, entry in entries.items() if entry is not None}


def _entry(found: object, at: datetime | None) -> Entry | None:
    """An entry; None for what this tool has not written, such as the state of a cap that it has deleted since."""
    fields = _mapping(found)
    if fields.get("intent") not in set(Intent):
        return None
    since = fields.get("since")
    return Entry(
        intent=Intent(fields["intent"]),
        name=fields.get("name"),
        adopted=bool(fields.get("adopted", False)),
        display_name=str(fields.get("displayName", "")),
        service=fields.get("service"),
        since=since if isinstance(since, datetime) else None,
        at=at,
        mark=str(fields.get("mark", "")),
    )


def _identity(entry: Entry | None) -> tuple[object, ...]:
    return () if entry is None else (entry.intent, entry.name, entry.mark)


def _mapping(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, dict) else {}
