"""Which permissions each part takes, and which of them the caller lacks."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from scripts.provision.api import Api
from scripts.provision.config import Config
from scripts.provision.failure import Refusal
from scripts.provision.hosts import Hosts
from scripts.provision.seen import Part

PROJECT, ACCOUNT = "project", "billing account"

type Need = tuple[str, str]

# For caps and budgets a right on the billing account will do, or its twin on the project.
_EITHER: Mapping[Part, tuple[tuple[Need, Need], ...]] = {
    Part.CAPS: tuple(
        ((ACCOUNT, f"billing.budgets.{of_account}"), (PROJECT, f"billing.resourcebudgets.{of_project}"))
        for of_account, of_project in (
            ("configureSpendCap", "configureSpendCap"),
            ("create", "write"),
            ("update", "write"),
            ("get", "read"),
            ("list", "read"),
        )
    ),
    Part.BUDGETS: tuple(
        ((ACCOUNT, f"billing.budgets.{of_account}"), (PROJECT, f"billing.resourcebudgets.{of_project}"))
        for of_account, of_project in (("create", "write"), ("update", "write"), ("get", "read"), ("list", "read"))
    ),
}
_EACH: Mapping[Part, tuple[Need, ...]] = {
    Part.BUDGETS: ((PROJECT, "pubsub.topics.setIamPolicy"),),
    Part.TOPIC: tuple((PROJECT, f"pubsub.topics.{name}") for name in ("create", "get", "getIamPolicy", "setIamPolicy")),
    Part.RIGHTS: (
        (PROJECT, "iam.serviceAccounts.create"),
        (PROJECT, "iam.serviceAccounts.get"),
        (PROJECT, "resourcemanager.projects.getIamPolicy"),
        (PROJECT, "resourcemanager.projects.setIamPolicy"),
        (PROJECT, "run.services.getIamPolicy"),
        (PROJECT, "run.services.setIamPolicy"),
    ),
    Part.TTL: ((PROJECT, "datastore.indexes.get"), (PROJECT, "datastore.indexes.update")),
}
# Without it, the one role on the billing account is left to somebody who has it.
GRANTS: Need = (ACCOUNT, "billing.accounts.setIamPolicy")
# The intents and names of what is made are kept in Firestore.
_RECORD: tuple[Need, ...] = tuple((PROJECT, f"datastore.entities.{name}") for name in ("get", "create", "update"))
_RECORDED = frozenset({Part.CAPS, Part.BUDGETS})
# Roles that hold them, for the way out.
ROLES = (
    "Owner of the project and Billing Account Administrator have them all; without the latter, caps take "
    "Billing Account Costs Manager and Editor of the project"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """A permission that the caller has not got: any of `names`, each on what it names."""

    part: Part
    needs: tuple[Need, ...]

    def __str__(self) -> str:
        return f"{self.part}: {' or '.join(f'{name} on the {resource}' for resource, name in self.needs)}"


def lacks(granted: Collection[Need], parts: Iterable[Part]) -> tuple[Lack, ...]:
    """What is missing for these parts: pure."""
    missing = [
        Lack(part=part, needs=needs)
        for part in parts
        for needs in (*_EITHER.get(part, ()), *((need,) for need in _each(part)))
        if not set(needs) & set(granted)
    ]
    return tuple(dict.fromkeys(missing))


def _each(part: Part) -> tuple[Need, ...]:
    return (*_EACH.get(part, ()), *(_RECORD if part in _RECORDED else ()))


def granted(api: Api, hosts: Hosts, config: Config) -> frozenset[Need] | None:
    """What the caller may do; None where even that is not told.

    Raises:
        NoAnswer: nobody says.
    """
    project = f"{hosts.of('cloudresourcemanager')}/v1/projects/{config.project}"
    account = f"{hosts.of('cloudbilling')}/v1/billingAccounts/{config.billing_account}"
    try:
        return frozenset({*_test(api, PROJECT, project), *_test(api, ACCOUNT, account)})
    except Refusal:
        return None


def _test(api: Api, resource: str, url: str) -> Iterable[Need]:
    needs = {need for part in Part for needs in _EITHER.get(part, ()) for need in needs}
    needs |= {need for part in Part for need in _each(part)} | {GRANTS}
    names = sorted(name for where, name in needs if where == resource)
    answer = api.read(f"{url}:testIamPermissions", {"permissions": names})
    return ((resource, name) for name in answer.get("permissions", ()))
