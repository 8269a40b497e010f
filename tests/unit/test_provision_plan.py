"""The plan, on values alone: what it comes to for what is found."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

import pytest

from scripts.provision.budget import CURRENT, EXCLUDE, Budget, Cap, Filter, State
from scripts.provision.config import Alert, Config
from scripts.provision.desired import Wanted, wanted
from scripts.provision.money import Money
from scripts.provision.plan import plan
from scripts.provision.plan_destroy import destroy
from scripts.provision.seen import Entry, Intent, Part, Seen
from scripts.provision.services import CAPPED
from scripts.provision.step import Kind, Step, Verb, refusals, to_do

PROJECT, NUMBER, ACCOUNT = "demo-x", "123", "012345-6789AB-CDEF01"
TOPIC = f"projects/{PROJECT}/topics/budget-alerts"
OURS = {"gemini": f"firebreak cap gemini {PROJECT}", "firestore": f"firebreak alert firestore {PROJECT}"}


def usd(units: int) -> Money:
    return Money(nanos=units * 10**9, currency="USD")


def config(caps: Mapping[str, int] | None = None, *, alert: bool = True) -> Config:
    one = Alert(amount=usd(5), thresholds=(Decimal(1),), forecast=(Decimal(1),), service="firestore")
    return Config(
        project=PROJECT,
        billing_account=ACCOUNT,
        topic="budget-alerts",
        caps={key: usd(units) for key, units in ({"gemini": 20} if caps is None else caps).items()},
        budgets={"firestore": one} if alert else {},
    )


def want(made: Config | None = None) -> Wanted:
    return wanted(made or config(), number=NUMBER, ttl=["calls"])


def cap(
    name: str = "c1",
    *,
    key: str = "gemini",
    units: int = 20,
    state: State = State.CONFIGURED,
    display: str | None = None,
) -> Budget:
    return Budget(
        name=name,
        display_name=f"firebreak cap {key} {PROJECT}" if display is None else display,
        filter=Filter(
            projects=frozenset({f"projects/{NUMBER}"}),
            services=frozenset({f"services/{CAPPED[key].id}"}),
            credits=EXCLUDE,
        ),
        amount=usd(units),
        thresholds=frozenset((Decimal(part), CURRENT) for part in ("0.5", "0.8", "1")),
        cap=Cap(state=state),
    )


def kept(name: str = "c1", *, adopted: bool = False) -> Entry:
    return Entry(intent=Intent.KEEP, name=name, adopted=adopted)


def of(kind: Kind, steps: tuple[Step, ...]) -> list[Verb]:
    return [step.verb for step in steps if step.kind is kind]


def test_nothing_there_means_that_all_is_created_caps_first() -> None:
    steps = plan(want(), Seen())

    assert {step.verb for step in steps} == {Verb.CREATE}
    assert [step.kind for step in steps][:4] == [Kind.CAP, Kind.TOPIC, Kind.PUBLISHER, Kind.BUDGET]


def test_a_cap_on_record_at_its_amount_is_kept() -> None:
    assert of(Kind.CAP, plan(want(), Seen(budgets=(cap(),), caps={"gemini": kept()}))) == [Verb.KEEP]


def test_a_cap_of_the_same_service_made_elsewhere_is_taken_over_not_made_twice() -> None:
    steps = plan(want(), Seen(budgets=(cap(display="Team cap"),)))

    assert of(Kind.CAP, steps) == [Verb.ADOPT]


def test_a_ready_cap_with_another_amount_is_changed() -> None:
    assert of(Kind.CAP, plan(want(), Seen(budgets=(cap(units=30),), caps={"gemini": kept()}))) == [Verb.CHANGE]


@pytest.mark.parametrize(
    ("state", "way_out"), [(State.ENFORCED, "`lift gemini` first"), (State.LIFTED, "`rearm gemini")]
)
def test_another_amount_is_refused_while_a_cap_is_enforced_or_lifted(state: State, way_out: str) -> None:
    (refused,) = refusals(plan(want(), Seen(budgets=(cap(units=30, state=state),), caps={"gemini": kept()})))

    assert way_out in refused.text


@pytest.mark.parametrize("state", [State.ENFORCED, State.LIFTED])
def test_an_enforced_or_lifted_cap_at_its_amount_is_kept_and_named_so(state: State) -> None:
    (step,) = (
        s for s in plan(want(), Seen(budgets=(cap(state=state),), caps={"gemini": kept()})) if s.kind is Kind.CAP
    )

    assert step.verb is Verb.KEEP
    assert ("ENFORCED" if state is State.ENFORCED else "lifted") in step.text


def test_an_alert_in_place_of_our_cap_is_deleted_and_a_cap_made() -> None:
    converted = replace(cap(display="renamed by somebody"), cap=None)

    assert of(Kind.CAP, plan(want(), Seen(budgets=(converted,), caps={"gemini": kept()}))) == [Verb.DELETE, Verb.CREATE]


def test_an_alert_of_somebody_else_on_the_same_service_is_never_touched() -> None:
    theirs = replace(cap(name="theirs", display="Team alert"), cap=None)

    steps = plan(want(), Seen(budgets=(theirs,)))

    assert [step.verb for step in steps if step.name == "theirs"] == [Verb.LEAVE]


@pytest.mark.parametrize(
    "tracks",
    [
        Filter(projects=frozenset({f"projects/{NUMBER}"})),
        Filter(projects=frozenset(), services=frozenset({f"services/{CAPPED['gemini'].id}"})),
        Filter(projects=frozenset({"projects/9"}), services=frozenset({f"services/{CAPPED['gemini'].id}"})),
        Filter(projects=frozenset({f"projects/{NUMBER}"}), services=frozenset({f"services/{CAPPED['run'].id}"})),
    ],
    ids=["all services", "the whole account", "another project", "another service"],
)
def test_an_alert_that_only_has_our_caps_name_is_neither_replaced_nor_destroyed(tracks: Filter) -> None:
    theirs = replace(cap(name="theirs"), cap=None, filter=tracks)
    begun = Entry(intent=Intent.CREATE, display_name=OURS["gemini"], service=f"services/{CAPPED['gemini'].id}")

    for caps in ({}, {"gemini": begun}):
        seen = Seen(budgets=(theirs,), caps=caps)
        assert of(Kind.CAP, plan(want(), seen)) == [Verb.CREATE]
        assert "theirs" not in {step.name for step in destroy(want(), seen, (), settle_s=0)}


def test_what_only_has_the_name_of_ours_is_told_and_left() -> None:
    theirs = replace(cap(name="theirs"), cap=None, filter=Filter(projects=frozenset({f"projects/{NUMBER}"})))

    assert [s.verb for s in plan(want(), Seen(budgets=(theirs,))) if s.name == "theirs"] == [Verb.LEAVE]


@pytest.mark.parametrize(
    "tracks",
    [Filter(projects=frozenset()), Filter(projects=frozenset({f"projects/{NUMBER}"}))],
    ids=["the whole account", "all services"],
)
def test_an_alert_that_only_has_our_alerts_name_is_not_destroyed(tracks: Filter) -> None:
    theirs = replace(alert("theirs"), filter=tracks)
    begun = Entry(intent=Intent.CREATE, display_name=OURS["firestore"], service="services/EE2C-7FAC-5E08")

    for alerts in ({}, {"firestore": begun}):
        steps = destroy(want(), Seen(budgets=(theirs,), alerts=alerts), (), settle_s=0)
        assert "theirs" not in {step.name for step in steps}


@pytest.mark.parametrize("entry", [None, Entry(intent=Intent.CREATE)])
def test_what_a_run_made_without_putting_its_name_on_record_is_destroyed(entry: Entry | None) -> None:
    """Also a plain alert that a service without caps made of our cap."""
    made = (replace(cap("c1"), cap=None), alert("a1"))
    seen = Seen(
        budgets=made,
        caps={"gemini": replace(entry, display_name=OURS["gemini"], service=f"services/{CAPPED['gemini'].id}")}
        if entry
        else {},
        alerts={"firestore": replace(entry, display_name=OURS["firestore"], service="services/EE2C-7FAC-5E08")}
        if entry
        else {},
    )

    assert {step.name for step in to_do(destroy(want(), seen, (), settle_s=120))} == {"c1", "a1"}


def test_an_adopted_cap_that_became_an_alert_is_left_alone_and_a_cap_made() -> None:
    theirs = replace(cap(display="Team cap"), cap=None)

    steps = plan(want(), Seen(budgets=(theirs,), caps={"gemini": kept(adopted=True)}))

    assert of(Kind.CAP, steps) == [Verb.CREATE]


def alert(name: str) -> Budget:
    one = want().alerts[0]
    return Budget(
        name=name,
        display_name=one.display_name,
        filter=one.filter,
        amount=one.amount,
        thresholds=one.thresholds,
        topic=one.topic,
    )


def test_a_second_alert_of_our_name_is_told_and_left_while_one_is_on_record() -> None:
    both = Seen(budgets=(alert("a1"), alert("a2")), alerts={"firestore": kept("a1")})

    steps = [step for step in plan(want(config({})), both) if step.kind is Kind.BUDGET]

    assert [(step.verb, step.name) for step in steps] == [(Verb.KEEP, "a1"), (Verb.LEAVE, "a2")]


def test_two_alerts_of_our_name_are_refused_while_none_is_on_record() -> None:
    assert refusals(plan(want(config({})), Seen(budgets=(alert("a1"), alert("a2")))))


def test_an_alert_on_record_that_became_a_cap_is_refused() -> None:
    capped = replace(alert("a1"), cap=Cap(state=State.CONFIGURED))

    assert refusals(plan(want(config({})), Seen(budgets=(capped,), alerts={"firestore": kept("a1")})))


def test_a_cap_that_is_no_longer_in_the_file_stays_and_is_named() -> None:
    steps = plan(want(config({})), Seen(budgets=(cap(),), caps={"gemini": kept()}))

    assert of(Kind.CAP, steps) == [Verb.LEAVE]


def test_a_cap_that_tracks_no_project_at_all_is_not_ours() -> None:
    everything = replace(cap(), filter=replace(cap().filter, projects=frozenset()))

    assert of(Kind.CAP, plan(want(), Seen(budgets=(everything,)))) == [Verb.CREATE]


def test_two_caps_of_one_service_are_refused() -> None:
    assert refusals(plan(want(), Seen(budgets=(cap("c1"), cap("c2")))))


def test_a_part_that_cannot_be_read_refuses_until_it_is_left_out() -> None:
    seen = Seen(unread={Part.TTL: "403"})

    assert refusals(plan(want(), seen))
    assert not refusals(plan(want(), seen, frozenset(Part) - {Part.TTL}))


def test_a_role_on_the_billing_account_is_left_to_who_may_grant_it() -> None:
    steps = plan(want(), Seen(by_hand=frozenset({f"billingAccounts/{ACCOUNT}"})))

    (left,) = (step for step in steps if step.kind is Kind.ROLE and step.verb is Verb.LEAVE)
    assert "gcloud billing accounts add-iam-policy-binding" in left.text


def test_destroy_deletes_ours_leaves_what_was_adopted_and_refuses_what_is_enforced() -> None:
    seen = Seen(
        budgets=(cap("c1"), cap("c2", key="run", display="Team cap"), cap("c3", key="functions", state=State.ENFORCED)),
        caps={"gemini": kept("c1"), "run": kept("c2", adopted=True), "functions": kept("c3")},
    )

    steps = destroy(want(config({"gemini": 20, "run": 20, "functions": 20})), seen, (), settle_s=120)

    assert {step.key: step.verb for step in steps} == {
        "functions": Verb.REFUSE,
        "gemini": Verb.DELETE,
        "run": Verb.LEAVE,
    }


def test_destroy_of_a_name_that_is_none_is_refused() -> None:
    (step,) = destroy(want(), Seen(), ["caps.gemni"], settle_s=120)

    assert step.verb is Verb.REFUSE
