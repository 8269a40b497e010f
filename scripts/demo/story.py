"""The story: a bot, a runaway user beside a normal one, an overspent budget, slow calls; all on the official SDK."""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from scripts.clients.caller import Caller, Event, call
from scripts.clients.client import Client
from scripts.demo import prompts
from scripts.demo.claims import ANSWERS_AFTER_IT_WAS_REFUSED
from scripts.demo.crowd import crowd
from scripts.demo.evidence import Evidence, ModelSaw
from scripts.demo.overspend import overspend
from scripts.demo.records import ModelLog, Records
from scripts.demo.screen import Screen
from scripts.demo.tally import Refusal, Tally, join, tally
from scripts.local.stack import Stack

RUNAWAY_WORKERS = 8
REFUSALS_AT_THE_END = 3 * RUNAWAY_WORKERS
BOT_ATTEMPTS: Mapping[str, Mapping[str, object] | None] = {
    "no App Check token": None,
    "a forged token": {"badSignature": True},
    "an expired token": {"ttlSeconds": -60},
    "a token of another project": {"projectId": "demo-somebody-else"},
}
BOT_WORKERS = 3
NORMAL_PAUSE_MS = 20
POLL_S = 0.1
WITHIN_S = 90
REAL_TIMES = 10
END_S = 80


def play(stack: Stack, screen: Screen, *, limit: int, switch_ttl_s: int, real: bool) -> Evidence:
    """All acts, and what they left behind. `real`: Google answers, so there is no log of the model to look at."""
    records = Records(project=stack.project, firestore_host=stack.firestore_host)
    log = None if real else ModelLog(stack.standins_url)
    before = len(log.requests()) if log else 0
    seen_bot = bot(stack, screen)
    after = len(log.requests()) if log else 0
    runaway, normal = runaway_beside_normal(stack, screen, within_s=WITHIN_S * (REAL_TIMES if real else 1))
    saw = None
    if log:
        runaway_requests = log.generations(prompts.RUNAWAY_MARK, since=after)
        saw = ModelSaw(during_bot=after - before, runaway=runaway_requests)
    overspent = overspend(stack, screen, switch_ttl_s=switch_ttl_s)
    crowded = None if real else crowd(stack, screen)
    return Evidence(
        limit=limit,
        bot=seen_bot,
        bot_books=tuple(records.books(uid) for uid in seen_bot.uids),
        runaway=runaway,
        runaway_books=records.books(*runaway.uids),
        normal=normal,
        normal_books=records.books(*normal.uids),
        overspend=overspent,
        crowd=crowded,
        model=saw,
    )


def bot(stack: Stack, screen: Screen) -> Tally:
    """Act 1: signed in, so that a bucket could exist, but not attested; all calls at once."""
    screen.say("act 1: a bot, signed in but not attested", "bold")
    screen.now("the functions emulator starts a process for each call at once")
    with ThreadPoolExecutor(max_workers=len(BOT_ATTEMPTS)) as pool:
        tallies = list(pool.map(lambda attest: tally(_attempt(stack, attest)), BOT_ATTEMPTS.values()))
    for kind, seen in zip(BOT_ATTEMPTS, tallies, strict=True):
        told = [f"{count} x {how}" for how, count in seen.kinds.items()]
        screen.say(f"  with {kind}: {', '.join(told) or 'answered'}")
    return join(tallies)


def _attempt(stack: Stack, attest: Mapping[str, object] | None) -> list[Event]:
    client = Client(backend=stack, attest=attest, data=prompts.BOT, calls=BOT_WORKERS, workers=BOT_WORKERS)
    return call(client)


def runaway_beside_normal(stack: Stack, screen: Screen, *, within_s: float) -> tuple[Tally, Tally]:
    """Acts 2 and 3: the runaway calls until its bucket is empty, and goes on; the normal user talks all the while.

    Raises:
        CallerFailed: a client broke, or this did not come to its end in time.
    """
    chat = Client(backend=stack, data=prompts.NORMAL, calls=None, pause_ms=NORMAL_PAUSE_MS)
    # Together first: the emulator's cold processes would else serve one worker while the others wait.
    loop = Client(backend=stack, data=prompts.RUNAWAY, calls=None, workers=RUNAWAY_WORKERS, open_together=True)
    deadline = time.monotonic() + within_s
    screen.say(f"acts 2 and 3: a normal user talks; beside it runs a loop of {RUNAWAY_WORKERS} workers", "bold")
    with Caller(chat) as normal:
        while normal.running and not _has_begun(tally(normal.events)) and time.monotonic() < deadline:
            screen.now("  the normal user waits for the first answer")
            time.sleep(POLL_S)
        with Caller(loop) as runaway:
            _watch(runaway, normal, screen, deadline)
            screen.now("  waiting for the last calls of the clients")
            runaway.stop()
            normal.stop()
            return tally(runaway.wait(END_S)), tally(normal.wait(END_S))


def _watch(runaway: Caller, normal: Caller, screen: Screen, deadline: float) -> None:
    """Shows how it goes, until it is over, a client has ended by itself, or the time is up."""
    told = False
    while runaway.running and normal.running and time.monotonic() < deadline:
        loop, chat = tally(runaway.events), tally(normal.events)
        if loop.out_of_tokens and not told:
            told = True
            screen.say(f"  the runaway's first refusal, after {loop.answered} answers: {_words(loop.out_of_tokens[0])}")
        if is_lost(loop, chat):
            screen.say("  the clients meet refusals that do not belong to the story", "red")
            return
        if is_over(loop, chat):
            in_hand = loop.calls - loop.answered - loop.refused
            screen.say(f"  the runaway: {loop.answered} answers, {loop.refused} refusals, {in_hand} calls still open")
            screen.say(f"  the normal user: {chat.answered} answers, {chat.refused} refusals")
            return
        screen.now(
            f"  runaway {loop.answered} answers, {loop.refused} refusals; "
            f"normal user {chat.answered} answers, {chat.refused} refusals"
        )
        time.sleep(POLL_S)


def _has_begun(normal: Tally) -> bool:
    return normal.answered > 0 or normal.refused > RUNAWAY_WORKERS


def is_over(runaway: Tally, normal: Tally) -> bool:
    """Every worker of the runaway was refused several times, and the normal user was answered meanwhile."""
    last_admitted_ms = max((answer.at_ms for answer in runaway.answers), default=0)
    refused_since = sum(refusal.at_ms >= last_admitted_ms for refusal in runaway.out_of_tokens)
    answered_since = normal.answered_between(last_admitted_ms, float("inf"))
    return refused_since >= REFUSALS_AT_THE_END and answered_since > ANSWERS_AFTER_IT_WAS_REFUSED


def is_lost(runaway: Tally, normal: Tally) -> bool:
    """Something is broken: there is no point in waiting for the end."""
    return runaway.refused - len(runaway.out_of_tokens) > RUNAWAY_WORKERS or normal.refused > RUNAWAY_WORKERS


def _words(refusal: Refusal) -> str:
    details = ", ".join(f"{name} {value}" for name, value in refusal.details.items())
    return f"{refusal.code} ({details})"
