"""What a plan says beside its steps: which keys are a way past every limit, and what a budget counts."""

from decimal import Decimal
from typing import Any

import pytest

from scripts.provision.config import Alert, Config
from scripts.provision.money import Money
from scripts.provision.report import _keys, counted

BROWSER = {"browserKeyRestrictions": {"allowedReferrers": ["x"]}}
SERVER = {"serverKeyRestrictions": {"allowedIps": ["192.0.2.1"]}}
GEMINI = "generativelanguage.googleapis.com"


def key(*services: str, **restrictions: object) -> dict[str, Any]:
    targets = {"apiTargets": [{"service": service} for service in services]} if services else {}
    return {"displayName": "k", "restrictions": targets | restrictions}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"displayName": "k"}, "may call every API"),
        (key(**BROWSER), "may call every API"),
        (key(GEMINI, "maps-backend.googleapis.com", **BROWSER), f"may call {GEMINI} from your sites or apps"),
        (key("firebasevertexai.googleapis.com", **BROWSER), "may call firebasevertexai.googleapis.com from your"),
        (key("firebaseml.googleapis.com", androidKeyRestrictions={"allowedApplications": [{}]}), "from your sites or"),
        (key("aiplatform.googleapis.com", iosKeyRestrictions={"allowedBundleIds": ["x"]}), "from your sites or apps"),
        (key(GEMINI), "from anywhere: unless it is the secret GEMINI_API_KEY"),
        (key("maps-backend.googleapis.com"), "may be used from anywhere"),
        (key(GEMINI, **SERVER), None),
        (key("maps-backend.googleapis.com", **BROWSER), None),
        (key("firebase.googleapis.com", "identitytoolkit.googleapis.com", **BROWSER), None),
    ],
)
def test_a_key_that_clients_may_hold_and_that_answers_prompts_is_named(given: dict[str, Any], says: str | None) -> None:
    told = list(_keys([given]))

    assert len(told) == (says is not None)
    assert all("API key 'k'" in line and (says or "") in line for line in told)


@pytest.mark.parametrize(("treatment", "silent"), [("include", True), ("exclude", False)])
def test_it_says_whether_credits_keep_a_budget_silent(treatment: str, silent: bool) -> None:
    alert = Alert(amount=Money(nanos=1, currency="USD"), thresholds=(Decimal(1),), credits=treatment)
    config = Config(project="p", billing_account="a", topic="t", budgets={"all": alert})

    (told,) = counted(config)

    assert told.startswith("budgets.all ")
    assert ("stays silent" in told) == silent
