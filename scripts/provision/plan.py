"""What exists and what is wanted, in; what is to be done, out: pure."""

from collections.abc import Collection, Iterator

from scripts.provision.budget import Budget
from scripts.provision.desired import Wanted
from scripts.provision.grants import PUBLISHER, PUBLISHER_ROLE, Grant
from scripts.provision.plan_alerts import alerts, is_alert_of
from scripts.provision.plan_caps import caps, is_alert_for, is_cap_of
from scripts.provision.seen import Part, Seen
from scripts.provision.step import Kind, Step, Verb

EVERYTHING = frozenset(Part)
_AFTER_THE_DEPLOY = "not deployed yet: run `make deploy`, then `apply` again. Until then no budget notice arrives"


def plan(wanted: Wanted, seen: Seen, only: Collection[Part] = EVERYTHING) -> tuple[Step, ...]:
    """The steps in the order in which they are taken: caps first, because they bound the money."""
    steps = [step for part in Part if part in only for step in _part(part, wanted, seen)]
    return (*steps, *_others(wanted, seen, {step.name for step in steps}))


def _others(wanted: Wanted, seen: Seen, told: Collection[str | None]) -> Iterator[Step]:
    """Budgets of somebody else that track this project; `told` are those that the plan names already."""
    known = {entry.name for entry in (*seen.caps.values(), *seen.alerts.values())} | set(told)
    for budget in seen.budgets:
        theirs = budget.name not in known and not _is_as_ours(budget, wanted)
        if theirs and wanted.project_names & budget.filter.projects:
            what = "a spend cap" if budget.cap else "an alert budget"
            text = f"{what} that is not in the file: {budget.name}"
            yield Step(verb=Verb.LEAVE, kind=Kind.BUDGET, key=budget.display_name, text=text, name=budget.name)


def _is_as_ours(budget: Budget, wanted: Wanted) -> bool:
    caps = (is_cap_of(cap, wanted, budget) or is_alert_for(cap, wanted, budget) for cap in wanted.caps)
    return any(caps) or any(is_alert_of(alert, wanted, budget) for alert in wanted.alerts)


def _part(part: Part, wanted: Wanted, seen: Seen) -> Iterator[Step]:
    if part in seen.unread:
        text = f"{seen.unread[part]}; fix that, or leave this part out with --only"
        return iter((Step(verb=Verb.REFUSE, kind=Kind.PART, key=part, text=text),))
    return {Part.CAPS: caps, Part.TOPIC: _topic, Part.BUDGETS: alerts, Part.RIGHTS: _rights, Part.TTL: _ttl}[part](
        wanted, seen
    )


def _topic(wanted: Wanted, seen: Seen) -> Iterator[Step]:
    name = wanted.topic.rpartition("/")[2]
    yield _there(Kind.TOPIC, name, there=seen.topic, text="where Google sends the notices of the alert budgets")
    text = f"{PUBLISHER.removeprefix('serviceAccount:')} may publish to it: {PUBLISHER_ROLE}"
    yield _there(Kind.PUBLISHER, name, there=seen.publisher, text=text)


def _rights(wanted: Wanted, seen: Seen) -> Iterator[Step]:
    for email in wanted.accounts:
        yield _there(Kind.ACCOUNT, email, there=email in seen.accounts, text="a service account that functions run as")
    for grant in wanted.grants:
        if grant.resource in seen.absent:
            yield Step(verb=Verb.LEAVE, kind=Kind.ROLE, key=role_key(grant), text=_AFTER_THE_DEPLOY)
        else:
            yield _role(grant, there=grant in seen.grants, by_hand=grant.resource in seen.by_hand)


def role_key(grant: Grant) -> str:
    """What a step calls a grant."""
    return f"{grant.role} for {grant.member.removeprefix('serviceAccount:').partition('@')[0]} on {grant.resource}"


def _role(grant: Grant, *, there: bool, by_hand: bool) -> Step:
    if there or not by_hand:
        return _there(Kind.ROLE, role_key(grant), there=there, text="")
    account = grant.resource.removeprefix("billingAccounts/")
    command = f"gcloud billing accounts add-iam-policy-binding {account} --member={grant.member} --role={grant.role}"
    text = f"you may not grant it; a Billing Account Administrator can: {command}"
    return Step(verb=Verb.LEAVE, kind=Kind.ROLE, key=role_key(grant), text=text)


def _ttl(wanted: Wanted, seen: Seen) -> Iterator[Step]:
    for group in wanted.ttl:
        yield _there(Kind.TTL, group, there=group in seen.ttl, text="documents are deleted after their expireAt")


def _there(kind: Kind, key: str, *, there: bool, text: str) -> Step:
    return Step(verb=Verb.KEEP if there else Verb.CREATE, kind=kind, key=key, text=text)
