"""Looks at everything that a plan needs: each part once, budgets as often as it takes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from scripts.local.progress import Say
from scripts.provision.budget import Budget
from scripts.provision.budgets import Budgets
from scripts.provision.desired import Wanted
from scripts.provision.failure import Refusal
from scripts.provision.grants import Grant, is_service
from scripts.provision.plan_alerts import is_alert_of
from scripts.provision.plan_caps import is_cap_of
from scripts.provision.rights import Rights
from scripts.provision.seen import Part, Seen
from scripts.provision.state import Record
from scripts.provision.topic import Topics
from scripts.provision.ttl import Ttl


@dataclass(frozen=True, slots=True, kw_only=True)
class Looker:
    """The edges that a look goes through."""

    budgets: Budgets
    record: Record
    topics: Topics
    rights: Rights
    ttl: Ttl
    say: Say

    def look(self, wanted: Wanted, only: Collection[Part], *, by_hand: frozenset[str]) -> Seen:
        """What exists of these parts; `by_hand` are resources whose policy the caller may not change.

        Raises:
            Failed: something does not answer.
        """
        unread: dict[Part, str] = {}
        found: dict[str, Any] = {}
        budgets = partial(self._budgets, only=only)
        for parts, what, read in (
            (frozenset({Part.CAPS, Part.BUDGETS}), "budgets, and what is on record of them", budgets),
            (frozenset({Part.TOPIC}), "the topic", self._topic),
            (frozenset({Part.RIGHTS}), "service accounts and roles", self._rights),
            (frozenset({Part.TTL}), "TTL policies", self._ttl),
        ):
            asked = parts & set(only)
            if not asked:
                continue
            self.say(f"looking at {what}")
            try:
                found |= read(wanted)
            except Refusal as error:
                unread |= dict.fromkeys(asked, str(error))
        return Seen(**found, by_hand=by_hand, unread=unread)

    def _budgets(self, wanted: Wanted, *, only: Collection[Part]) -> dict[str, Any]:
        recorded = self.record.read()
        names = {entry.name for entry in (*recorded.caps.values(), *recorded.alerts.values()) if entry.name}
        caps = wanted.caps if Part.CAPS in only else ()
        alerts = wanted.alerts if Part.BUDGETS in only else ()
        known = {key: entry.name for key, entry in recorded.alerts.items()}

        def complete(found: Collection[Budget]) -> bool:
            return all(any(is_cap_of(cap, wanted, budget) for budget in found) for cap in caps) and all(
                any(budget.name == known.get(alert.key) or is_alert_of(alert, wanted, budget) for budget in found)
                for alert in alerts
            )

        found = self.budgets.look(sorted(names), complete)
        return {"budgets": found, "caps": recorded.caps, "alerts": recorded.alerts}

    def _topic(self, wanted: Wanted) -> dict[str, Any]:
        there = self.topics.exists(wanted.topic)
        return {"topic": there, "publisher": there and self.topics.lets_google_publish(wanted.topic)}

    def _rights(self, wanted: Wanted) -> dict[str, Any]:
        policies: dict[str, Mapping[str, Any]] = {}
        absent: set[str] = set()
        return {
            "accounts": frozenset(email for email in wanted.accounts if self.rights.has_account(email)),
            "grants": frozenset(grant for grant in wanted.grants if self._has(grant, policies, absent)),
            "absent": frozenset(absent),
        }

    def _has(self, grant: Grant, policies: dict[str, Mapping[str, Any]], absent: set[str]) -> bool:
        try:
            return self.rights.has(grant, policies)
        except Refusal as error:
            # The first deploy enables the API of Cloud Run, and makes the service.
            if is_service(grant.resource) and (error.status == 404 or error.disabled):
                absent.add(grant.resource)
                return False
            # Who may not read the billing account's policy may not change it: it is left to somebody who may.
            if error.status != 403 or not grant.resource.startswith("billingAccounts/"):
                raise
            return False

    def _ttl(self, wanted: Wanted) -> dict[str, Any]:
        return {"ttl": frozenset(group for group in wanted.ttl if self.ttl.is_set(group))}
