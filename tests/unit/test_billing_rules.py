"""The rules of budgets and spend caps: one case for each restriction, and none without a case."""

from copy import deepcopy
from typing import Any

import pytest

from scripts.local.layout import PROJECT
from scripts.local.standins import jsonfront
from scripts.local.standins.billing import cap_rules as billing_cap_rules
from scripts.local.standins.billing import patch as billing_patch
from scripts.local.standins.billing import rules as billing_rules
from scripts.local.standins.billing.accounts import Account, Accounts
from scripts.local.standins.billing.catalog import Catalog
from scripts.local.standins.billing.message import BUDGET
from scripts.local.standins.billing.record import canonical
from scripts.local.standins.billing.rules import Broken, Ground
from scripts.local.standins.google import GoogleError

type Body = dict[str, Any]

ALERTS: Body = {"displayName": "alerts", "amount": {"specifiedAmount": {"units": "20"}}}
CAP: Body = {
    "displayName": "cap",
    "budgetFilter": {
        "projects": [f"projects/{PROJECT}"],
        "services": ["services/AEFD-7695-64FA"],
        "calendarPeriod": "MONTH",
        "creditTypesTreatment": "EXCLUDE_ALL_CREDITS",
    },
    "amount": {"specifiedAmount": {"units": "20", "nanos": 0}},
    "thresholdRules": [{"thresholdPercent": percent, "spendBasis": "CURRENT_SPEND"} for percent in (0.5, 0.8, 1.0)],
    "notificationsRule": {"enableProjectLevelRecipients": True},
    "ownershipScope": "ALL_USERS",
    "spendCap": {"inputState": "CONFIGURED"},
}
CUSTOM = {"startDate": {"year": 2026, "month": 1, "day": 1}}
CHANNEL = f"projects/{PROJECT}/notificationChannels/1"
TOPIC = {"pubsubTopic": f"projects/{PROJECT}/topics/t"}
RULE = {"thresholdPercent": 0.9}


def ground(account: Account | None = None) -> Ground:
    accounts = Accounts()
    projects = {key: project for project in accounts.projects.values() for key in (project.id, project.number)}
    home = accounts.account("01D4EE-079462-DFD6EC")
    return Ground(account=account or home, projects=projects, services=Catalog().services)


def with_field(body: Body, path: str, value: object) -> Body:
    """The body with one field set, or taken out where the value is None."""
    changed = deepcopy(body)
    *parents, name = path.split(".")
    inner = changed
    for parent in parents:
        inner = inner.setdefault(parent, {})
    inner[name] = value
    return changed


def parsed(body: Body) -> Body:
    return jsonfront.parse(body, BUDGET, "budget")


# rule, field, a value that breaks the rule and no rule before it
OF_ALL = [
    ("displayName has at most 60 characters", "displayName", "x" * 61),
    ("amount is required", "amount", None),
    ("amount is required", "amount", {}),
    ("amount is valid Money and not negative", "amount.specifiedAmount.units", "-1"),
    ("amount is valid Money and not negative", "amount.specifiedAmount.nanos", 10**9),
    ("amount is valid Money and not negative", "amount.specifiedAmount.nanos", -1),
    ("amount is in the account's currency", "amount.specifiedAmount.currencyCode", "EUR"),
    ("customPeriod.startDate is a date after January 1, 2017", "budgetFilter.customPeriod", {}),
    (
        "customPeriod.startDate is a date after January 1, 2017",
        "budgetFilter.customPeriod.startDate",
        {"year": 2017, "month": 1, "day": 1},
    ),
    (
        "customPeriod.startDate is a date after January 1, 2017",
        "budgetFilter.customPeriod.startDate",
        {"year": 2026, "month": 2, "day": 30},
    ),
    (
        "customPeriod.endDate is a date not before startDate",
        "budgetFilter.customPeriod",
        CUSTOM | {"endDate": {"year": 2025, "month": 12, "day": 31}},
    ),
    ("thresholdPercent is not negative", "thresholdRules", [{"thresholdPercent": -0.1}]),
    ("thresholdPercent is not negative", "thresholdRules", [{"thresholdPercent": "Infinity"}]),
    ("creditTypes needs INCLUDE_SPECIFIED_CREDITS", "budgetFilter.creditTypes", ["FREE_TIER"]),
    ("labels has one key with one value", "budgetFilter.labels", {"a": ["1", "2"]}),
    ("labels has one key with one value", "budgetFilter.labels", {"a": ["1"], "b": ["2"]}),
    ("projects are projects/{id or number} and exist", "budgetFilter.projects", [PROJECT]),
    ("projects are projects/{id or number} and exist", "budgetFilter.projects", ["projects/nobody"]),
    ("services are services/{id} of the catalog", "budgetFilter.services", ["services/F3A1-DCCB-5BC6"]),
    ("services are services/{id} of the catalog", "budgetFilter.services", ["EE2C-7FAC-5E08"]),
    ("resourceAncestors are folders or organizations", "budgetFilter.resourceAncestors", ["projects/1"]),
    ("subaccounts are billingAccounts/{id}", "budgetFilter.subaccounts", ["01D4EE-079462-DFD6EC"]),
    (
        "monitoringNotificationChannels have the form of one",
        "notificationsRule.monitoringNotificationChannels",
        ["a@example.com"],
    ),
    (
        "monitoringNotificationChannels are at most 5",
        "notificationsRule.monitoringNotificationChannels",
        [CHANNEL + str(number) for number in range(6)],
    ),
    ("pubsubTopic is projects/{id}/topics/{id}", "notificationsRule.pubsubTopic", "t"),
    ("schemaVersion is 1.0, and set with a topic", "notificationsRule", TOPIC),
    ("schemaVersion is 1.0, and set with a topic", "notificationsRule", TOPIC | {"schemaVersion": "2.0"}),
    (
        "e-mail to channels or project owners needs thresholdRules",
        "notificationsRule.monitoringNotificationChannels",
        [CHANNEL],
    ),
    (
        "e-mail to channels or project owners needs thresholdRules",
        "notificationsRule.enableProjectLevelRecipients",
        True,
    ),
]
OF_TWO_FIELDS = [
    (
        "lastPeriodAmount needs a calendar period",
        ALERTS | {"amount": {"lastPeriodAmount": {}}, "budgetFilter": {"customPeriod": CUSTOM}},
    ),
    (
        "FORECASTED_SPEND needs a calendar period",
        ALERTS
        | {
            "thresholdRules": [RULE | {"spendBasis": "FORECASTED_SPEND"}],
            "budgetFilter": {"customPeriod": CUSTOM},
        },
    ),
    (
        "thresholdRules need e-mail to the default recipients or a channel",
        ALERTS | {"thresholdRules": [RULE], "notificationsRule": {"disableDefaultIamRecipients": True}},
    ),
]
OF_CAPS = [
    ("projects is exactly one", "budgetFilter.projects", []),
    ("projects is exactly one", "budgetFilter.projects", [f"projects/{PROJECT}", "projects/123456789012"]),
    ("services is exactly one", "budgetFilter.services", []),
    (
        "services is exactly one",
        "budgetFilter.services",
        ["services/AEFD-7695-64FA", "services/152E-C115-5142"],
    ),
    ("the service is eligible for caps", "budgetFilter.services", ["services/EE2C-7FAC-5E08"]),
    ("creditTypesTreatment is EXCLUDE_ALL_CREDITS", "budgetFilter.creditTypesTreatment", None),
    ("creditTypesTreatment is EXCLUDE_ALL_CREDITS", "budgetFilter.creditTypesTreatment", "INCLUDE_ALL_CREDITS"),
    ("calendarPeriod is MONTH or unset", "budgetFilter.calendarPeriod", "QUARTER"),
    ("calendarPeriod is MONTH or unset", "budgetFilter.calendarPeriod", "YEAR"),
    ("resourceAncestors is empty", "budgetFilter.resourceAncestors", ["folders/1"]),
    ("subaccounts is empty", "budgetFilter.subaccounts", ["billingAccounts/01D4EE-079462-DFD6EC"]),
    ("labels is empty", "budgetFilter.labels", {"a": ["1"]}),
    ("specifiedAmount is set, lastPeriodAmount is not", "amount", {"lastPeriodAmount": {}}),
    ("thresholdRules are 0.5, 0.8 and 1.0", "thresholdRules", CAP["thresholdRules"][:2]),
    ("thresholdRules are 0.5, 0.8 and 1.0", "thresholdRules", [*CAP["thresholdRules"], RULE]),
    ("thresholdRules are 0.5, 0.8 and 1.0", "thresholdRules", [*CAP["thresholdRules"][:2], RULE]),
    (
        "spendBasis is never FORECASTED_SPEND",
        "thresholdRules",
        [*CAP["thresholdRules"][:2], {"thresholdPercent": 1.0, "spendBasis": "FORECASTED_SPEND"}],
    ),
    ("enableProjectLevelRecipients is true", "notificationsRule", {}),
    ("enableProjectLevelRecipients is true", "notificationsRule", None),
    (
        "disableDefaultIamRecipients is false",
        "notificationsRule",
        CAP["notificationsRule"] | {"disableDefaultIamRecipients": True, "monitoringNotificationChannels": [CHANNEL]},
    ),
    (
        "notificationsRule has nothing else: no topic, channels or schemaVersion",
        "notificationsRule",
        CAP["notificationsRule"] | TOPIC | {"schemaVersion": "1.0"},
    ),
    (
        "notificationsRule has nothing else: no topic, channels or schemaVersion",
        "notificationsRule.schemaVersion",
        "1.0",
    ),
    (
        "notificationsRule has nothing else: no topic, channels or schemaVersion",
        "notificationsRule.monitoringNotificationChannels",
        [CHANNEL],
    ),
    ("ownershipScope is ALL_USERS", "ownershipScope", None),
    ("ownershipScope is ALL_USERS", "ownershipScope", "BILLING_ACCOUNT"),
]
OF_CAPS_ELSEWHERE = [
    (
        "customPeriod is unset",
        with_field(with_field(CAP, "budgetFilter.calendarPeriod", None), "budgetFilter.customPeriod", CUSTOM),
        None,
    ),
    (
        "creditTypes is empty",
        CAP
        | {
            "budgetFilter": CAP["budgetFilter"]
            | {"creditTypes": ["FREE_TIER"], "creditTypesTreatment": "INCLUDE_SPECIFIED_CREDITS"}
        },
        None,
    ),
    (
        "the billing account is no reseller's",
        CAP,
        Account(id="01D4EE-079462-DFD6EC", reseller=True),
    ),
    ("the account pays for the project", CAP, Account(id="0AAAAA-0BBBBB-0CCCCC")),
]


def broken_rule(body: Body, *, cap: bool, account: Account | None = None) -> str | None:
    rules = billing_rules.RULES | (billing_cap_rules.RULES if cap else {})
    try:
        billing_rules.check(parsed(body), ground(account), rules)
    except Broken as error:
        return error.rule
    return None


@pytest.mark.parametrize(("rule", "field", "value"), OF_ALL)
def test_a_budget_breaks_the_rule(rule: str, field: str, value: object) -> None:
    assert broken_rule(with_field(ALERTS, field, value), cap=False) == rule


@pytest.mark.parametrize(("rule", "body"), OF_TWO_FIELDS)
def test_a_budget_breaks_a_rule_of_two_fields(rule: str, body: Body) -> None:
    assert broken_rule(body, cap=False) == rule


@pytest.mark.parametrize(("rule", "field", "value"), OF_CAPS)
def test_a_cap_breaks_the_rule(rule: str, field: str, value: object) -> None:
    assert broken_rule(with_field(CAP, field, value), cap=True) == rule


@pytest.mark.parametrize(("rule", "body", "account"), OF_CAPS_ELSEWHERE)
def test_a_cap_breaks_a_rule_of_more_than_one_field(rule: str, body: Body, account: Account | None) -> None:
    assert broken_rule(body, cap=True, account=account) == rule


def test_every_rule_has_a_case() -> None:
    cases = {case[0] for case in (*OF_ALL, *OF_TWO_FIELDS, *OF_CAPS, *OF_CAPS_ELSEWHERE)}

    assert billing_rules.RULES.keys() | billing_cap_rules.RULES.keys() == cases


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"amount": {"specifiedAmount": {"units": "0"}}},
        {"amount": {"specifiedAmount": {}}},
        {"amount": {"specifiedAmount": {"units": 20, "nanos": 500_000_000, "currencyCode": "USD"}}},
        {"thresholdRules": [{"thresholdPercent": percent} for percent in (1, 0.5, 0.8)]},
        {"budgetFilter": {k: v for k, v in CAP["budgetFilter"].items() if k != "calendarPeriod"}},
        {"budgetFilter": CAP["budgetFilter"] | {"projects": ["projects/123456789012"]}},
        {"notificationsRule": {"enableProjectLevelRecipients": True, "disableDefaultIamRecipients": False}},
    ],
)
def test_a_valid_cap_breaks_no_rule(change: Body) -> None:
    assert broken_rule(CAP | change, cap=True) is None


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"amount": {"lastPeriodAmount": {}}},
        {"notificationsRule": TOPIC | {"schemaVersion": "1.0"}},
        {"thresholdRules": [RULE | {"spendBasis": "FORECASTED_SPEND"}], "budgetFilter": {"calendarPeriod": "YEAR"}},
        {"budgetFilter": {"customPeriod": CUSTOM | {"endDate": CUSTOM["startDate"]}}},
        {"budgetFilter": {"labels": {"team": ["a"]}, "services": ["services/EE2C-7FAC-5E08"]}},
        {
            "thresholdRules": [RULE],
            "notificationsRule": {"disableDefaultIamRecipients": True, "monitoringNotificationChannels": [CHANNEL]},
        },
    ],
)
def test_a_valid_alerts_only_budget_breaks_no_rule(change: Body) -> None:
    assert broken_rule(ALERTS | change, cap=False) is None


def test_a_stored_budget_spells_out_its_defaults_and_names_projects_by_number() -> None:
    body = ALERTS | {"budgetFilter": {"projects": [f"projects/{PROJECT}"]}, "thresholdRules": [RULE]}

    stored = canonical(parsed(body), ground())

    assert stored["budgetFilter"] == {
        "projects": ["projects/123456789012"],
        "calendarPeriod": "MONTH",
        "creditTypesTreatment": "INCLUDE_ALL_CREDITS",
    }
    assert stored["thresholdRules"] == [RULE | {"spendBasis": "CURRENT_SPEND"}]
    assert stored["amount"]["specifiedAmount"]["currencyCode"] == "USD"
    assert canonical(stored, ground()) == stored


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"spend_limit": 1}, "Unknown name \"spend_limit\" at 'budget': Cannot find field."),
        ({"budgetFilter": {"project": []}}, "Unknown name \"project\" at 'budget.budget_filter'"),
        ({"displayName": 5}, "Invalid value at 'budget.display_name' (TYPE_STRING), 5"),
        ({"displayName": ["x"]}, "Proto field is not repeating, cannot start list."),
        ({"amount": {"specifiedAmount": {"units": "2.5"}}}, 'units\' (TYPE_INT64), "2.5"'),
        ({"amount": {"specifiedAmount": {"units": "9223372036854775808"}}}, "TYPE_INT64"),
        ({"amount": {"specifiedAmount": {"nanos": 2**31}}}, "nanos' (TYPE_INT32), 2147483648"),
        ({"amount": {"specifiedAmount": {}, "lastPeriodAmount": {}}}, "oneof field 'budget_amount' is already set"),
        ({"budgetFilter": {"customPeriod": {}, "calendarPeriod": "YEAR"}}, "oneof field 'usage_period'"),
        ({"budgetFilter": {"services": "services/x"}}, "Invalid value at 'budget.budget_filter.services'"),
        ({"thresholdRules": [{"thresholdPercent": True}]}, "threshold_rules[0].threshold_percent' (TYPE_DOUBLE)"),
        ({"spendCap": {"inputState": "ON"}}, 'google.cloud.billing.budgets.v1.SpendCap.State), "ON"'),
        ({"notificationsRule": {"disableDefaultIamRecipients": "yes"}}, '(TYPE_BOOL), "yes"'),
        ({"notificationsRule": []}, "Root element must be a message."),
    ],
)
def test_the_json_front_refuses(body: Body, words: str) -> None:
    with pytest.raises(GoogleError) as caught:
        parsed(body)

    assert caught.value.code == 400
    assert words in str(caught.value)
    assert caught.value.body["error"]["details"][0]["fieldViolations"][0]["description"] == str(caught.value)


def test_the_json_front_reads_names_of_either_case_and_drops_defaults() -> None:
    body: Body = {
        "display_name": "",
        "threshold_rules": [],
        "spendCap": {"inputState": 1, "reconciling": False},
        "etag": None,
    }

    assert parsed(body) == {"spendCap": {"inputState": "CONFIGURED"}}


def test_a_64_bit_number_is_written_as_a_string() -> None:
    read = parsed({"amount": {"specifiedAmount": {"units": 20, "nanos": 5}}})

    assert jsonfront.write(read, BUDGET) == {"amount": {"specifiedAmount": {"units": "20", "nanos": 5}}}


@pytest.mark.parametrize(
    "mask", ["name", "spendCap.outputState", "spend_cap.reconciling", "amounts", "thresholdRules.x", "a,"]
)
def test_a_mask_names_fields_that_can_be_updated(mask: str) -> None:
    with pytest.raises(Broken):
        billing_patch.paths(mask)


def test_a_mask_clears_what_is_not_given() -> None:
    current = parsed(CAP | {"displayName": "old"})

    changed = billing_patch.masked(current, parsed({"amount": {"specifiedAmount": {}}}), ["displayName", "amount"])

    assert "displayName" not in changed
    assert changed["amount"] == {"specifiedAmount": {}}
    assert changed["budgetFilter"] == current["budgetFilter"]


def test_without_a_mask_only_what_is_set_is_updated_of_money_too() -> None:
    current = parsed(with_field(CAP, "amount.specifiedAmount.nanos", 5))
    given = {"amount": {"specifiedAmount": {"units": "30", "nanos": 0}}, "displayName": "", "thresholdRules": []}

    changed = billing_patch.merged(current, parsed(given))

    assert changed == current | {"amount": {"specifiedAmount": {"units": 30, "nanos": 5}}}


def test_one_field_of_a_oneof_clears_the_other() -> None:
    given = parsed({"amount": {"lastPeriodAmount": {}}})

    for changed in (
        billing_patch.merged(parsed(ALERTS), given),
        billing_patch.masked(parsed(ALERTS), given, ["amount"]),
    ):
        assert changed["amount"] == {"lastPeriodAmount": {}}
