"""What every budget must satisfy, alerts-only or cap; pure."""

import datetime
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from scripts.local.standins.billing.accounts import Account, Project
from scripts.local.standins.google import GoogleError

Budget = Mapping[str, Any]

_TOPIC = re.compile(r"projects/[^/]+/topics/[^/]+")
_CHANNEL = re.compile(r"projects/[^/]+/notificationChannels/[^/]+")
_ANCESTOR = re.compile(r"(folders|organizations)/[^/]+")
_SUBACCOUNT = re.compile(r"billingAccounts/[^/]+")
_NO_EARLIER = datetime.date(2017, 1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a budget is judged by: its account, all projects by id and by number, the ids of the catalog."""

    account: Account
    projects: Mapping[str, Project]
    services: Collection[str]


type Rule = Callable[[Budget, Ground], bool]


def check(budget: Budget, ground: Ground, rules: Mapping[str, Rule]) -> None:
    """Raises Broken, for the first rule that the budget breaks."""
    for words, holds in rules.items():
        if not holds(budget, ground):
            raise Broken(words)


class Broken(GoogleError):
    """The bare 400 that Google answers; `rule` is for the log alone."""

    def __init__(self, rule: str) -> None:
        super().__init__(400, "Request contains an invalid argument.")
        self.rule = rule


def part(budget: Budget, name: str) -> dict[str, Any]:
    """A message of the budget; empty if it is not set."""
    found: dict[str, Any] = budget.get(name, {})
    return found


def amount(budget: Budget) -> Decimal:
    """The specified amount, in units of its currency."""
    money = part(budget, "amount").get("specifiedAmount", {})
    return Decimal(money.get("units", 0)) + Decimal(money.get("nanos", 0)) / 10**9


def _has_one_amount(budget: Budget, _: Ground) -> bool:
    return len(part(budget, "amount")) == 1


def _has_real_amount(budget: Budget, _: Ground) -> bool:
    money: dict[str, int] = part(budget, "amount").get("specifiedAmount", {})
    return money.get("units", 0) >= 0 and 0 <= money.get("nanos", 0) < 10**9


def _has_currency_of_account(budget: Budget, ground: Ground) -> bool:
    money: dict[str, str] = part(budget, "amount").get("specifiedAmount", {})
    return money.get("currencyCode", ground.account.currency) == ground.account.currency


def _recurs_or_knows_its_amount(budget: Budget, _: Ground) -> bool:
    return not _is_custom(budget) or "lastPeriodAmount" not in part(budget, "amount")


def _starts_late_enough(budget: Budget, _: Ground) -> bool:
    start = _date(part(budget, "budgetFilter").get("customPeriod", {}).get("startDate"))
    return not _is_custom(budget) or (start is not None and start >= _NO_EARLIER)


def _ends_after_its_start(budget: Budget, _: Ground) -> bool:
    period = part(budget, "budgetFilter").get("customPeriod", {})
    if "endDate" not in period:
        return True
    start, end = _date(period.get("startDate")), _date(period["endDate"])
    return start is not None and end is not None and start <= end


def _has_real_thresholds(budget: Budget, _: Ground) -> bool:
    percents = [rule.get("thresholdPercent", 0.0) for rule in budget.get("thresholdRules", [])]
    return all(math.isfinite(percent) and percent >= 0 for percent in percents)


def _forecasts_only_what_recurs(budget: Budget, _: Ground) -> bool:
    bases = {rule.get("spendBasis") for rule in budget.get("thresholdRules", [])}
    return not _is_custom(budget) or "FORECASTED_SPEND" not in bases


def _names_credits_only_if_they_count(budget: Budget, _: Ground) -> bool:
    given = part(budget, "budgetFilter")
    return "creditTypes" not in given or given.get("creditTypesTreatment") == "INCLUDE_SPECIFIED_CREDITS"


def _has_one_label(budget: Budget, _: Ground) -> bool:
    labels = part(budget, "budgetFilter").get("labels", {})
    return len(labels) <= 1 and all(len(v) == 1 and isinstance(v[0], str) for v in labels.values())


def _tracks_known_projects(budget: Budget, ground: Ground) -> bool:
    names = part(budget, "budgetFilter").get("projects", [])
    return all(name.startswith("projects/") and name.removeprefix("projects/") in ground.projects for name in names)


def _tracks_known_services(budget: Budget, ground: Ground) -> bool:
    names = part(budget, "budgetFilter").get("services", [])
    return all(name.startswith("services/") and name.removeprefix("services/") in ground.services for name in names)


def _every(name: str, field: str, form: re.Pattern[str]) -> Rule:
    return lambda budget, _: all(form.fullmatch(value) for value in part(budget, name).get(field, []))


def _has_topic_of_a_project(budget: Budget, _: Ground) -> bool:
    rule = part(budget, "notificationsRule")
    return "pubsubTopic" not in rule or bool(_TOPIC.fullmatch(rule["pubsubTopic"]))


def _has_schema_of_topic(budget: Budget, _: Ground) -> bool:
    rule = part(budget, "notificationsRule")
    return rule.get("schemaVersion", "1.0") == "1.0" and ("pubsubTopic" not in rule or "schemaVersion" in rule)


def _mails_its_thresholds(budget: Budget, _: Ground) -> bool:
    rule = part(budget, "notificationsRule")
    mails = not rule.get("disableDefaultIamRecipients") or bool(rule.get("monitoringNotificationChannels"))
    return mails or not budget.get("thresholdRules")


def _has_thresholds_to_mail(budget: Budget, _: Ground) -> bool:
    asked = {"monitoringNotificationChannels", "enableProjectLevelRecipients"} & part(
        budget, "notificationsRule"
    ).keys()
    return not asked or bool(budget.get("thresholdRules"))


def _is_custom(budget: Budget) -> bool:
    return "customPeriod" in part(budget, "budgetFilter")


def _date(given: Mapping[str, int] | None) -> datetime.date | None:
    try:
        return datetime.date(**given) if given else None
    except (TypeError, ValueError):
        return None


RULES: dict[str, Rule] = {
    "displayName has at most 60 characters": lambda budget, _: len(budget.get("displayName", "")) <= 60,
    "amount is required": _has_one_amount,
    "amount is valid Money and not negative": _has_real_amount,
    "amount is in the account's currency": _has_currency_of_account,
    "lastPeriodAmount needs a calendar period": _recurs_or_knows_its_amount,
    "customPeriod.startDate is a date after January 1, 2017": _starts_late_enough,
    "customPeriod.endDate is a date not before startDate": _ends_after_its_start,
    "thresholdPercent is not negative": _has_real_thresholds,
    "FORECASTED_SPEND needs a calendar period": _forecasts_only_what_recurs,
    "creditTypes needs INCLUDE_SPECIFIED_CREDITS": _names_credits_only_if_they_count,
    "labels has one key with one value": _has_one_label,
    "projects are projects/{id or number} and exist": _tracks_known_projects,
    "services are services/{id} of the catalog": _tracks_known_services,
    "resourceAncestors are folders or organizations": _every("budgetFilter", "resourceAncestors", _ANCESTOR),
    "subaccounts are billingAccounts/{id}": _every("budgetFilter", "subaccounts", _SUBACCOUNT),
    "monitoringNotificationChannels have the form of one": _every(
        "notificationsRule", "monitoringNotificationChannels", _CHANNEL
    ),
    "monitoringNotificationChannels are at most 5": lambda budget, _: (
        len(part(budget, "notificationsRule").get("monitoringNotificationChannels", [])) <= 5
    ),
    "pubsubTopic is projects/{id}/topics/{id}": _has_topic_of_a_project,
    "schemaVersion is 1.0, and set with a topic": _has_schema_of_topic,
    "thresholdRules need e-mail to the default recipients or a channel": _mails_its_thresholds,
    "e-mail to channels or project owners needs thresholdRules": _has_thresholds_to_mail,
}
