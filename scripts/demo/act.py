"""The scenes of act 4, and what was seen in them."""

import time
from collections.abc import Callable

from scripts.clients.caller import Caller, call
from scripts.clients.client import Client
from scripts.demo import command, prompts
from scripts.demo.billing import AMOUNT_USD
from scripts.demo.evidence import SLACK_S, Overspend, Stage
from scripts.demo.notices import Notices
from scripts.demo.ops import OWNER, Ops
from scripts.demo.overspend_claims import EDITS, QUESTIONS, SCOPE, TIMES
from scripts.demo.screen import Screen
from scripts.demo.stages import notices
from scripts.demo.tally import Tally, tally
from scripts.local.stack import Stack

WITHIN_USD, OVER_USD = (60, 95), 120
RESET = ("switch", "reset", "--scope", SCOPE, "--owner", OWNER, "--reason", "the budget was raised", "--by", "demo")
POLL_S = 0.1
WITHIN_S = 30
END_S = 80


class Stuck(Exception):
    """What does not come in time: the act ends, and its claims tell what is missing."""


class Act:
    """The act under way."""

    def __init__(
        self,
        stack: Stack,
        screen: Screen,
        *,
        ops: Ops,
        sent: Notices,
        editing: Caller,
        switch_ttl_s: int,
    ) -> None:
        self._stack, self._screen, self._editing = stack, screen, editing
        self._ops, self._sent = ops, sent
        self._ttl_s = switch_ttl_s
        self._began_ms = _now_ms()
        self._over_ms = float("inf")
        self._stages: list[Stage] = []
        self._reason: str | None = None
        self._questions = tally([])
        self._reset_status: int | None = None

    def play(self) -> Overspend:
        """All scenes, or as far as it goes."""
        try:
            self._budget_lasts()
            self._overspent()
            self._switched_off()
            self._reset()
            self._stays_on()
        except Stuck as stuck:
            self._screen.say(f"  gave up waiting for {stuck}", "red")
        self._end_stage()
        return self._seen()

    def _budget_lasts(self) -> None:
        self._until("the first edits", lambda: self._edits().answered >= EDITS)
        for usd in WITHIN_USD:
            self._sent.spend(usd)
        # First these: the emulator starts a process for each message that finds the others busy.
        self._taken()
        self._sent.repeat(TIMES // 2 - 1, history=True)
        self._taken()
        self._end_stage()
        spent = ", then ".join(f"${usd}" for usd in WITHIN_USD)
        self._screen.say(f"  {spent} are spent; notices {notices(self._stages[0].taken_usd)}: nothing is switched off")

    def _overspent(self) -> None:
        self._over_ms = _now_ms()
        self._sent.spend(OVER_USD)
        self._sent.repeat(TIMES // 2, history=True)
        self._sent.repeat(TIMES // 2 - 1)
        self._until("a trip of the switch", lambda: self._ops.reason(SCOPE) is not None)
        self._reason = self._ops.reason(SCOPE)
        self._screen.say(f"  ${OVER_USD} are spent: the budget has switched {SCOPE} off")
        self._taken()
        self._end_stage()
        self._screen.say(f"  the function took, in any order: {notices(self._stages[-1].taken_usd)}")

    def _switched_off(self) -> None:
        since_ms = _now_ms() + self._seen_ms
        self._until("refused edits", lambda: self._edits().refused > 0)
        first = self._edits().refusals[0]
        self._screen.say(f"  edits are refused: {first.code} ({first.reason}), {first.message}")
        self._until("every process to see it", lambda: sum(r.at_ms > since_ms for r in self._edits().refusals) >= EDITS)
        asking = Client(backend=self._stack, data=prompts.NORMAL, calls=QUESTIONS)
        self._screen.now("  another user asks Gemini")
        self._questions = tally(call(asking))
        self._screen.say(f"  Gemini goes on: {self._questions.answered} answers to {self._questions.calls} questions")

    def _reset(self) -> None:
        self._screen.now("  the operator resets the switch")
        done = command.ops(RESET, project=self._stack.project, firestore_host=self._stack.firestore_host)
        self._screen.say(f"  $ {done.typed}")
        self._screen.say(f"    {done.printed}", "red" if done.status else "")
        self._reset_status = done.status

    def _stays_on(self) -> None:
        since_ms = _now_ms() + self._seen_ms
        self._sent.repeat(TIMES)
        self._taken()
        self._until("edits answered again", lambda: self._edits().answered_between(since_ms, float("inf")) >= EDITS)
        self._end_stage()
        self._screen.say(f"  the ${OVER_USD} notice comes {TIMES} more times: edits are still answered")

    @property
    def _seen_ms(self) -> float:
        return (self._ttl_s + SLACK_S) * 1000

    def _edits(self) -> Tally:
        return tally(self._editing.events)

    def _taken(self) -> None:
        self._until("the notices", lambda: self._sent.on_their_way() <= 0)

    def _until(self, what: str, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not done():
            if time.monotonic() > deadline or not self._editing.running:
                raise Stuck(what)
            seen = self._edits()
            self._screen.now(f"  waiting for {what}; edits: {seen.answered} answered, {seen.refused} refused")
            time.sleep(POLL_S)

    def _end_stage(self) -> None:
        self._stages.append(self._sent.since(*self._stages))

    def _seen(self) -> Overspend:
        self._screen.now("  waiting for the last calls of the client")
        self._editing.stop()
        edits = tally(self._editing.wait(END_S))
        below, over, after, *_ = (*self._stages, *[Stage(published=0, taken_usd=())] * 3)
        return Overspend(
            budget_usd=AMOUNT_USD,
            switch_ttl_s=self._ttl_s,
            below=below,
            over=over,
            after=after,
            over_ms=self._over_ms,
            reason=self._reason,
            edits=edits,
            questions=self._questions,
            reset_status=self._reset_status,
            changes=self._ops.changes(self._began_ms),
        )


def _now_ms() -> float:
    return time.time() * 1000
