"""Carries a plan out, step by step; each step may be repeated, and what is made is on record before the next."""

from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass, field
from functools import partial

from google.cloud.billing.budgets_v1 import BudgetServiceClient

from scripts.provision import alerts, caps
from scripts.provision.budget import Budget
from scripts.provision.creation import Creation, Creator
from scripts.provision.desired import AlertWanted, CapWanted, Wanted
from scripts.provision.erase import erase
from scripts.provision.failure import Failed
from scripts.provision.look import Looker
from scripts.provision.plan import role_key
from scripts.provision.plan_alerts import is_alert_of
from scripts.provision.plan_caps import is_alert_for, is_cap_of
from scripts.provision.seen import Entry, Intent, Seen
from scripts.provision.step import Kind, Step, Verb

type Entries = MutableMapping[tuple[Kind, str], Entry | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One run's hands; `entries` is what is on record, as this run saw or wrote it last."""

    edges: Looker
    client: BudgetServiceClient
    entries: Entries = field(default_factory=dict)

    def carry_out(self, steps: Iterable[Step], wanted: Wanted, seen: Seen) -> None:
        """Take the steps in their order.

        Raises:
            Failed: one could not be taken; those before it are done, and a new run goes on from there.
        """
        self._remember(seen)
        for step in steps:
            self.edges.say(f"{step.verb} {step.kind} {step.key}")
            self._take(step, wanted)

    def _take(self, step: Step, wanted: Wanted) -> None:
        match step.kind:
            case Kind.CAP:
                self._cap(step, next(cap for cap in wanted.caps if cap.key == step.key), wanted)
            case Kind.BUDGET:
                self._alert(step, next(alert for alert in wanted.alerts if alert.key == step.key), wanted)
            case Kind.TOPIC:
                self.edges.topics.create(wanted.topic)
            case Kind.PUBLISHER:
                self.edges.topics.let_google_publish(wanted.topic)
            case Kind.ACCOUNT:
                self.edges.rights.create_account(step.key)
            case Kind.ROLE:
                self.edges.rights.give(next(grant for grant in wanted.grants if role_key(grant) == step.key))
            case Kind.TTL:
                self.edges.ttl.set(step.key)

    def _cap(self, step: Step, cap: CapWanted, wanted: Wanted) -> None:
        creation = Creation(
            kind=Kind.CAP,
            key=cap.key,
            display_name=cap.display_name,
            fields={
                "service": f"services/{cap.service}",
                "scope": cap.scope,
                "displayName": cap.display_name,
                "amount": cap.amount.amount,
                "currency": cap.amount.currency,
            },
            post=partial(caps.create, self.edges.budgets, cap),
            sound=partial(is_cap_of, cap, wanted),
            broken=partial(is_alert_for, cap, wanted),
        )
        if step.verb is Verb.CHANGE and step.name:
            self._keep(creation, caps.change(self.edges.budgets, step.name, cap.amount))
        else:
            self._make(step, creation)

    def _alert(self, step: Step, alert: AlertWanted, wanted: Wanted) -> None:
        creation = Creation(
            kind=Kind.BUDGET,
            key=alert.key,
            display_name=alert.display_name,
            fields={
                "service": next(iter(alert.filter.services), None),
                "displayName": alert.display_name,
                "amount": alert.amount.amount,
                "currency": alert.amount.currency,
            },
            post=partial(alerts.create, self.client, wanted.account, alert),
            sound=partial(is_alert_of, alert, wanted),
        )
        if step.verb is Verb.CHANGE and step.name:
            alerts.change(self.client, self.edges.budgets, alert, step.name, step.mask)
            self._keep(creation, self._there(step.name))
        else:
            self._make(step, creation)

    def _make(self, step: Step, creation: Creation) -> None:
        place = (creation.kind, creation.key)
        if step.verb is Verb.CREATE:
            creator = Creator(self.edges.budgets, self.edges.record, self.edges.say)
            self.entries[place] = creator.create(creation, self.entries.get(place))
        elif step.verb is Verb.ADOPT and step.name:
            self._keep(creation, self._there(step.name))
        elif step.verb is Verb.DELETE and step.name:
            self.delete(creation.kind, creation.key, step.name)

    def _keep(self, creation: Creation, found: Budget) -> None:
        """Put what is there on record; one that somebody else made is marked as such."""
        place = (creation.kind, creation.key)
        entry = self.entries.get(place)
        ours = entry is not None and entry.name == found.name and not entry.adopted
        fields = {
            **creation.fields,
            "name": found.name,
            "displayName": found.display_name,
            "adopted": not ours and found.display_name != creation.display_name,
        }
        self.entries[place] = self.edges.record.write(*place, Intent.KEEP, fields, was=entry)

    def delete(self, kind: Kind, key: str, name: str | None) -> None:
        """Delete a budget, and its entry with it if the entry is of this one or of one not known yet.

        Raises:
            Failed: it may not be deleted, or is still there.
        """
        entry = self.entries.get((kind, key))
        if name is not None:
            if entry is not None and entry.name == name:
                entry = self.edges.record.write(kind, key, Intent.DELETE, {}, was=entry)
            erase(self.edges.budgets, name)
        if entry is not None and entry.name in (name, None):
            self.edges.record.forget(kind, key, was=entry)
            entry = None
        self.entries[kind, key] = entry

    def take_away(self, steps: Iterable[Step], seen: Seen) -> None:
        """Carry out the deletions of a `destroy`; raises as `carry_out`."""
        self._remember(seen)
        for step in steps:
            self.edges.say(f"{step.verb} {step.kind} {step.key}")
            self.delete(step.kind, step.key, step.name)

    def _remember(self, seen: Seen) -> None:
        self.entries.clear()
        self.entries.update({(Kind.CAP, key): entry for key, entry in seen.caps.items()})
        self.entries.update({(Kind.BUDGET, key): entry for key, entry in seen.alerts.items()})

    def _there(self, name: str) -> Budget:
        found = self.edges.budgets.get(name)
        if found is None:
            raise Failed(f"{name} is not there any more; run `plan`")
        return found
