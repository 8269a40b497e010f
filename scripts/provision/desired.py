"""What the file wants of one project, as resources with names: pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from scripts.provision import grants
from scripts.provision.budget import CURRENT, EXCLUDE, FORECAST, INCLUDE, Filter, Threshold
from scripts.provision.config import Alert, Config, service_id
from scripts.provision.grants import Grant
from scripts.provision.money import Money
from scripts.provision.services import SERVICES

_CAP_THRESHOLDS = (0.5, 0.8, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapWanted:
    """The one spend cap of one service in one project."""

    key: str
    service: str
    scope: str
    project: str
    display_name: str
    amount: Money

    def body(self) -> dict[str, Any]:
        """The budget to create: every field as a spend cap demands it."""
        return {
            "displayName": self.display_name,
            "budgetFilter": {
                "projects": [f"projects/{self.project}"],
                "services": [f"services/{self.service}"],
                "calendarPeriod": "MONTH",
                "creditTypesTreatment": EXCLUDE,
            },
            "amount": {"specifiedAmount": self.amount.wire()},
            "thresholdRules": [{"thresholdPercent": part, "spendBasis": CURRENT} for part in _CAP_THRESHOLDS],
            "notificationsRule": {"enableProjectLevelRecipients": True},
            "ownershipScope": "ALL_USERS",
            "spendCap": {"inputState": "CONFIGURED"},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertWanted:
    """An alerts-only budget that notifies a topic."""

    key: str
    display_name: str
    filter: Filter
    amount: Money
    thresholds: frozenset[Threshold]
    topic: str

    def body(self) -> dict[str, Any]:
        """The budget to create."""
        return {
            "displayName": self.display_name,
            "budgetFilter": {
                "projects": sorted(self.filter.projects),
                "services": sorted(self.filter.services),
                "calendarPeriod": self.filter.period,
                "creditTypesTreatment": self.filter.credits,
            },
            "amount": {"specifiedAmount": self.amount.wire()},
            "thresholdRules": [
                {"thresholdPercent": float(part), "spendBasis": basis} for part, basis in sorted(self.thresholds)
            ],
            "notificationsRule": {
                "pubsubTopic": self.topic,
                "schemaVersion": "1.0",
                "enableProjectLevelRecipients": True,
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Everything; `project_names` are the ways in which a budget may name the project."""

    account: str
    project_names: frozenset[str]
    caps: tuple[CapWanted, ...]
    alerts: tuple[AlertWanted, ...]
    topic: str
    accounts: tuple[str, ...]
    grants: tuple[Grant, ...]
    ttl: tuple[str, ...]


def wanted(config: Config, *, number: str, ttl: Sequence[str]) -> Wanted:
    """What `config` wants.

    Args:
        config: the checked file.
        number: the project's number, which the API may use in place of its id.
        ttl: the collection groups whose documents expire.
    """
    topic = f"projects/{config.project}/topics/{config.topic}"
    return Wanted(
        account=f"billingAccounts/{config.billing_account}",
        project_names=frozenset({f"projects/{config.project}", f"projects/{number}"}),
        caps=tuple(_cap(config, key, amount) for key, amount in sorted(config.caps.items())),
        alerts=tuple(_alert(config, key, alert, topic) for key, alert in sorted(config.budgets.items())),
        topic=topic,
        accounts=grants.accounts(config),
        grants=grants.grants(config),
        ttl=tuple(ttl),
    )


def _cap(config: Config, key: str, amount: Money) -> CapWanted:
    return CapWanted(
        key=key,
        service=service_id(config.confirmed, key),
        scope=SERVICES[key].scope or "",
        project=config.project,
        display_name=f"firebreak cap {key} {config.project}",
        amount=amount,
    )


def _alert(config: Config, key: str, alert: Alert, topic: str) -> AlertWanted:
    services = frozenset({f"services/{service_id(config.confirmed, alert.service)}"} if alert.service else ())
    return AlertWanted(
        key=key,
        display_name=f"firebreak alert {key} {config.project}",
        filter=Filter(
            projects=frozenset({f"projects/{config.project}"}),
            services=services,
            credits=EXCLUDE if alert.credits == "exclude" else INCLUDE,
        ),
        amount=alert.amount,
        thresholds=_rules(alert.thresholds, CURRENT) | _rules(alert.forecast, FORECAST),
        topic=topic,
    )


def _rules(parts: Sequence[Decimal], basis: str) -> frozenset[Threshold]:
    return frozenset((part.normalize(), basis) for part in parts)
