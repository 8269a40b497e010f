"""Any plan, carried out on a model of a project, leaves one cap a service, what is not ours as it was, and no rest."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.provision.budget import CURRENT, EXCLUDE, FORECAST, INCLUDE, Budget, Cap, Filter, State
from scripts.provision.desired import AlertWanted, CapWanted, Wanted
from scripts.provision.plan import plan, role_key
from scripts.provision.plan_caps import is_alert_for
from scripts.provision.seen import Entry, Intent, Seen
from scripts.provision.services import CAPPED
from scripts.provision.step import Kind, Step, Verb, refusals, to_do
from tests.unit.test_provision_plan import NUMBER, OURS, PROJECT, TOPIC, cap, config, kept, usd, want

amounts = st.sampled_from([usd(5), usd(20), usd(30)])
thresholds = st.sampled_from(
    [frozenset({(Decimal(1), CURRENT), (Decimal(1), FORECAST)}), frozenset({(Decimal("0.5"), CURRENT)})]
)
filters = st.builds(
    Filter,
    projects=st.sampled_from(
        [
            frozenset({f"projects/{PROJECT}"}),
            frozenset({f"projects/{NUMBER}"}),
            frozenset({"projects/other"}),
            frozenset(),
        ]
    ),
    services=st.sampled_from(
        [frozenset({f"services/{s.id}"}) for s in CAPPED.values()]
        + [frozenset({"services/EE2C-7FAC-5E08"}), frozenset()]
    ),
    credits=st.sampled_from([EXCLUDE, INCLUDE]),
    narrowed=st.booleans(),
)
found = st.builds(
    Budget,
    name=st.sampled_from([f"n{number}" for number in range(6)]),
    display_name=st.sampled_from([*OURS.values(), f"firebreak cap run {PROJECT}", "theirs"]),
    filter=filters,
    amount=amounts,
    thresholds=thresholds,
    topic=st.sampled_from([TOPIC, ""]),
    cap=st.none() | st.builds(Cap, state=st.sampled_from(State)),
)
entries = st.builds(
    Entry,
    intent=st.sampled_from(Intent),
    name=st.none() | st.sampled_from([f"n{number}" for number in range(8)]),
    adopted=st.booleans(),
)
seen = st.builds(
    Seen,
    budgets=st.lists(found, max_size=6, unique_by=lambda budget: budget.name).map(tuple),
    caps=st.dictionaries(st.sampled_from(["gemini", "run"]), entries),
    alerts=st.dictionaries(st.sampled_from(["firestore", "gone"]), entries),
    topic=st.booleans(),
    publisher=st.booleans(),
    accounts=st.frozensets(st.sampled_from(want().accounts)),
    grants=st.frozensets(st.sampled_from(want().grants)),
    ttl=st.frozensets(st.just("calls")),
)
wishes = st.dictionaries(st.sampled_from(["gemini", "run"]), st.sampled_from([20, 30])).map(config).map(want)

_FRESH = (f"made{number}" for number in count())


def carried_out(steps: tuple[Step, ...], wish: Wanted, before: Seen) -> Seen:
    """What a project would be like after these steps."""
    after = before
    for step in to_do(steps):
        after = _taken(step, wish, after)
    return after


def _taken(step: Step, wish: Wanted, now: Seen) -> Seen:
    if step.kind is Kind.CAP:
        one = next(cap for cap in wish.caps if cap.key == step.key)
        return replace(now, **_kept(step, now, now.caps, "caps", _cap_made(one, step.name, now)))
    if step.kind is Kind.BUDGET:
        alert = next(alert for alert in wish.alerts if alert.key == step.key)
        return replace(now, **_kept(step, now, now.alerts, "alerts", _alert_made(alert, step, now)))
    simple: dict[Kind, dict[str, Any]] = {
        Kind.TOPIC: {"topic": True},
        Kind.PUBLISHER: {"publisher": True},
        Kind.ACCOUNT: {"accounts": now.accounts | {step.key}},
        Kind.ROLE: {"grants": now.grants | {grant for grant in wish.grants if role_key(grant) == step.key}},
        Kind.TTL: {"ttl": now.ttl | {step.key}},
    }
    return replace(now, **simple[step.kind])


def _named(name: str | None, now: Seen) -> Budget | None:
    return next((budget for budget in now.budgets if budget.name == name), None)


def _cap_made(one: CapWanted, name: str | None, now: Seen) -> Budget:
    there = _named(name, now)
    if there is not None:
        return replace(there, amount=one.amount)
    return replace(cap(next(_FRESH), key=one.key, display=one.display_name), amount=one.amount)


def _alert_made(alert: AlertWanted, step: Step, now: Seen) -> Budget:
    made = Budget(
        name=next(_FRESH),
        display_name=alert.display_name,
        filter=alert.filter,
        amount=alert.amount,
        thresholds=alert.thresholds,
        topic=alert.topic,
    )
    there = _named(step.name, now)
    if there is None:
        return made
    fields = {"amount": "amount", "budget_filter": "filter", "threshold_rules": "thresholds"}
    fields |= {"notifications_rule.pubsub_topic": "topic"}
    return replace(there, **{fields[path]: getattr(made, fields[path]) for path in step.mask})


def _kept(step: Step, now: Seen, known: Mapping[str, Entry], table: str, made: Budget) -> dict[str, Any]:
    others = tuple(budget for budget in now.budgets if budget.name not in (step.name, made.name))
    entry = known.get(step.key)
    if step.verb is Verb.DELETE:
        gone = entry is not None and entry.name in (step.name, None)
        return {"budgets": others, table: {key: e for key, e in known.items() if key != step.key or not gone}}
    adopted = entry.adopted if entry and entry.name == made.name else made.display_name not in OURS.values()
    return {"budgets": (*others, made), table: {**known, step.key: kept(made.name, adopted=adopted)}}


@settings(max_examples=150)
@given(wishes, seen)
def test_after_a_plan_is_carried_out_there_is_nothing_to_do(wish: Wanted, before: Seen) -> None:
    steps = plan(wish, before)
    if refusals(steps):
        return

    again = plan(wish, carried_out(steps, wish, before))

    assert to_do(again) == ()
    assert refusals(again) == ()


@settings(max_examples=150)
@given(wishes, seen)
def test_a_carried_out_plan_leaves_one_cap_a_service_and_no_alert_in_its_place(wish: Wanted, before: Seen) -> None:
    steps = plan(wish, before)
    if refusals(steps):
        return

    after = carried_out(steps, wish, before)

    for one in wish.caps:
        caps = [b for b in after.budgets if b.cap and b.filter.services == {f"services/{one.service}"}]
        mine = [b for b in caps if b.filter.projects and b.filter.projects <= wish.project_names]
        assert [b.amount for b in mine] == [one.amount]
        assert not [b for b in after.budgets if is_alert_for(one, wish, b)]


@settings(max_examples=150)
@given(wishes, seen)
def test_what_is_neither_ours_nor_a_cap_that_is_wanted_is_never_changed(wish: Wanted, before: Seen) -> None:
    names = {cap.display_name for cap in wish.caps} | {alert.display_name for alert in wish.alerts}
    services = {f"services/{cap.service}" for cap in wish.caps}
    on_record = {entry.name for entry in (*before.caps.values(), *before.alerts.values())}

    touched = {step.name for step in to_do(plan(wish, before)) if step.name}

    for budget in before.budgets:
        wanted_cap = budget.cap is not None and budget.filter.services <= services
        ours = budget.display_name in names and budget.filter.is_of(wish.project_names)
        if not wanted_cap and not ours and budget.name not in on_record:
            assert budget.name not in touched
