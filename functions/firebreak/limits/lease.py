"""A lease: tokens that an instance takes from a level document by one commit, to hand them out without another.

No commit is sent twice. One without an answer may have been applied: what it took is gone, and nobody hands it out. So
whatever fails, what is handed out was taken before, once.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from google.cloud import firestore
from google.cloud.firestore_v1.field_path import FieldPath

from firebreak.bucket.arithmetic import Level
from firebreak.bucket.documents import read_level
from firebreak.limits import credit
from firebreak.limits.credit import Holding, LeaseRequest
from firebreak.store import commit
from firebreak.store.clock import ServerClock
from firebreak.store.documents import Corrupt
from firebreak.store.outcome import STORE_ERRORS
from firebreak.store.times import from_us, to_us
from firebreak.store.tries import Clock, Tries


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """A level document as read, or as our own commit left it; `updated` is its update_time, None: there is none."""

    levels: Mapping[str, Level]
    version: int | None
    updated: datetime | None


class LevelDocument:
    """One level document; the names of its levels are such as `document_id` makes."""

    __slots__ = ("_path", "client")

    def __init__(self, client: firestore.Client, collection: str, name: str) -> None:
        self.client = client
        self._path = (collection, name)

    @property
    def reference(self) -> firestore.DocumentReference:
        # Made anew each time: most documents that an instance remembers are not asked again.
        reference: firestore.DocumentReference = self.client.document(*self._path)
        return reference

    def commit(
        self, before: Levels, changed: Mapping[str, Level], *, expire_us: int | None, timeout_s: float
    ) -> tuple[Levels, int]:
        """Write the levels that changed, if the document is still as it was before; others stay as they are.

        Returns what it holds now, and the server's time of the commit.
        """
        # An update that changed no field would keep the update_time; a chain that starts anew must fit no other.
        version = secrets.randbits(48) if before.version is None else before.version + 1
        levels: dict[str, commit.Value] = {
            name: {"tokens": level.tokens, "updatedAt": from_us(level.updated_us)} for name, level in changed.items()
        }
        fields: dict[str, commit.Value] = {"levels": levels, "version": version}
        if expire_us is not None:
            fields["expireAt"] = from_us(expire_us)
        batch = self.client.batch()
        if before.updated is None:
            commit.create(batch, self.reference, fields)
        else:
            paths = [*(FieldPath("levels", name).to_api_repr() for name in changed), *(fields.keys() - {"levels"})]
            commit.update(batch, self.reference, fields, unchanged=before.updated, paths=paths)
        results = commit.send(batch, timeout_s=timeout_s)
        updated = results[0].update_time
        return Levels(levels={**before.levels, **changed}, version=version, updated=updated), to_us(updated)


def read(documents: Sequence[LevelDocument], *, timeout_s: float) -> Iterator[tuple[int, Levels | Corrupt, int]]:
    """Read documents in one RPC: the number of each, what it holds, and the server's time.

    One that holds something else than levels does not hide the others.

    Raises:
        Unreadable: there is no database to read from.
    """
    numbers = {document.reference: number for number, document in enumerate(documents)}
    for snapshot in commit.get_all(documents[0].client, list(numbers), timeout_s=timeout_s):
        try:
            found: Levels | Corrupt = _levels(snapshot.to_dict(), updated=snapshot.update_time)
        except Corrupt as broken:
            found = broken
        yield numbers[snapshot.reference], found, to_us(snapshot.read_time)


def _levels(data: Mapping[str, Any] | None, *, updated: datetime | None) -> Levels:
    fields = data or {}
    levels, version = fields.get("levels", {}), fields.get("version")
    if not isinstance(levels, dict) or not all(isinstance(level, dict) for level in levels.values()):
        raise Corrupt("levels is not a map of maps")
    return Levels(
        levels={name: read_level(level) for name, level in levels.items()},
        version=version if isinstance(version, int) and not isinstance(version, bool) else None,
        updated=updated,
    )


# How long a refusal goes by what was seen. Others only take, and refill is reckoned with: what it can miss is that
# the document was deleted.
REFUSE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasePolicy:
    """How one kind of document is leased from.

    `kept_us`: it expires so long after its last lease. `trusted_s`: how long a known state is committed from without a
    read. `pause_s`: in memory, refill counts only after a random part of this, lest all instances ask at once.
    """

    kept_us: int | None
    trusted_s: float
    pause_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    # None: what is there is no level document.
    state: Levels | None
    at_us: int
    seen_s: float
    resumes_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offer:
    """A commit that can be sent: the state it goes from, the levels it changes, and what it takes."""

    state: Levels
    changed: Mapping[str, Level]
    tokens: int
    at_us: int


class Source:
    """One level document, as this instance knows it and leases from it."""

    __slots__ = ("_clock", "_known", "_terms", "_time", "document")

    def __init__(self, document: LevelDocument, *, terms: LeasePolicy, time: ServerClock, clock: Clock) -> None:
        self.document = document
        self._terms = terms
        self._time = time
        self._clock = clock
        # Set and got as a whole, by any thread: being behind costs a retry, or a refusal less from memory.
        self._known: _Known | None = None

    @property
    def broken(self) -> bool:
        """Whether the document was last seen to hold something else than levels."""
        return self._known is not None and self._known.state is None

    @property
    def fresh(self) -> bool:
        """Whether what is known is to be committed from without a read."""
        return self._known is not None and self._clock.monotonic() - self._known.seen_s <= self._terms.trusted_s

    def holding(self, limits: Mapping[str, int]) -> Holding | None:
        """The most that the levels hold by now, if that is known well enough to refuse by; of a broken one, nothing."""
        known, now_us, now_s = self._known, self._time.now_us(), self._clock.monotonic()
        if known is None or now_us is None or now_s - known.seen_s > REFUSE_S:
            return None
        if known.state is None:
            return Holding(levels={}, at_us=now_us)
        at_us = known.at_us if now_s < known.resumes_s else now_us
        return credit.holding(known.state.levels, limits, at_us=at_us)

    def lease(self, limits: Mapping[str, int], want: LeaseRequest, tries: Tries) -> int:
        """Take tokens from the levels that `limits` names, in this order, by one commit; 0 if they do not cover it.

        Raises:
            STORE_ERRORS: no tokens for us, whatever became of the commit.
            Corrupt, Unreadable: waiting does not help.
        """
        offer = self._trusted(limits, want) or self._offer(*self._read(tries.rpc_s), limits, want)
        if offer is None:
            return 0
        try:
            after = self.document.commit(
                offer.state, offer.changed, expire_us=self._expire_us(offer.at_us), timeout_s=tries.rpc_s
            )
        except STORE_ERRORS:
            self._known = None
            raise
        self.see(*after)
        return offer.tokens

    def see(self, state: Levels | None, at_us: int) -> None:
        """Take in what the document holds at a time of the server; None: something else than levels."""
        self._time.note(at_us)
        now_s = self._clock.monotonic()
        resumes_s = now_s + self._clock.uniform(0, self._terms.pause_s)
        self._known = _Known(state=state, at_us=at_us, seen_s=now_s, resumes_s=resumes_s)

    def _trusted(self, limits: Mapping[str, int], want: LeaseRequest) -> _Offer | None:
        """To commit, what is known need not be young: if it is not so any more, nothing is applied."""
        known, now_us = self._known, self._time.now_us()
        if known is None or known.state is None or now_us is None or not self.fresh:
            return None
        return self._offer(known.state, now_us, limits, want)

    def _read(self, timeout_s: float) -> tuple[Levels, int]:
        look([self], timeout_s=timeout_s)
        known = self._known
        if known is None or known.state is None:
            raise Corrupt("no levels")
        return known.state, known.at_us

    def _offer(self, state: Levels, at_us: int, limits: Mapping[str, int], want: LeaseRequest) -> _Offer | None:
        held = credit.holding(state.levels, limits, at_us=at_us)
        tokens = credit.amount(held.tokens, want)
        changed = credit.drawn(held.levels, tokens)
        return _Offer(state=state, changed=changed, tokens=tokens, at_us=at_us) if tokens else None

    def _expire_us(self, now_us: int) -> int | None:
        return None if self._terms.kept_us is None else now_us + self._terms.kept_us


def look(sources: Sequence[Source], *, timeout_s: float) -> None:
    """Read documents in one RPC; what they hold is known then.

    Raises:
        STORE_ERRORS, Unreadable: nothing is known.
    """
    for number, state, at_us in read([source.document for source in sources], timeout_s=timeout_s):
        sources[number].see(None if isinstance(state, Corrupt) else state, at_us)
