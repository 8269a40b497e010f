"""What else is looked up in a project: itself, its secrets, services, API keys and its App Check enforcement."""

import uuid
from typing import Any

from aiohttp import web

from scripts.local.layout import PROJECT
from scripts.local.standins import jsonfront, page
from scripts.local.standins.api import Api
from scripts.local.standins.billing.accounts import Accounts
from scripts.local.standins.google import GoogleError

PROJECT_PATH = "/cloudresourcemanager/v1/projects/{project:[^/:]+}"
SECRET_PATH = "/secretmanager/v1/projects/{project:[^/:]+}/secrets/{secret:[^/:]+}"  # noqa: S105  # a path
_KEYS_PATH = "/apikeys/v2/projects/{project:[^/:]+}/locations/global/keys"
_APP_CHECK_PATH = "/firebaseappcheck/v1/projects/{project:[^/:]+}/services"
SERVICE_PATH = "/run/v2/projects/{project:[^/:]+}/locations/{location:[^/:]+}/services/{service:[^/:]+}"
_PAGED = "pageSize pageToken"


class Contents:
    """The same for each project.

    Attributes:
        secrets: names of secrets.
        api_keys: as the API shows a key: `displayName`, `restrictions`, ...
        app_check: mode of enforcement by service; one that was never set is not here.
        services: of Cloud Run, as `location/name`; those of the functions that are deployed.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.secrets = {"GEMINI_API_KEY"}
        self.api_keys: list[dict[str, Any]] = []
        self.app_check: dict[str, str] = {}
        self.services = {"us-central1/on-budget-alert"}


class ProjectApi:
    """The handlers, over one API each."""

    def __init__(
        self, accounts: Accounts, contents: Contents, *, manager: Api, secrets: Api, keys: Api, app_check: Api
    ) -> None:
        self._accounts, self._contents = accounts, contents
        self._manager, self._secrets, self._keys, self._app_check = manager, secrets, keys, app_check

    def routes(self) -> list[web.RouteDef]:
        keys = self._keys.handler("keys.list", self._list_keys, query=f"{_PAGED} showDeleted")
        return [
            web.get(PROJECT_PATH, self._manager.handler("projects.get", self._get_project)),
            web.get(SECRET_PATH, self._secrets.handler("secrets.get", self._get_secret)),
            web.get(_KEYS_PATH, keys),
            web.get(_APP_CHECK_PATH, self._app_check.handler("services.list", self._list_services, query=_PAGED)),
        ]

    async def project(self, request: web.Request) -> str:
        """Raises GoogleError, 403."""
        return f"projects/{self._accounts.payee(request.match_info['project']).id}"

    async def secret(self, request: web.Request) -> str:
        """Raises GoogleError, 403 or 404."""
        project, secret = self._accounts.payee(request.match_info["project"]), request.match_info["secret"]
        if secret not in self._contents.secrets:
            raise GoogleError(404, f"Secret [projects/{project.number}/secrets/{secret}] not found.")
        return f"projects/{project.number}/secrets/{secret}"

    async def service(self, request: web.Request) -> str:
        """Raises GoogleError, 403 or 404."""
        project = self._accounts.payee(request.match_info["project"])
        location, service = request.match_info["location"], request.match_info["service"]
        if f"{location}/{service}" not in self._contents.services:
            raise GoogleError(
                404,
                f"Resource '{service}' of kind 'SERVICE' in region '{location}' in project '{project.id}' "
                "does not exist.",
            )
        return f"projects/{project.number}/locations/{location}/services/{service}"

    async def _get_project(self, request: web.Request) -> object:
        project = self._accounts.payee(request.match_info["project"], "resourcemanager.projects.get")
        shown = {"projectNumber": project.number, "projectId": project.id, "name": project.id}
        return shown | {"lifecycleState": "ACTIVE"}

    async def _get_secret(self, request: web.Request) -> object:
        self._accounts.require("secretmanager.secrets.get")
        return {"name": await self.secret(request), "replication": {"automatic": {}}}

    async def _list_keys(self, request: web.Request) -> object:
        project = self._accounts.payee(request.match_info["project"], "apikeys.keys.list")
        parent = f"projects/{project.number}/locations/global/keys"
        return _paged(request, "keys", [_named(key, parent) for key in self._contents.api_keys])

    async def _list_services(self, request: web.Request) -> object:
        project = self._accounts.payee(request.match_info["project"], "firebaseappcheck.services.get")
        parent, modes = f"projects/{project.number}/services", self._contents.app_check.items()
        return _paged(
            request, "services", [{"name": f"{parent}/{name}", "enforcementMode": mode} for name, mode in modes]
        )


def _named(key: dict[str, Any], parent: str) -> dict[str, Any]:
    """The key string itself is in no list."""
    uid = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{PROJECT}/{key.get('displayName', '')}"))
    return {"name": f"{parent}/{uid}", "uid": uid, **key}


def _paged(request: web.Request, name: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    size = jsonfront.whole_number(request.query.get("pageSize", "0"), "pageSize")
    found = page.cut(items, size, request.query.get("pageToken", ""), most=300)
    return ({name: found.items} if found.items else {}) | found.next
