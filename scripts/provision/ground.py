"""What everything stands on: the project, who pays for it, in which currency, and the ids of the catalog's services."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scripts.provision.api import Api
from scripts.provision.config import Config
from scripts.provision.failure import Failed, Refusal
from scripts.provision.hosts import Hosts
from scripts.provision.money import Money
from scripts.provision.services import CAPPED, SERVICES, mismatch


class Unfit(Failed):
    """The file cannot be carried out on this project; `faults` holds one sentence for each reason."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The project's number, the billing account's name, and what could not be checked."""

    number: str
    account: str
    notes: tuple[str, ...]


def survey(api: Api, hosts: Hosts, config: Config) -> Ground:
    """Look at all of it before anything is planned.

    Raises:
        Unfit: the account does not pay for the project, is closed or a reseller's, or currency or a service differ.
        Failed: it cannot be read.
    """
    project = api.get(f"{hosts.of('cloudresourcemanager')}/v1/projects/{config.project}")
    billing = hosts.of("cloudbilling")
    paid = api.get(f"{billing}/v1/projects/{config.project}/billingInfo")
    faults = list(_unpaid(config, paid))
    account: Mapping[str, Any] = {}
    notes = []
    try:
        account = api.get(f"{billing}/v1/billingAccounts/{config.billing_account}")
        faults += _unfit(config, account)
    except Refusal as error:
        if error.status != 403:
            raise
        notes.append(
            "you may not read the billing account, so its currency, and whether it is a reseller's, is unknown"
        )
    faults += _unknown(config, _catalog(api, billing))
    if faults:
        raise Unfit(faults)
    return Ground(number=str(project["projectNumber"]), account=str(account.get("displayName", "")), notes=tuple(notes))


def _unpaid(config: Config, paid: Mapping[str, Any]) -> Iterator[str]:
    name = f"billingAccounts/{config.billing_account}"
    found = paid.get("billingAccountName")
    if not found:
        yield (
            f"project {config.project} has no billing account; caps need one: "
            f"gcloud billing projects link {config.project} --billing-account={config.billing_account}"
        )
    elif found != name:
        yield f"billing_account is {config.billing_account}, but {found} pays for {config.project}; name that one"
    elif not paid.get("billingEnabled"):
        yield f"{name} is closed, or billing is disabled for {config.project}; fix that in the console, Billing"


def _unfit(config: Config, account: Mapping[str, Any]) -> Iterator[str]:
    if config.caps and (master := account.get("masterBillingAccount")):
        yield (
            f"{config.billing_account} is resold by {master}, and Google gives reseller accounts no spend caps; "
            "leave [caps] out of the file, and ask the reseller for limits"
        )
    currency = account.get("currencyCode")
    for money in {money.currency for money in _amounts(config)}:
        if currency and money != currency:
            yield f"the billing account is in {currency}, the file's amounts are in {money}; write them in {currency}"


def _amounts(config: Config) -> Iterator[Money]:
    yield from config.caps.values()
    yield from (alert.amount for alert in config.budgets.values())


def _catalog(api: Api, root: str) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    params: dict[str, str | int] = {"pageSize": 5000}
    while True:
        page = api.get(f"{root}/v1/services", params)
        found += page.get("services", ())
        if not page.get("nextPageToken"):
            return found
        params |= {"pageToken": page["nextPageToken"]}


def _unknown(config: Config, catalog: list[Mapping[str, Any]]) -> Iterator[str]:
    used = {*config.caps, *(alert.service for alert in config.budgets.values() if alert.service)}
    for key in sorted(used):
        field = f"caps.{key}" if key in config.caps and key in CAPPED else f"service {key}"
        if wrong := mismatch(SERVICES[key], catalog, confirmed=config.confirmed.get(key)):
            yield f"{field}: {wrong}"
