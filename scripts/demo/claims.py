"""What the demo claims, checked against what was measured. Pure: evidence in, verdicts out."""

from collections.abc import Iterator

from scripts.demo.books import Books, refill_needed, refill_possible
from scripts.demo.claim import Claim, refusals
from scripts.demo.evidence import Evidence
from scripts.demo.overspend_claims import overspend_claims
from scripts.demo.tally import Tally

ANSWERS_WHILE_IT_RAN = 3
ANSWERS_AFTER_IT_WAS_REFUSED = 5


def claims(evidence: Evidence) -> tuple[Claim, ...]:
    """Every claim of the story, in its order."""
    acts = (
        _bot(evidence),
        _runaway(evidence),
        _normal(evidence),
        overspend_claims(evidence.overspend),
        _crowd(evidence),
    )
    return tuple(claim for act in acts for claim in act)


def _bot(evidence: Evidence) -> Iterator[Claim]:
    bot = evidence.bot
    yield Claim(
        text="the bot is refused each time, as unauthenticated",
        held=bot.kinds == {"unauthenticated (app-check)": bot.calls} and bot.calls > 0,
        evidence=f"{bot.calls} calls, {refusals(bot)}",
    )
    if evidence.model:
        requests = evidence.model.during_bot
        yield Claim(
            text="the bot never reaches Gemini",
            held=requests == 0,
            evidence=f"{requests} requests in Gemini's log, countTokens included",
        )
    documents = sum(books.documents for books in evidence.bot_books)
    yield Claim(
        text="the bot leaves nothing in Firestore, though it was signed in",
        held=documents == 0 and len(evidence.bot_books) == len(bot.uids) > 0,
        evidence=f"{documents} documents of its {len(bot.uids)} accounts",
    )


def _runaway(evidence: Evidence) -> Iterator[Claim]:
    runaway, books, limit = evidence.runaway, evidence.runaway_books, evidence.limit
    yield _refusals(runaway, limit)
    yield Claim(
        text="every call of it is accounted for",
        held=books.held == 0 and books.admitted == runaway.answered > 0 and runaway.unanswered == 0,
        evidence=f"{runaway.answered} answers, {books.admitted} charged calls, {books.held} still held; "
        f"asked to retry with the same requestId: {runaway.waits}",
    )
    yield _balance("it is charged to the token: level = limit - charged + refill", books, limit)
    yield _exactly(evidence)
    if evidence.model:
        generations = evidence.model.runaway
        yield Claim(
            text="Gemini saw the admitted calls and no other",
            held=generations == books.admitted,
            evidence=f"{generations} requests in Gemini's log, {books.admitted} admitted",
        )


def _refusals(runaway: Tally, limit: int) -> Claim:
    told = [r for r in runaway.out_of_tokens if _tells_when(r.details, limit)]
    first = told[0].details if told else {}
    return Claim(
        text="the runaway is refused with a reason it can act on",
        # Of a store that is slow to answer: the call was sent again and is told that the first one never ran.
        held=bool(told) and len(told) + sum(r.never_ran for r in runaway.refusals) == runaway.refused,
        evidence=(
            f"{refusals(runaway)}; the first: remaining {first.get('remaining')}, "
            f"retry after {first.get('retryAfterSeconds')} s"
        ),
    )


def _tells_when(details: object, limit: int) -> bool:
    if not isinstance(details, dict) or details.get("limit") != limit:
        return False
    remaining, retry_after_s = details.get("remaining"), details.get("retryAfterSeconds")
    return isinstance(remaining, int) and isinstance(retry_after_s, int) and retry_after_s >= 1


def _balance(text: str, books: Books, limit: int) -> Claim:
    if books.bucket is None:
        return Claim(text=text, held=False, evidence="there is no bucket")
    needed, possible = refill_needed(books, limit), refill_possible(books.bucket, limit)
    return Claim(
        text=text,
        held=0 <= needed <= possible,
        evidence=(
            f"{books.bucket.level:,} = {limit:,} - {books.charged:,} + {needed} "
            f"(its {_life_s(books):.0f} s can have refilled {possible})"
        ),
    )


def _life_s(books: Books) -> float:
    assert books.bucket is not None
    return (books.bucket.updated_us - books.bucket.opened_us) / 1e6


def _exactly(evidence: Evidence) -> Claim:
    """Nothing more would have fitted: neither at any refusal after the last answer, nor in the end."""
    books = evidence.runaway_books
    estimate = books.smallest_estimate
    late = [r for r in evidence.runaway.out_of_tokens if r.at_ms >= evidence.last_admitted_ms]
    remaining = [estimate if r.remaining is None else r.remaining for r in late]
    level = books.bucket.level if books.bucket else estimate
    return Claim(
        text="it is admitted exactly as far as the bucket goes",
        held=bool(remaining) and max(remaining) < estimate and level < estimate,
        evidence=(
            f"a call needs {estimate:,}; at most {max(remaining, default=0):,} remained at its last {len(late)} "
            f"refusals, {level:,} in the end"
        ),
    )


def _normal(evidence: Evidence) -> Iterator[Claim]:
    normal = evidence.normal
    during = normal.answered_between(evidence.began_ms, evidence.last_admitted_ms)
    after = normal.answered_between(evidence.last_admitted_ms, float("inf"))
    yield Claim(
        text="the normal user is never refused",
        held=normal.refused == 0 and normal.answered == normal.calls > 0,
        evidence=f"{normal.answered} answers to {normal.calls} calls, {refusals(normal)}",
    )
    yield Claim(
        text="the normal user is answered while the runaway burns, and after it is refused",
        held=during >= ANSWERS_WHILE_IT_RAN and after >= ANSWERS_AFTER_IT_WAS_REFUSED,
        evidence=f"{during} answers while it ran, {after} after",
    )
    yield _balance("the normal user pays for its own calls alone", evidence.normal_books, evidence.limit)


def _crowd(evidence: Evidence) -> Iterator[Claim]:
    if evidence.crowd is None:
        return
    slow, other, share = evidence.crowd.slow, evidence.crowd.other, evidence.crowd.threads // 2
    yield Claim(
        text="one user's slow calls hold half of an instance's threads, and no more",
        held=slow.unanswered == share and slow.kinds == {"resource-exhausted (contention)": slow.calls - share},
        evidence=f"{slow.calls} calls at once: {slow.unanswered} held, {refusals(slow)}",
    )
    yield Claim(
        text="another user of that instance is answered while they are held",
        held=other.answered == other.calls > 0 and slow.unanswered == share,
        evidence=f"{other.answered} answers to {other.calls} calls, with {slow.unanswered} calls still held",
    )
