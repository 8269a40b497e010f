"""How tests and the demo set the scene of billing; `notices` has what is spent.

Each is a POST with a JSON object; bad input is answered 400 and names the field.

- `/_billing/account` `{account, currency?, open?, reseller?, displayName?}`: add or change a billing account.
- `/_billing/project` `{project, number?, account?}`: add or change a project; `"account": ""` takes its billing away.
- `/_billing/budget` `{id, budget?, account?}`: this budget under this id, in place of the one there, if the service
  would create it; without `budget` there is none any more.
- `/_billing/deny` `{permissions}`: what the caller may not do from now on, and nothing else.
- `/_billing/catalog` `{service, displayName?, drop?}`: rename, add or drop a service; `{most}`: services on a page.
- `/_billing/flaky` `{getNotFound?, …}`: how many answers go wrong, by kind (`flaky.KINDS`);
  `{reconcilingViews}`: how many answers show a cap on its way before it rests, 1 unless told, 0 for at once.
- `/_billing/topic` `{name}`: a topic that exists although the emulator has it not.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace

from aiohttp import web

from scripts.local.standins.admin.pubsub_topics import TOPIC, Topics
from scripts.local.standins.billing.accounts import ACCOUNT, Account, Accounts, Project
from scripts.local.standins.billing.budgets import Budgets
from scripts.local.standins.billing.catalog import Catalog
from scripts.local.standins.billing.flaky import KINDS, Flaky
from scripts.local.standins.billing.message import BUDGET
from scripts.local.standins.billing.rules import Broken
from scripts.local.standins.control_input import bad, take
from scripts.local.standins.jsonfront import BOOL, INT32, STRING, Repeated

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PERMISSION = re.compile(r"[a-z]\w*(\.\w+){2}")


class BillingControl:
    """The handlers; `connect` lets the service publish to a topic."""

    def __init__(
        self,
        accounts: Accounts,
        catalog: Catalog,
        budgets: Budgets,
        *,
        topics: Topics,
        flaky: Flaky,
        connect: Callable[[str | None], Awaitable[None]],
    ) -> None:
        self._accounts, self._catalog, self._budgets = accounts, catalog, budgets
        self._topics, self._flaky, self._connect = topics, flaky, connect

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/_billing/account", self._account),
            web.post("/_billing/project", self._project),
            web.post("/_billing/budget", self._budget),
            web.post("/_billing/deny", self._deny),
            web.post("/_billing/catalog", self._change_catalog),
            web.post("/_billing/flaky", self._make_flaky),
            web.post("/_billing/topic", self._topic),
        ]

    async def _account(self, request: web.Request) -> web.StreamResponse:
        optional = {"currency": STRING, "open": BOOL, "reseller": BOOL, "displayName": STRING}
        given = await take(request, {"account": STRING}, optional)
        raw = await request.json()
        account = self._accounts.accounts.get(given.get("account", ""), Account(id=given.get("account", "")))
        changes = {name: given.get(name, False) for name in ("open", "reseller") if name in raw}
        changes |= {name: given[name] for name in ("currency",) if name in given}
        changes |= {"display_name": given["displayName"]} if "displayName" in given else {}
        self._accounts.accounts[account.id] = account = replace(account, **changes)
        return web.json_response({"account": account.id})

    async def _project(self, request: web.Request) -> web.StreamResponse:
        given = await take(request, {"project": STRING}, {"number": STRING, "account": STRING})
        number = str(10**11 + len(self._accounts.projects))
        project = self._accounts.projects.get(given["project"])
        project = project or Project(id=given["project"], number=given.get("number", number), account=ACCOUNT)
        account = given.get("account") if "account" in await request.json() else project.account
        if account is not None and account not in self._accounts.accounts:
            raise bad("account", f"is unknown: {account}; add it first")
        project = replace(project, number=given.get("number", project.number), account=account)
        self._accounts.projects[project.id] = project
        return web.json_response({"project": project.id, "number": project.number})

    async def _budget(self, request: web.Request) -> web.StreamResponse:
        given = await take(request, {"id": STRING}, {"budget": BUDGET, "account": STRING})
        account, id_ = given.get("account", ACCOUNT), given.get("id", "")
        if account not in self._accounts.accounts:
            raise bad("account", f"is unknown: {account}; add it first")
        if not _ID.fullmatch(id_):
            raise bad("id", "is a UUID in lower case")
        if "budget" in await request.json():
            try:
                draft = self._budgets.draft(account, given.get("budget", {}), id_)
                await self._connect(draft.topic)
            except Broken as error:
                raise bad("budget", f"breaks a rule: {error.rule}") from None
            self._budgets.put(draft)
        else:
            self._budgets.records.pop(f"billingAccounts/{account}/budgets/{id_}", None)
        return web.json_response({"budgets": sorted(self._budgets.records)})

    async def _deny(self, request: web.Request) -> web.StreamResponse:
        given = await take(request, {"permissions": Repeated(STRING)}, {})
        for permission in given.get("permissions", []):
            if not _PERMISSION.fullmatch(permission):
                raise bad("permissions", f"are like billing.budgets.create, not {permission}")
        self._accounts.denied = frozenset(given.get("permissions", []))
        return web.json_response({"denied": sorted(self._accounts.denied)})

    async def _change_catalog(self, request: web.Request) -> web.StreamResponse:
        given = await take(request, {}, {"service": STRING, "displayName": STRING, "drop": BOOL, "most": INT32})
        if given.get("most", 1) < 1:
            raise bad("most", "is at least 1")
        self._catalog.most = given.get("most", self._catalog.most)
        if "drop" in given:
            self._catalog.services.pop(given.get("service", ""), None)
        elif "displayName" in given:
            self._catalog.services[given.get("service", "")] = given["displayName"]
        return web.json_response({"services": self._catalog.services})

    async def _make_flaky(self, request: web.Request) -> web.StreamResponse:
        given = await take(request, {}, dict.fromkeys([*KINDS, "reconcilingViews"], INT32))
        for name, count in given.items():
            if count < 0:
                raise bad(name, "is not negative")
        if "reconcilingViews" in await request.json():
            self._budgets.views = given.pop("reconcilingViews", 0)
        self._flaky.left.update(given)
        return web.json_response(dict(self._flaky.left))

    async def _topic(self, request: web.Request) -> web.StreamResponse:
        name = (await take(request, {"name": STRING}, {})).get("name", "")
        if not TOPIC.fullmatch(name):
            raise bad("name", "is projects/{id}/topics/{id}")
        self._topics.registered.add(name)
        return web.json_response({"registered": sorted(self._topics.registered)})
