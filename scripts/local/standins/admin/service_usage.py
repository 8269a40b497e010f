"""The Service Usage API v1, under `/serviceusage`: which APIs of a project are enabled."""

import uuid
from typing import Any

from aiohttp import web

from scripts.local.standins import jsonfront, page
from scripts.local.standins.api import Api
from scripts.local.standins.appcheck import PROJECT_NUMBER
from scripts.local.standins.billing.accounts import Accounts, not_found
from scripts.local.standins.google import GoogleError
from scripts.local.standins.jsonfront import STRING, Message, Repeated

SERVICES = frozenset(
    f"{name}.googleapis.com"
    for name in (
        "apikeys artifactregistry billingbudgets cloudbilling cloudbuild cloudfunctions cloudresourcemanager "
        "eventarc firebase firebaseappcheck firebaseextensions firestore generativelanguage iam identitytoolkit "
        "logging monitoring pubsub run secretmanager serviceusage aiplatform"
    ).split()
)
_BATCH = Message({"serviceIds": Repeated(STRING)})
_MOST, _MOST_AT_ONCE = 200, 20
_FILTERS = {"": {"ENABLED", "DISABLED"}, "state:ENABLED": {"ENABLED"}, "state:DISABLED": {"DISABLED"}}
_TYPE = "type.googleapis.com/google.api.serviceusage.v1.BatchEnableServicesResponse"


class Enabled:
    """The names of the enabled APIs, one set for all projects."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.names = set(SERVICES)

    def require(self, service: str) -> None:
        """Raises GoogleError, 403."""
        if service not in self.names:
            consumer = f"projects/{PROJECT_NUMBER}"
            info = {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "SERVICE_DISABLED",
                "domain": "googleapis.com",
                "metadata": {"service": service, "consumer": consumer},
            }
            raise GoogleError(
                403,
                f"{service} has not been used in project {PROJECT_NUMBER} before or it is disabled. "
                "Enable it and retry. If you enabled this API recently, "
                "wait a few minutes for the action to propagate to our systems.",
                [info],
            )


class ServiceUsage:
    """The handlers; an operation is done when it is first looked at."""

    def __init__(self, api: Api, accounts: Accounts, enabled: Enabled) -> None:
        self._api, self._accounts, self._enabled = api, accounts, enabled
        self._operations: dict[str, dict[str, Any]] = {}

    def reset(self) -> None:
        self._operations.clear()

    def routes(self) -> list[web.RouteDef]:
        api, parent = self._api, "/serviceusage/v1/projects/{project:[^/:]+}/services"
        operation = "/serviceusage/v1/operations/{operation}"
        return [
            web.get(parent, api.handler("services.list", self._list, query="filter pageSize pageToken")),
            web.get(parent + "/{service:[^/:]+}", api.handler("services.get", self._get)),
            web.post(f"{parent}:batchEnable", api.handler("services.batchEnable", self._enable)),
            web.get(operation, api.handler("operations.get", self._operation)),
        ]

    async def _list(self, request: web.Request) -> object:
        project = self._accounts.payee(request.match_info["project"], "serviceusage.services.list")
        if request.query.get("filter", "") not in _FILTERS:
            raise GoogleError(400, "Request contains an invalid argument.")
        states = _FILTERS[request.query.get("filter", "")]
        names = sorted(SERVICES | self._enabled.names)
        shown = [one for name in names if (one := self._shown(project.number, name))["state"] in states]
        size = jsonfront.whole_number(request.query.get("pageSize", "50"), "pageSize")
        found = page.cut(shown, size, request.query.get("pageToken", ""), most=_MOST)
        return ({"services": found.items} if found.items else {}) | found.next

    async def _get(self, request: web.Request) -> object:
        project = self._accounts.payee(request.match_info["project"], "serviceusage.services.get")
        return self._shown(project.number, request.match_info["service"])

    async def _enable(self, request: web.Request) -> object:
        project = self._accounts.payee(request.match_info["project"], "serviceusage.services.enable")
        wanted = jsonfront.read(await request.text(), _BATCH).get("serviceIds", [])
        if not 1 <= len(wanted) <= _MOST_AT_ONCE:
            raise GoogleError(400, "Request contains an invalid argument.")
        if unknown := [name for name in wanted if name not in SERVICES]:
            raise GoogleError(403, f"Not found or permission denied for service(s): {', '.join(unknown)}.")
        if self._enabled.names.issuperset(wanted):
            return {"name": "operations/noop.DONE_OPERATION", "done": True}
        self._enabled.names.update(wanted)
        shown = [self._shown(project.number, name) for name in wanted]
        name = f"acf.p2-{project.number}-{uuid.uuid4()}"
        self._operations[name] = {"@type": _TYPE, "services": shown}
        return {"name": f"operations/{name}"}

    async def _operation(self, request: web.Request) -> object:
        name = request.match_info["operation"]
        if name not in self._operations:
            raise not_found()
        return {"name": f"operations/{name}", "done": True, "response": self._operations[name]}

    def _shown(self, number: str, service: str) -> dict[str, Any]:
        return {
            "name": f"projects/{number}/services/{service}",
            "config": {"name": service},
            "state": "ENABLED" if service in self._enabled.names else "DISABLED",
            "parent": f"projects/{number}",
        }
