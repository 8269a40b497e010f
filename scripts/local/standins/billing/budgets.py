"""The budgets of all accounts: created, updated and deleted under every rule of the service."""

import uuid
from dataclasses import replace
from typing import Any

from scripts.local.standins import page
from scripts.local.standins.billing import cap as billing_cap
from scripts.local.standins.billing import cap_rules as billing_cap_rules
from scripts.local.standins.billing import rules as billing_rules
from scripts.local.standins.billing import update as billing_update
from scripts.local.standins.billing.accounts import Accounts, not_found
from scripts.local.standins.billing.cap import CONFIGURED, ENFORCED, Cap
from scripts.local.standins.billing.catalog import Catalog
from scripts.local.standins.billing.record import Fields, Record, alike, canonical
from scripts.local.standins.billing.rules import Broken, Ground
from scripts.local.standins.billing.spend import Ledger

_RIGHT_TO_CAP = "billing.budgets.configureSpendCap"
_MOST = 100


class Budgets:
    """All budgets by name; `views` is how many answers show a cap on its way to its next state."""

    def __init__(self, accounts: Accounts, catalog: Catalog, ledger: Ledger) -> None:
        self._accounts, self._catalog, self._ledger = accounts, catalog, ledger
        self.reset()

    def reset(self) -> None:
        self.records: dict[str, Record] = {}
        self.deleted: set[str] = set()
        self.views = 1

    def draft(self, account: str, given: Fields, id_: str | None = None) -> Record:
        """A new budget, not stored yet; under an id of its own unless told.

        Raises:
            GoogleError: 400, 403 or 404.
        """
        ground = self._ground(account)
        asked = given.get("spendCap")
        self._accounts.require("billing.budgets.create", *([] if asked is None else [_RIGHT_TO_CAP]))
        if asked is not None and asked.get("inputState") != CONFIGURED:
            raise Broken("spendCap.inputState is CONFIGURED on create")
        name = f"billingAccounts/{account}/budgets/{id_ or uuid.uuid4()}"
        return self._judged(Record(name=name, fields=given, cap=None if asked is None else Cap()), ground)

    def changed(self, name: str, given: Fields, mask: str) -> Record:
        """What an update makes of a budget, not stored yet.

        Raises:
            GoogleError: 400, 403 or 404.
        """
        record = self.get(name, "billing.budgets.update")
        if record.cap is not None or "spendCap" in given:
            self._accounts.require(_RIGHT_TO_CAP)
        wanted, ground = billing_update.updated(record, given, mask, views=self.views), self._ground(record.account)
        if record.cap is not None and record.cap.resting == ENFORCED:
            return self._unchanged(record, wanted, ground)
        return self._judged(wanted, ground)

    def put(self, record: Record) -> Record:
        """Store what `draft` or `changed` gave; its cap sees at once what was spent."""
        self.records[record.name] = record = self._tripped(record)
        return record

    def get(self, name: str, permission: str = "billing.budgets.get") -> Record:
        """Raises GoogleError, 403 or 404."""
        self._accounts.account(name.split("/")[1])
        self._accounts.require(permission)
        if name not in self.records:
            raise not_found()
        return self.records[name]

    def view(self, record: Record) -> dict[str, Any]:
        """Its answer; each one brings a moving cap nearer its next state."""
        if record.cap is not None:
            self.records[record.name] = record.under(billing_cap.viewed(record.cap))
        return record.shown

    def page(self, account: str, scope: str, size: int, token: str) -> page.Page[Record]:
        """Those of an account; with a scope, those that track this project alone.

        Raises:
            GoogleError: 400, 403 or 404.
        """
        self._accounts.account(account)
        self._accounts.require("billing.budgets.list")
        kept = [record for record in self.records.values() if record.account == account]
        if scope:
            if not scope.startswith("projects/"):
                raise Broken("scope is projects/{id or number}")
            project = self._accounts.project(scope.removeprefix("projects/"))
            only = [f"projects/{project.number}"] if project else [scope]
            kept = [record for record in kept if record.fields["budgetFilter"].get("projects") == only]
        return page.cut(kept, size, token, most=_MOST)

    def delete(self, name: str) -> None:
        """Raises GoogleError, 403 or 404; deleting it twice is no error."""
        self._accounts.account(name.split("/")[1])
        self._accounts.require("billing.budgets.delete")
        if self.records.pop(name, None) is None and name not in self.deleted:
            raise not_found()
        self.deleted.add(name)

    def settle(self) -> None:
        """Let every cap see what was spent."""
        self.records = {name: self._tripped(record) for name, record in self.records.items()}

    def renew(self, *, lifts_enforced: bool) -> None:
        """A new period begins."""
        for name, record in self.records.items():
            if record.cap is not None:
                self.records[name] = record.under(billing_cap.renew(record.cap, lifts_enforced=lifts_enforced))

    def _unchanged(self, record: Record, wanted: Record, ground: Ground) -> Record:
        """An enforced cap takes no other change than that of its state."""
        try:
            judged = self._judged(wanted, ground)
        except Broken:
            raise billing_update.precondition() from None
        if not alike(judged.fields, record.fields):
            raise billing_update.precondition()
        return judged

    def _judged(self, record: Record, ground: Ground) -> Record:
        rules = billing_rules.RULES | ({} if record.cap is None else billing_cap_rules.RULES)
        billing_rules.check(record.fields, ground, rules)
        judged = replace(record, fields=canonical(record.fields, ground))
        self._check_only(judged)
        return judged

    def _tripped(self, record: Record) -> Record:
        if record.cap is None:
            return record
        cost = self._ledger.cost(record.fields["budgetFilter"])
        return record.under(billing_cap.spent(record.cap, cost, billing_rules.amount(record.fields), views=self.views))

    def _check_only(self, record: Record) -> None:
        """Raises Broken, if another budget caps the same."""
        if record.cap is None:
            return
        others = [other for other in self.records.values() if other.cap is not None and other.name != record.name]
        if billing_cap_rules.pair(record.fields) in map(billing_cap_rules.pair, (other.fields for other in others)):
            raise Broken("a project and a service have one cap")

    def _ground(self, account: str) -> Ground:
        known = self._accounts.projects.values()
        projects = {key: project for project in known for key in (project.id, project.number)}
        return Ground(account=self._accounts.account(account), projects=projects, services=self._catalog.services)
