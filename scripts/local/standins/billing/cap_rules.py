"""What a budget with a spend cap must satisfy on top; pure."""

from scripts.local.standins.billing.catalog import ELIGIBLE
from scripts.local.standins.billing.rules import Budget, Ground, Rule, part

_THRESHOLDS = [0.5, 0.8, 1.0]
_FIELDS_OF_RULE = frozenset({"enableProjectLevelRecipients", "disableDefaultIamRecipients"})


def pair(budget: Budget) -> tuple[str, str]:
    """The project and the service of a valid cap: one cap a pair."""
    given = part(budget, "budgetFilter")
    return given["projects"][0], given["services"][0]


def _tracks_one_project(budget: Budget, _: Ground) -> bool:
    return len(part(budget, "budgetFilter").get("projects", [])) == 1


def _tracks_one_service(budget: Budget, _: Ground) -> bool:
    return len(part(budget, "budgetFilter").get("services", [])) == 1


def _can_pause_the_service(budget: Budget, _: Ground) -> bool:
    return pair(budget)[1].removeprefix("services/") in ELIGIBLE


def _is_paid_by_the_account(budget: Budget, ground: Ground) -> bool:
    return ground.projects[pair(budget)[0].removeprefix("projects/")].account == ground.account.id


def _has_the_three_thresholds(budget: Budget, _: Ground) -> bool:
    return sorted(rule.get("thresholdPercent", 0.0) for rule in budget.get("thresholdRules", [])) == _THRESHOLDS


def _lacks(name: str, field: str) -> Rule:
    return lambda budget, _: field not in part(budget, name)


# The order matters: each may rely on those above it.
RULES: dict[str, Rule] = {
    "the billing account is no reseller's": lambda _, ground: not ground.account.reseller,
    "projects is exactly one": _tracks_one_project,
    "services is exactly one": _tracks_one_service,
    "the service is eligible for caps": _can_pause_the_service,
    "the account pays for the project": _is_paid_by_the_account,
    "creditTypes is empty": _lacks("budgetFilter", "creditTypes"),
    "creditTypesTreatment is EXCLUDE_ALL_CREDITS": lambda budget, _: (
        part(budget, "budgetFilter").get("creditTypesTreatment") == "EXCLUDE_ALL_CREDITS"
    ),
    "calendarPeriod is MONTH or unset": lambda budget, _: (
        part(budget, "budgetFilter").get("calendarPeriod", "MONTH") == "MONTH"
    ),
    "customPeriod is unset": _lacks("budgetFilter", "customPeriod"),
    "resourceAncestors is empty": _lacks("budgetFilter", "resourceAncestors"),
    "subaccounts is empty": _lacks("budgetFilter", "subaccounts"),
    "labels is empty": lambda budget, _: not part(budget, "budgetFilter").get("labels"),
    "specifiedAmount is set, lastPeriodAmount is not": _lacks("amount", "lastPeriodAmount"),
    "thresholdRules are 0.5, 0.8 and 1.0": _has_the_three_thresholds,
    "spendBasis is never FORECASTED_SPEND": lambda budget, _: all(
        rule.get("spendBasis") != "FORECASTED_SPEND" for rule in budget.get("thresholdRules", [])
    ),
    "enableProjectLevelRecipients is true": lambda budget, _: (
        part(budget, "notificationsRule").get("enableProjectLevelRecipients", False) is True
    ),
    "disableDefaultIamRecipients is false": _lacks("notificationsRule", "disableDefaultIamRecipients"),
    "notificationsRule has nothing else: no topic, channels or schemaVersion": lambda budget, _: (
        part(budget, "notificationsRule").keys() <= _FIELDS_OF_RULE
    ),
    # The reference allows to leave it out; a team that runs caps reports a bare 400. In doubt, refused.
    "ownershipScope is ALL_USERS": lambda budget, _: budget.get("ownershipScope") == "ALL_USERS",
}
