"""The IAM methods of the resources that have a policy: get, set and test, under each API's own prefix."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from scripts.local.standins import jsonfront
from scripts.local.standins.admin import iam
from scripts.local.standins.admin.iam import Policies
from scripts.local.standins.api import Api
from scripts.local.standins.billing.accounts import Accounts

Resource = Callable[[web.Request], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of resource that has a policy.

    Attributes:
        path: of the resource, with the prefix of its API.
        permission: what comes before `.getIamPolicy` and `.setIamPolicy`.
        resource: the name under which the policy is kept; raises GoogleError if there is no such resource.
        reads_by: the verb of getIamPolicy.
    """

    path: str
    permission: str
    resource: Resource
    reads_by: str


class IamApi:
    """The handlers of one kind of resource."""

    def __init__(self, api: Api, kind: Kind, accounts: Accounts, policies: Policies) -> None:
        self._api, self._kind, self._accounts, self._policies = api, kind, accounts, policies

    def routes(self) -> list[web.RouteDef]:
        api, path, name = self._api, self._kind.path, self._kind.permission.rpartition(".")[2]
        read = api.handler(f"{name}.getIamPolicy", self._get, query="options.requestedPolicyVersion")
        return [
            web.route(self._kind.reads_by, f"{path}:getIamPolicy", read),
            web.post(f"{path}:setIamPolicy", api.handler(f"{name}.setIamPolicy", self._set)),
            web.post(f"{path}:testIamPermissions", api.handler(f"{name}.testIamPermissions", self._test)),
        ]

    async def _get(self, request: web.Request) -> object:
        self._accounts.require(f"{self._kind.permission}.getIamPolicy")
        jsonfront.read(await request.text(), iam.GET)
        return self._policies.get(await self._kind.resource(request))

    async def _set(self, request: web.Request) -> object:
        self._accounts.require(f"{self._kind.permission}.setIamPolicy")
        given = jsonfront.read(await request.text(), iam.SET)
        return self._policies.set(await self._kind.resource(request), given.get("policy", {}))

    async def _test(self, request: web.Request) -> object:
        await self._kind.resource(request)
        asked = jsonfront.read(await request.text(), iam.TEST).get("permissions", [])
        allowed = self._accounts.allowed(asked)
        return {"permissions": allowed} if allowed else {}
