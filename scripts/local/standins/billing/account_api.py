"""The Cloud Billing API v1, under `/cloudbilling`: billing accounts, who pays for a project, the catalog."""

from typing import Any

from aiohttp import web

from scripts.local.standins import jsonfront, page
from scripts.local.standins.admin import iam
from scripts.local.standins.api import Api
from scripts.local.standins.billing.accounts import Account, Accounts
from scripts.local.standins.billing.catalog import Catalog

_ACCOUNTS = "/cloudbilling/v1/billingAccounts"
BILLING_ACCOUNT_PATH = _ACCOUNTS + "/{account:[^/:]+}"
_MOST_ACCOUNTS = 100


class BillingAccountApi:
    """The handlers."""

    def __init__(self, api: Api, accounts: Accounts, catalog: Catalog) -> None:
        self._api, self._accounts, self._catalog = api, accounts, catalog

    def routes(self) -> list[web.RouteDef]:
        api, one = self._api, _ACCOUNTS + "/{account:[^/:]+}"
        info = "/cloudbilling/v1/projects/{project:[^/:]+}/billingInfo"
        paged = "pageSize pageToken"
        return [
            web.get(_ACCOUNTS, api.handler("billingAccounts.list", self._list, query=f"{paged} filter parent")),
            web.get(one, api.handler("billingAccounts.get", self._get)),
            web.post(f"{one}:testIamPermissions", api.handler("billingAccounts.testIamPermissions", self._test)),
            web.get(info, api.handler("projects.getBillingInfo", self._info)),
            web.get("/cloudbilling/v1/services", api.handler("services.list", self._services, query=paged)),
        ]

    async def resource(self, request: web.Request) -> str:
        """Raises GoogleError, 404."""
        return f"billingAccounts/{self._accounts.account(request.match_info['account']).id}"

    async def _list(self, request: web.Request) -> object:
        size, token = _paging(request)
        found = page.cut(list(self._accounts.accounts.values()), size, token, most=_MOST_ACCOUNTS)
        return {"billingAccounts": [_shown(account) for account in found.items], **found.next}

    async def _get(self, request: web.Request) -> object:
        account = self._accounts.account(request.match_info["account"])
        self._accounts.require("billing.accounts.get")
        return _shown(account)

    async def _test(self, request: web.Request) -> object:
        self._accounts.account(request.match_info["account"])
        asked = jsonfront.read(await request.text(), iam.TEST)
        allowed = self._accounts.allowed(asked.get("permissions", []))
        return {"permissions": allowed} if allowed else {}

    async def _info(self, request: web.Request) -> object:
        project = self._accounts.payee(request.match_info["project"], "resourcemanager.projects.get")
        name = f"projects/{project.id}/billingInfo"
        if project.account is None:
            return {"name": name, "projectId": project.id, "billingAccountName": ""}
        enabled = {"billingEnabled": True} if self._accounts.account(project.account).open else {}
        payer = f"billingAccounts/{project.account}"
        return {"name": name, "projectId": project.id, "billingAccountName": payer, **enabled}

    async def _services(self, request: web.Request) -> object:
        return self._catalog.page(*_paging(request))


def _paging(request: web.Request) -> tuple[int, str]:
    size = jsonfront.whole_number(request.query.get("pageSize", "0"), "pageSize")
    return size, request.query.get("pageToken", "")


def _shown(account: Account) -> dict[str, Any]:
    shown = {
        "name": f"billingAccounts/{account.id}",
        "displayName": account.display_name,
        "masterBillingAccount": "billingAccounts/000000-000000-000000" if account.reseller else "",
        "currencyCode": account.currency,
    }
    return shown | ({"open": True} if account.open else {})
