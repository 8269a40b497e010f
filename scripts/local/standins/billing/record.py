"""One budget as the service stores it, and as it shows it; pure."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scripts.local.standins.billing.cap import Cap
from scripts.local.standins.billing.rules import Ground

Fields = Mapping[str, Any]


def _etag() -> str:
    return secrets.token_hex(8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """`fields` are those of an answer but for name, etag and spendCap; a record is born with an etag of its own."""

    name: str
    fields: Fields
    cap: Cap | None
    etag: str = field(default_factory=_etag)

    @property
    def account(self) -> str:
        return self.name.split("/")[1]

    @property
    def topic(self) -> str | None:
        found: str | None = self.fields["notificationsRule"].get("pubsubTopic")
        return found

    @property
    def shown(self) -> dict[str, Any]:
        """As an answer shows it."""
        cap = {} if self.cap is None else {"spendCap": self.cap.shown}
        return {"name": self.name, **self.fields, "etag": self.etag, **cap}

    def under(self, cap: Cap) -> "Record":
        """The same budget with its cap in another state: a new etag, if an answer would show the difference."""
        assert self.cap is not None
        kept = {"etag": self.etag} if cap.shown == self.cap.shown else {}
        return Record(name=self.name, fields=self.fields, cap=cap, **kept)


def canonical(given: Fields, ground: Ground) -> dict[str, Any]:
    """The fields of a valid budget as they are stored: projects by number, defaults spelled out."""
    fields = {name: value for name, value in given.items() if name not in {"name", "etag", "spendCap"}}
    amount = dict(fields["amount"])
    if "specifiedAmount" in amount:
        amount["specifiedAmount"] = {"currencyCode": ground.account.currency} | amount["specifiedAmount"]
    fields |= {"amount": amount, "budgetFilter": _filter(fields.get("budgetFilter", {}), ground)}
    if rules := fields.get("thresholdRules"):
        fields["thresholdRules"] = [{"spendBasis": "CURRENT_SPEND"} | rule for rule in rules]
    return {"notificationsRule": {}} | fields


def _filter(given: Fields, ground: Ground) -> dict[str, Any]:
    period = {} if "customPeriod" in given else {"calendarPeriod": "MONTH"}
    kept = {"creditTypesTreatment": "INCLUDE_ALL_CREDITS"} | period | dict(given)
    if "projects" in kept:
        ids = [name.removeprefix("projects/") for name in kept["projects"]]
        kept["projects"] = [f"projects/{ground.projects[known].number}" for known in ids]
    return kept


def alike(one: Fields, other: Fields) -> bool:
    """Whether two budgets say the same: the order of the thresholds says nothing."""
    return _ordered(one) == _ordered(other)


def _ordered(fields: Fields) -> dict[str, Any]:
    rules = sorted(fields.get("thresholdRules", []), key=lambda rule: rule.get("thresholdPercent", 0.0))
    return {**fields, "thresholdRules": rules}
