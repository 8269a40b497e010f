"""How a budget stands in a period: its cost, what was applied, who was told; and what a notice changes in that."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from firebreak.budgets.notice import Notice
from firebreak.settings.period import DAY_US, Period
from firebreak.settings.policies import Budget, Policy, RecordPolicy, Threshold
from firebreak.store import times

# Google still reports on a period for a while after its end; that is recorded, and sets nothing off.
TAIL_US = 62 * DAY_US
# Thresholds without a policy are told of only up to so many; spending is drawn with one point an hour, for a year.
MOST_APPLIED = 100
MOST_POINTS = 9_000


class Told(StrEnum):
    """Whether people have heard of something that was applied."""

    DUE = "due"
    TOLD = "told"
    GIVEN_UP = "given-up"
    NOBODY = "nobody"


class Outcome(StrEnum):
    """What became of a notice."""

    APPLIED = "applied"
    RECORDED = "recorded"
    REPEATED = "repeated"
    CONTRADICTORY = "contradictory"
    PERIOD_OVER = "period-over"
    PERIOD_AHEAD = "period-ahead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What was done at a threshold of a budget of `amount`, when by the server's clock, and for which message."""

    action: str
    at_us: int
    message_id: str
    amount: int | None
    told: Told


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Money in millionths; `as_of_us` is when the notice with this cost was published; `points` are costs by hour."""

    account: str
    budget: str
    name: str
    period: Period
    cost: int | None = None
    amount: int | None = None
    currency: str | None = None
    as_of_us: int | None = None
    applied: Mapping[Threshold, Applied] = field(default_factory=dict)
    points: Mapping[str, int] = field(default_factory=dict)

    def in_order(self) -> list[tuple[Threshold, Applied]]:
        """What was applied, lowest threshold first."""
        return sorted(self.applied.items(), key=lambda entry: (entry[0].kind, entry[0].bp))

    def told(self, threshold: Threshold, told: Told) -> "Standing":
        """The same with this known of who was told of a threshold."""
        return replace(self, applied={**self.applied, threshold: replace(self.applied[threshold], told=told)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a notice comes to: the standing after it, and the policies to apply in the same commit."""

    outcome: Outcome
    standing: Standing | None = None
    policies: tuple[Policy, ...] = ()


def decide(
    before: Standing | None, notice: Notice, budget: Budget, period: Period, *, now_us: int, heard: bool
) -> Decision:
    """What to do about a notice of `budget` in `period`, at the server's `now_us`; `heard`: there is somebody to tell.

    Whatever order notices come in and however often: each policy is applied once a period and amount of the budget, by
    the first notice whose threshold reaches it; the cost is that of the notice published last. Nothing is applied after
    the period's end, nor by a notice whose cost contradicts its threshold or that is older than a raise of the budget.
    """
    if now_us < period.start_us - DAY_US:
        return Decision(outcome=Outcome.PERIOD_AHEAD)
    if now_us >= period.end_us + TAIL_US:
        return Decision(outcome=Outcome.PERIOD_OVER)
    standing = before or Standing(account=budget.account, budget=budget.id, name=notice.name, period=period)
    idle = _idle(notice, period, now_us)
    policies = () if idle else tuple(_due(standing, notice, budget))
    told = Told.DUE if heard else Told.NOBODY
    done = {policy.threshold: _applied(policy, notice, now_us, told) for policy in policies}
    after = replace(_noted(standing, notice), applied={**standing.applied, **done})
    if after == before:
        return Decision(outcome=idle or Outcome.REPEATED)
    return Decision(
        outcome=idle or (Outcome.APPLIED if policies else Outcome.RECORDED), standing=after, policies=policies
    )


def _idle(notice: Notice, period: Period, now_us: int) -> Outcome | None:
    """Why the notice sets nothing off, whatever its thresholds."""
    if now_us >= period.end_us:
        return Outcome.PERIOD_OVER
    return Outcome.CONTRADICTORY if notice.contradicts_itself else None


def _applied(policy: Policy, notice: Notice, now_us: int, told: Told) -> Applied:
    action = str(policy.action)
    return Applied(action=action, at_us=now_us, message_id=notice.message_id, amount=notice.amount, told=told)


def _noted(standing: Standing, notice: Notice) -> Standing:
    """The notice's cost, unless that of one published later is known."""
    if notice.cost is None or notice.published_us is None:
        return standing
    latest = standing.as_of_us is None or notice.published_us > standing.as_of_us
    hour = times.hour(notice.published_us)
    point = {hour: notice.cost} if latest or hour not in standing.points else {}
    after = replace(standing, points=dict(list({**standing.points, **point}.items())[:MOST_POINTS]))
    if not latest:
        return after
    return replace(
        after,
        name=notice.name or standing.name,
        cost=notice.cost,
        amount=notice.amount,
        currency=notice.currency,
        as_of_us=notice.published_us,
    )


def _due(standing: Standing, notice: Notice, budget: Budget) -> Iterator[Policy]:
    """Policies that this notice reaches and nothing has applied yet, lowest first."""
    if _is_superseded(standing, notice):
        return
    applied = {t: done for t, done in standing.applied.items() if not _is_raised(notice, done)}
    for exceeded in notice.exceeded:
        named = [p for p in budget.policies if p.threshold.kind == exceeded.kind and p.threshold.bp <= exceeded.bp]
        yield from sorted((p for p in named if _is_new(p, applied)), key=lambda p: p.threshold.bp)
        known = [t.bp for t in (*applied, *(p.threshold for p in named)) if t.kind == exceeded.kind]
        if exceeded.bp > max(known, default=0) and len(standing.applied) < MOST_APPLIED:
            yield Policy(threshold=exceeded, action=RecordPolicy())


def _is_raised(notice: Notice, done: Applied) -> bool:
    """Whether an owner has raised the budget since; one that follows an earlier period's cost changes by itself."""
    if notice.amount is None or done.amount is None:
        return False
    return notice.is_fixed and notice.amount > done.amount


def _is_superseded(standing: Standing, notice: Notice) -> bool:
    """Whether an owner had raised the budget by a notice published later: that one says what is exceeded now."""
    if notice.amount is None or notice.published_us is None or standing.amount is None or standing.as_of_us is None:
        return False
    return notice.is_fixed and notice.published_us < standing.as_of_us and notice.amount < standing.amount


def _is_new(policy: Policy, applied: Mapping[Threshold, Applied]) -> bool:
    """Whether it was not applied; a threshold that was only recorded has not used up a policy made since."""
    done = applied.get(policy.threshold)
    return done is None or (done.action == str(RecordPolicy()) and policy.action != RecordPolicy())
