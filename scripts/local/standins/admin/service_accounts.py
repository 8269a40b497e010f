"""The service accounts of the IAM API v1, under `/iam`."""

import re
import secrets
from typing import Any

from aiohttp import web

from scripts.local.layout import PROJECT
from scripts.local.standins import jsonfront, page
from scripts.local.standins.api import Api
from scripts.local.standins.billing.accounts import Accounts, Project
from scripts.local.standins.google import GoogleError
from scripts.local.standins.jsonfront import STRING, Message

ACCOUNT_PATH = "/iam/v1/projects/{project:[^/:]+}/serviceAccounts/{email:[^/:]+}"
_ACCOUNT = Message({"displayName": STRING, "description": STRING})
_CREATE = Message({"accountId": STRING, "serviceAccount": _ACCOUNT})
_ID = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")
_MOST = 100


class ServiceAccounts:
    """All of them by e-mail; the local one, which the stack's credentials are of, is there from the start."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self.reset()

    def reset(self) -> None:
        self.by_email: dict[str, dict[str, Any]] = {}
        project = self._accounts.projects[PROJECT]
        self.add(project, "local", {})

    def add(self, project: Project, account: str, given: dict[str, Any]) -> dict[str, Any]:
        email = f"{account}@{project.id}.iam.gserviceaccount.com"
        self.by_email[email] = made = {
            "name": f"projects/{project.id}/serviceAccounts/{email}",
            "projectId": project.id,
            "uniqueId": str(10**20 + secrets.randbelow(10**20)),
            "email": email,
            **given,
            "etag": "MDEwMjE5MjA=",
            "oauth2ClientId": str(10**20 + secrets.randbelow(10**20)),
        }
        return made

    def is_missing(self, member: str) -> bool:
        """Whether it is an account that a project here should have and has not."""
        email = member.removeprefix("serviceAccount:")
        domain = email.rpartition("@")[2].removesuffix(".iam.gserviceaccount.com")
        return email != member and domain in self._accounts.projects and email not in self.by_email


class ServiceAccountApi:
    """The handlers."""

    def __init__(self, api: Api, accounts: Accounts, service_accounts: ServiceAccounts) -> None:
        self._api, self._accounts, self._all = api, accounts, service_accounts

    def routes(self) -> list[web.RouteDef]:
        api, parent = self._api, "/iam/v1/projects/{project:[^/:]+}/serviceAccounts"
        return [
            web.post(parent, api.handler("serviceAccounts.create", self._create)),
            web.get(parent, api.handler("serviceAccounts.list", self._list, query="pageSize pageToken")),
            web.get(ACCOUNT_PATH, api.handler("serviceAccounts.get", self._get)),
        ]

    async def _create(self, request: web.Request) -> object:
        project = self._accounts.payee(request.match_info["project"], "iam.serviceAccounts.create")
        given = jsonfront.read(await request.text(), _CREATE)
        account = given.get("accountId", "")
        if not _ID.fullmatch(account):
            raise GoogleError(400, "The account ID of a service account is 6 to 30 of a-z, 0-9 and -.")
        if f"{account}@{project.id}.iam.gserviceaccount.com" in self._all.by_email:
            words = f"Service account {account} already exists within project projects/{project.id}."
            raise GoogleError(409, words, status="ALREADY_EXISTS")
        return self._all.add(project, account, given.get("serviceAccount", {}))

    async def _list(self, request: web.Request) -> object:
        project = self._accounts.payee(request.match_info["project"], "iam.serviceAccounts.list")
        size = jsonfront.whole_number(request.query.get("pageSize", "20"), "pageSize")
        mine = [account for account in self._all.by_email.values() if account["projectId"] == project.id]
        found = page.cut(mine, size, request.query.get("pageToken", ""), most=_MOST)
        return ({"accounts": found.items} if found.items else {}) | found.next

    async def _get(self, request: web.Request) -> object:
        self._accounts.require("iam.serviceAccounts.get")
        return self._known(request)

    async def resource(self, request: web.Request) -> str:
        """The name of the account that a request names.

        Raises:
            GoogleError: 403 or 404.
        """
        return str(self._known(request)["name"])

    def _known(self, request: web.Request) -> dict[str, Any]:
        if request.match_info["project"] != "-":
            self._accounts.payee(request.match_info["project"])
        if request.match_info["email"] not in self._all.by_email:
            raise GoogleError(404, "Unknown service account")
        return self._all.by_email[request.match_info["email"]]
