"""A budget's notification as a value, read from a message that anybody may have written."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from firebreak.settings.policies import Threshold, ThresholdKind
from firebreak.store import times

# A notice has a few hundred.
MOST_BYTES = 64 * 1024
MOST_CHARACTERS = 100
MICROS = 1_000_000
# What rounding may do to a cost; to a threshold it may do a hundredth of a percent.
CENT = MICROS // 100
WHOLE_BP = 10_000
# In the smallest currencies this is still a large budget, and in millionths it fits an integer of the store.
MOST_MONEY = 9_000_000_000_000
# 1,000,000 %: what is above it is a fault of the report.
MOST_BP = 100 * 1_000_000
SCHEMA = "1.0"
_FIELDS = {ThresholdKind.ACTUAL: "alertThresholdExceeded", ThresholdKind.FORECAST: "forecastThresholdExceeded"}


class NotANotice(Exception):
    """A message on the topic that is no budget's notification; `what` is for the log."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What a budget reports: money in millionths, times in microseconds; None where it does not say.

    `exceeded` are the highest thresholds that it says are exceeded; a routine report has none. `is_fixed`: an owner set
    the amount, it is not what an earlier period cost.
    """

    message_id: str
    account: str
    budget: str
    name: str
    start_us: int
    exceeded: tuple[Threshold, ...]
    cost: int | None
    amount: int | None
    is_fixed: bool
    currency: str | None
    published_us: int | None

    @property
    def contradicts_itself(self) -> bool:
        """Whether its own cost is below the threshold of actual spend that it claims."""
        if self.cost is None or self.amount is None or self.amount <= 0:
            return False
        slack = self.amount // WHOLE_BP + CENT
        actual = [t.bp for t in self.exceeded if t.kind is ThresholdKind.ACTUAL]
        return any(self.cost + slack < self.amount * bp // WHOLE_BP for bp in actual)


def read(*, message_id: str, attributes: Mapping[str, str], data: bytes | None, published_us: int | None) -> Notice:
    """The notice in a message; fields that are not known are passed over.

    Raises:
        NotANotice: it is another message, or what decides is missing or malformed.
    """
    account, budget = attributes.get("billingAccountId"), attributes.get("budgetId")
    if not account or not budget:
        raise NotANotice("no budget is named: an anomaly notification, or a stranger's message")
    if attributes.get("schemaVersion", SCHEMA) != SCHEMA:
        raise NotANotice("schemaVersion is not 1.0")
    fields = _fields(data)
    start_us = times.parse(fields.get("costIntervalStart"))
    if start_us is None:
        raise NotANotice("costIntervalStart is no time")
    return Notice(
        message_id=message_id,
        account=account[:MOST_CHARACTERS].upper(),
        budget=budget[:MOST_CHARACTERS].lower(),
        name=_text(fields.get("budgetDisplayName")),
        start_us=start_us,
        exceeded=tuple(_exceeded(fields)),
        cost=_money(fields.get("costAmount")),
        amount=_money(fields.get("budgetAmount")),
        is_fixed=fields.get("budgetAmountType") == "SPECIFIED_AMOUNT",
        currency=_text(fields.get("currencyCode"))[:3] or None,
        published_us=published_us,
    )


def _fields(data: bytes | None) -> Mapping[str, object]:
    if data is None or len(data) > MOST_BYTES:
        raise NotANotice("data is missing or too long")
    try:
        fields = json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise NotANotice("data is not JSON") from error
    if not isinstance(fields, dict):
        raise NotANotice("data is not a JSON object")
    return fields


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _exceeded(fields: Mapping[str, object]) -> Iterator[Threshold]:
    """0.9 is 90%: thresholds are compared as whole hundredths of a percent."""
    for kind, name in _FIELDS.items():
        value = fields.get(name)
        if value is None:
            continue
        part = _number(value)
        if part is None or not 0 <= part <= MOST_BP / WHOLE_BP:
            raise NotANotice(f"{name} is no part of a budget")
        if bp := round(part * WHOLE_BP):
            yield Threshold(kind=kind, bp=bp)


def _money(value: object) -> int | None:
    amount = _number(value)
    return None if amount is None or abs(amount) > MOST_MONEY else round(amount * MICROS)


def _number(value: object) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _text(value: object) -> str:
    """A text that can be stored and shown: one line, no halves of characters, not long."""
    if not isinstance(value, str):
        return ""
    whole = value[:MOST_CHARACTERS].encode("utf-8", "replace").decode()
    return "".join(c for c in whole if c.isprintable())


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message as far as it can be read: `data` None where there is none, `published_us` by Pub/Sub's clock."""

    id: str
    data: bytes | None
    attributes: Mapping[str, str]
    published_us: int | None
