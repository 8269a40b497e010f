"""A lease: tokens that an instance takes from a level document by one commit, to hand them out without another.

No commit is sent twice. One without an answer may have been applied: what it took is gone, and nobody hands it out. So
whatever fails, what is handed out was taken before, once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from firebreak.bucket import chunk, levels
from firebreak.bucket.answers import STORE_ERRORS
from firebreak.bucket.arithmetic import Level
from firebreak.bucket.chunk import Holding, Want
from firebreak.bucket.clock import ServerClock
from firebreak.bucket.levels import LevelDocument, Levels
from firebreak.bucket.record import Corrupt
from firebreak.bucket.tries import Clock, Tries

# How long a refusal goes by what was seen. Others only take, and refill is reckoned with: what it can miss is that
# the document was deleted.
REFUSE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
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

    def __init__(self, document: LevelDocument, *, terms: Terms, time: ServerClock, clock: Clock) -> None:
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
        return chunk.holding(known.state.levels, limits, at_us=at_us)

    def lease(self, limits: Mapping[str, int], want: Want, tries: Tries) -> int:
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

    def _trusted(self, limits: Mapping[str, int], want: Want) -> _Offer | None:
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

    def _offer(self, state: Levels, at_us: int, limits: Mapping[str, int], want: Want) -> _Offer | None:
        held = chunk.holding(state.levels, limits, at_us=at_us)
        tokens = chunk.amount(held.tokens, want)
        changed = chunk.drawn(held.levels, tokens)
        return _Offer(state=state, changed=changed, tokens=tokens, at_us=at_us) if tokens else None

    def _expire_us(self, now_us: int) -> int | None:
        return None if self._terms.kept_us is None else now_us + self._terms.kept_us


def look(sources: Sequence[Source], *, timeout_s: float) -> None:
    """Read documents in one RPC; what they hold is known then.

    Raises:
        STORE_ERRORS, Unreadable: nothing is known.
    """
    for number, state, at_us in levels.read([source.document for source in sources], timeout_s=timeout_s):
        sources[number].see(None if isinstance(state, Corrupt) else state, at_us)
