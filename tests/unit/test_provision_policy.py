"""The pure parts beside the plan: IAM policies, permissions, hosts, suggested settings, the client's fields."""

from decimal import Decimal
from typing import Any

import pytest

from firebreak.settings import policies
from scripts.provision import policy
from scripts.provision.clients import knows_spend_caps
from scripts.provision.config import Alert
from scripts.provision.hosts import Hosts, WrongTarget, hosts
from scripts.provision.money import Money
from scripts.provision.permissions import ACCOUNT, PROJECT, lacks
from scripts.provision.seen import Part
from scripts.provision.services import GEMINI, SERVICES, mismatch
from scripts.provision.suggest import budget_policies

ROLE, MEMBER = "roles/datastore.user", "serviceAccount:a@b"
CONDITIONAL = {"role": ROLE, "members": [MEMBER], "condition": {"expression": "false"}}


def test_a_member_joins_the_unconditional_binding_of_its_role() -> None:
    before: dict[str, Any] = {"etag": "e", "bindings": [CONDITIONAL, {"role": ROLE, "members": ["user:x"]}]}

    after = policy.with_member(before, ROLE, MEMBER)

    assert after["bindings"] == [CONDITIONAL, {"role": ROLE, "members": ["user:x", MEMBER]}]
    assert (after["etag"], after["version"]) == ("e", 3)
    assert before["bindings"][1]["members"] == ["user:x"]


def test_a_conditional_binding_is_not_a_right() -> None:
    assert not policy.has({"bindings": [CONDITIONAL]}, ROLE, MEMBER)
    assert policy.has(policy.with_member({"bindings": [CONDITIONAL]}, ROLE, MEMBER), ROLE, MEMBER)


@pytest.mark.parametrize("resource", [ACCOUNT, PROJECT])
def test_a_cap_takes_the_right_on_the_account_or_its_twin_on_the_project(resource: str) -> None:
    on_account = {(ACCOUNT, f"billing.budgets.{name}") for name in ("create", "update", "get", "list")}
    one = "billing.budgets.configureSpendCap" if resource == ACCOUNT else "billing.resourcebudgets.configureSpendCap"
    record = {(PROJECT, f"datastore.entities.{name}") for name in ("get", "create", "update")}

    assert lacks(on_account | {(resource, one)} | record, [Part.CAPS]) == ()
    (lack,) = lacks(on_account | record, [Part.CAPS])
    assert "configureSpendCap" in str(lack)


def test_costs_manager_alone_may_alert_but_not_cap() -> None:
    granted = {(ACCOUNT, f"billing.budgets.{name}") for name in ("create", "update", "delete", "get", "list")}
    granted |= {(PROJECT, "pubsub.topics.setIamPolicy")}
    granted |= {(PROJECT, f"datastore.entities.{name}") for name in ("get", "create", "update")}

    assert lacks(granted, [Part.BUDGETS]) == ()
    assert lacks(granted, [Part.CAPS]) != ()


@pytest.mark.parametrize(
    ("project", "env", "local"),
    [
        ("demo-x", {}, False),
        ("my-app", {}, True),
        ("my-app", {"FIREBREAK_STANDINS": "http://127.0.0.1:9777"}, False),
        ("my-app", {"FIRESTORE_EMULATOR_HOST": ""}, False),
    ],
)
def test_a_target_that_could_be_either_is_refused(project: str, env: dict[str, str], local: bool) -> None:
    with pytest.raises(WrongTarget):
        hosts(project, env, local=local)


def test_a_real_project_is_at_google() -> None:
    assert hosts("my-app", {}, local=False).of("billingbudgets") == "https://billingbudgets.googleapis.com"


def test_a_demo_project_is_at_the_stand_ins() -> None:
    found = hosts("demo-x", {"FIRESTORE_EMULATOR_HOST": "127.0.0.1:1"}, local=True)

    assert found == Hosts(standins="http://127.0.0.1:9777", firestore="127.0.0.1:1")
    assert found.of("billingbudgets") == "http://127.0.0.1:9777/billingbudgets"


@pytest.mark.parametrize("service", [None, *SERVICES])
def test_the_suggested_policies_are_ones_the_functions_take(service: str | None) -> None:
    parts = tuple(Decimal(part) for part in ("0.125", "0.5", "0.9", "1", "2"))
    alert = Alert(amount=Money(nanos=1, currency="USD"), thresholds=parts, forecast=(Decimal("1.2"),), service=service)
    name = "billingAccounts/01D4EE-079462-DFD6EC/budgets/11111111-2222-3333-4444-555555555555"

    (budget,) = policies.parse(budget_policies({"a": name}, {"a": alert}).removeprefix("BUDGET_POLICIES=")).values()

    assert len(budget.policies) == 6


@pytest.mark.parametrize("name", ["Gemini API", "Generative Language API", "gemini api"])
def test_a_service_may_be_called_by_its_old_name(name: str) -> None:
    assert mismatch(GEMINI, [{"serviceId": GEMINI.id, "displayName": name}], confirmed=None) is None


def test_an_id_that_has_moved_is_told_with_the_new_one() -> None:
    wrong = mismatch(GEMINI, [{"serviceId": "1111-2222-3333", "displayName": "Gemini API"}], confirmed=None)

    assert "it gives such a name to 1111-2222-3333" in str(wrong)


def test_googles_client_does_not_know_spend_caps_yet() -> None:
    """It would drop the field and make a plain alert; the day it knows it, caps may go through it as alerts do."""
    assert not knows_spend_caps(), "google-cloud-billing-budgets has spend_cap now: see scripts/provision/caps.py"
