"""What a budget's notification sets off: recorded and acted on in one commit, once; then people are told."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from google.cloud import firestore
from urllib3 import PoolManager

from firebreak.budgets import announce, documents
from firebreak.budgets.announce import Announcement
from firebreak.budgets.documents import Seen
from firebreak.budgets.notice import Message, NotANotice, Notice, read
from firebreak.budgets.standing import Decision, Outcome, Standing, decide
from firebreak.events import Event, Field, Severity, emit, note
from firebreak.settings.period import Period, containing
from firebreak.settings.policies import Budget, Policy, TightenPolicy, TripPolicy
from firebreak.store import commit
from firebreak.store.times import DAY_US
from firebreak.store.tries import Clock
from firebreak.switch import change, edit
from firebreak.switch.state import State

# Clients see this; what it was exactly is in `by`.
REASON = "The app's budget for this period is used up."


class _Trip(edit.Trip):
    """A trip that does not cut short one that this budget made before."""

    __slots__ = ()

    def on(self, before: State, at_us: int) -> State:
        held = [t.until_us for t in before.trips if (t.scope, t.owner) == (self.scope, self.owner)]
        return edit.Trip.on(replace(self, until_us=_last(self.until_us, held)), before, at_us)


class _Tighten(edit.Tighten):
    """A tightening that does not loosen one that this budget made before: a forecast may have come first."""

    __slots__ = ()

    def on(self, before: State, at_us: int) -> State:
        held = [t for t in before.tightened if t.owner == self.owner]
        percent = min([self.percent, *(t.percent for t in held)])
        until_us = _last(self.until_us, [t.until_us for t in held])
        return edit.Tighten.on(replace(self, percent=percent, until_us=until_us), before, at_us)


def changes(policies: tuple[Policy, ...], standing: Standing) -> list[edit.Change]:
    """The changes that these policies ask for, in order; one that only records asks for none."""
    found = (_change(policy, standing) for policy in policies)
    return [change for change in found if change is not None]


def _change(policy: Policy, standing: Standing) -> edit.Change | None:
    action, until_us = policy.action, standing.period.end_us
    owner, by = f"budget:{standing.budget}", f"budget {standing.budget}, {policy.threshold}"
    if isinstance(action, TripPolicy):
        return _Trip(scope=action.scope, owner=owner, reason=REASON, by=by, until_us=until_us)
    if isinstance(action, TightenPolicy):
        return _Tighten(owner=owner, percent=action.percent, reason=REASON, by=by, until_us=until_us)
    return None


def _last(until_us: int | None, held: list[int | None]) -> int | None:
    """The later end; None is no end."""
    return None if until_us is None or None in held else max([until_us, *(end for end in held if end is not None)])


# A report this long after the end is no late delivery: the budget's periods are longer than its policies say.
STRAY_US = 7 * DAY_US
_STRAY = "costIntervalStart is not in the budget's period, or does not begin it: BUDGET_POLICIES must name its period"
_CONTRADICTORY = "costAmount is below the threshold that the notice claims, so that nothing was set off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Responder:
    """Acts on the notices of `budgets`; `webhook_url` is as in the secret: empty or `none` is nobody to tell."""

    client: firestore.Client
    budgets: Mapping[str, Budget]
    webhook_url: str = field(repr=False)
    http: PoolManager = field(default_factory=announce.client, repr=False)
    clock: Clock = field(default_factory=Clock)

    def respond(self, message: Message) -> None:
        """Do what a message asks for; it may be anything, and anybody's who may publish.

        Raises:
            StoreUnavailable: it may not be recorded and acted on; what was, will not be again.
            NotTold: people have not heard of it.
        """
        try:
            notice = read(
                message_id=message.id,
                attributes=message.attributes,
                data=message.data,
                published_us=message.published_us,
            )
        except NotANotice as error:
            _say("not-a-notice", severity=Severity.WARNING, why=error.what)
            return
        budget = self.budgets.get(notice.budget)
        if budget is None or budget.account != notice.account:
            # A line and no document: else whoever may publish could fill the store.
            _say("not-in-settings", severity=Severity.WARNING, account=notice.account, budget=notice.budget)
            return
        period = containing(notice.start_us, budget.period)
        if period is None:
            _say("period-unknown", severity=Severity.WARNING, budget=notice.budget, why=_STRAY)
            return
        self._respond(notice, budget, period)

    def _respond(self, notice: Notice, budget: Budget, period: Period) -> None:
        url = _webhook(self.webhook_url)

        def settle(timeout_s: float) -> tuple[Decision, Seen]:
            seen = documents.read(self.client, budget.id, period, timeout_s=timeout_s)
            decision = decide(seen.standing, notice, budget, period, now_us=seen.at_us, heard=url is not None)
            self._commit(decision, seen, timeout_s)
            return decision, seen

        decision, seen = documents.insist(settle, clock=self.clock, doing="notice")
        standing = decision.standing or seen.standing
        _log(decision, standing, notice, period)
        if url is not None and standing is not None:
            Announcement(client=self.client, url=url, http=self.http, clock=self.clock).tell(standing, seen.at_us)

    def _commit(self, decision: Decision, seen: Seen, timeout_s: float) -> None:
        after = decision.standing
        if after is None:
            return

        def add(batch: firestore.WriteBatch) -> None:
            documents.write(self.client, batch, after, seen=seen)

        asked = changes(decision.policies, after)
        if asked:
            # The switch, the records of what is changed about it, and the mark that it was done: one commit.
            change.apply(self.client, asked, also=add, timeout_s=timeout_s, clock=self.clock)
        else:
            batch = self.client.batch()
            add(batch)
            commit.send(batch, timeout_s=timeout_s)


def _webhook(url: str) -> str | None:
    try:
        return announce.read(url)
    except ValueError as error:
        # What protects the bill goes on, and what is wrong is in the log.
        emit(Event.SETTINGS, severity=Severity.ERROR, wrong=[f"BUDGET_WEBHOOK_URL {error}"])
        return None


def _log(decision: Decision, standing: Standing | None, notice: Notice, period: Period) -> None:
    """One event for each notice; that of one that changed something says what, also if it is a later delivery."""
    mine = [a for a in (standing.in_order() if standing else []) if a[1].message_id == notice.message_id]
    severity, why = verdict(decision.outcome, notice, period)
    _say(
        decision.outcome.value,
        severity=severity,
        why=why,
        budget=notice.budget,
        period=period.name,
        exceeded=[str(threshold) for threshold in notice.exceeded],
        applied=[f"{threshold}={done.action}" for threshold, done in mine],
        cost=notice.cost,
        amount=notice.amount,
        currency=notice.currency,
    )


def verdict(outcome: Outcome, notice: Notice, period: Period) -> tuple[Severity, str | None]:
    """How serious the event of a notice is, and why."""
    if outcome is Outcome.CONTRADICTORY:
        return Severity.WARNING, _CONTRADICTORY
    outside = outcome in {Outcome.PERIOD_OVER, Outcome.PERIOD_AHEAD}
    if outside and (notice.published_us or 0) > period.end_us + STRAY_US:
        return Severity.ERROR, _STRAY
    if notice.exceeded and (outside or not period.begins_at(notice.start_us)):
        return Severity.WARNING, _STRAY
    return Severity.WARNING if outcome is Outcome.APPLIED else Severity.INFO, None


def _say(outcome: str, *, severity: Severity, **fields: Field) -> None:
    note(outcome=outcome)
    emit(Event.BUDGET, severity=severity, outcome=outcome, **fields)
