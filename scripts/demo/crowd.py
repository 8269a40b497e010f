"""Act 5: one user's slow calls fill no instance. Played on the function as deployed: the emulator has no threads."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from scripts.clients.caller import Caller, call
from scripts.clients.client import Client
from scripts.demo import prompts
from scripts.demo.evidence import Crowd
from scripts.demo.screen import Screen
from scripts.demo.tally import Tally, tally
from scripts.local import wire
from scripts.local.deployed import deployed
from scripts.local.stack import Stack

THREADS = 8
SHARE = THREADS // 2
# Longer than the act: the server ends first, and with it the calls that are held.
SLOW = {"text": "late", "delayMs": 55_000}
POLL_S = 0.1
WITHIN_S = 40


def crowd(stack: Stack, screen: Screen) -> Crowd:
    """The act.

    Raises:
        CallerFailed: a client broke.
    """
    screen.say(
        f"act 5: on one instance of {THREADS} threads, a user sends {THREADS} calls that the model is slow on", "bold"
    )
    wire.call("POST", f"{stack.standins_url}/_script/gemini", [SLOW] * SHARE)
    with tempfile.TemporaryDirectory() as folder:
        server = deployed("generate", stack, Path(folder) / "log", env={"THREADS": str(THREADS)})
        with server as instance:
            return _play(replace(stack, functions_url=instance.url), screen)


def _play(stack: Stack, screen: Screen) -> Crowd:
    slow = Client(backend=stack, data=prompts.RUNAWAY, calls=THREADS, workers=THREADS, patient=False)
    before = _asked(stack)
    with Caller(slow) as runaway:
        _wait(runaway, lambda: _asked(stack) - before >= SHARE, screen)
        other = tally(call(Client(backend=stack, data=prompts.NORMAL)))
        # Looked at only now: what was held when the other was answered.
        seen = tally(runaway.events)
    screen.say(f"  {seen.unanswered} of its calls hold a thread, {seen.refused} are refused")
    screen.say(f"  another user of this instance: {other.answered} answer to {other.calls} call")
    return Crowd(threads=THREADS, slow=seen, other=other)


def _asked(stack: Stack) -> int:
    """How often the model was asked for an answer."""
    log = wire.call("GET", f"{stack.standins_url}/_log/gemini").json
    return sum(entry["method"] == "generateContent" for entry in log)


def _wait(runaway: Caller, thinking: Callable[[], bool], screen: Screen) -> None:
    """Until the model works on the calls within the share, and those beyond it are refused."""
    deadline = time.monotonic() + WITHIN_S
    while runaway.running and time.monotonic() < deadline and not (_filled(tally(runaway.events)) and thinking()):
        screen.now("  waiting for its calls")
        time.sleep(POLL_S)


def _filled(seen: Tally) -> bool:
    return seen.calls == THREADS and seen.refused + seen.answered >= THREADS - SHARE
