"""The TTL policies of the Firestore Admin API v1, under `/firestore`, which the emulator lacks."""

import uuid
from typing import Any

from aiohttp import web

from scripts.local.standins import jsonfront
from scripts.local.standins.api import Api
from scripts.local.standins.billing.accounts import Accounts, not_found
from scripts.local.standins.google import GoogleError
from scripts.local.standins.jsonfront import ANY, STRING, Enum, Message

_STATE = Enum("google.firestore.admin.v1.Field.TtlConfig.State", ("STATE_UNSPECIFIED", "CREATING", "ACTIVE"))
_FIELD = Message({"name": STRING, "indexConfig": ANY, "ttlConfig": Message({"state": _STATE})})
_DATABASE = "/firestore/v1/projects/{project:[^/:]+}/databases/{database:[^/:]+}"
_PACKAGE = "type.googleapis.com/google.firestore.admin.v1"


class FirestoreAdmin:
    """The handlers; `policies` is the state of each field with a TTL, `operations` the field of each operation."""

    def __init__(self, api: Api, accounts: Accounts) -> None:
        self._api, self._accounts = api, accounts
        self.reset()

    def reset(self) -> None:
        self.policies: dict[str, str] = {}
        self.operations: dict[str, str] = {}
        self._seen: set[str] = set()

    def routes(self) -> list[web.RouteDef]:
        api, fields = self._api, _DATABASE + "/collectionGroups/{group:[^/:]+}/fields"
        return [
            web.get(fields, api.handler("fields.list", self._list, query="filter pageSize pageToken")),
            web.get(fields + "/{field:[^/:]+}", api.handler("fields.get", self._get)),
            web.patch(fields + "/{field:[^/:]+}", api.handler("fields.patch", self._patch, query="updateMask")),
            web.get(_DATABASE + "/operations/{operation:[^/:]+}", api.handler("operations.get", self._operation)),
        ]

    async def _list(self, request: web.Request) -> object:
        self._accounts.payee(request.match_info["project"], "datastore.indexes.list")
        if request.query.get("filter") != "ttlConfig:*":
            raise GoogleError(501, "Only the fields with a TTL policy are listed here: filter=ttlConfig:*")
        group = request.match_info["group"]
        names = [name for name in self.policies if group == "-" or f"/collectionGroups/{group}/" in name]
        return {"fields": [self._shown(name) for name in names]} if names else {}

    async def _get(self, request: web.Request) -> object:
        self._accounts.payee(request.match_info["project"], "datastore.indexes.get")
        return self._shown(_name(request))

    async def _patch(self, request: web.Request) -> object:
        self._accounts.payee(request.match_info["project"], "datastore.indexes.update")
        given, name = jsonfront.read(await request.text(), _FIELD, "field"), _name(request)
        if jsonfront.camel(request.query.get("updateMask", "")) != "ttlConfig":
            raise GoogleError(501, "Only TTL policies are changed here: updateMask=ttlConfig")
        group = name.rpartition("/fields/")[0]
        if "ttlConfig" not in given:
            self.policies.pop(name, None)
        elif any(other != name and other.startswith(f"{group}/fields/") for other in self.policies):
            raise GoogleError(400, "A collection group has one TTL policy at most.", status="FAILED_PRECONDITION")
        else:
            self.policies.setdefault(name, "CREATING")
        operation = f"{name.partition('/collectionGroups/')[0]}/operations/{uuid.uuid4()}"
        self.operations[operation] = name
        return self._under_way(operation)

    async def _operation(self, request: web.Request) -> object:
        """Under way when first looked at, done from then on."""
        operation = "projects/{project}/databases/{database}/operations/{operation}".format(**request.match_info)
        if operation not in self.operations:
            raise not_found()
        if operation not in self._seen:
            self._seen.add(operation)
            return self._under_way(operation)
        name = self.operations[operation]
        if name in self.policies:
            self.policies[name] = "ACTIVE"
        answer = {"done": True, "response": {"@type": f"{_PACKAGE}.Field", **self._shown(name)}}
        return {"name": operation, **answer}

    def _under_way(self, operation: str) -> dict[str, Any]:
        metadata = {"@type": f"{_PACKAGE}.FieldOperationMetadata", "field": self.operations[operation]}
        return {"name": operation, "metadata": metadata | {"state": "PROCESSING"}}

    def _shown(self, name: str) -> dict[str, Any]:
        ancestor = f"{name.partition('/collectionGroups/')[0]}/collectionGroups/__default__/fields/*"
        index = {"usesAncestorConfig": True, "ancestorField": ancestor}
        ttl = {"ttlConfig": {"state": self.policies[name]}} if name in self.policies else {}
        return {"name": name, "indexConfig": index, **ttl}


def _name(request: web.Request) -> str:
    path = "projects/{project}/databases/{database}/collectionGroups/{group}/fields/{field}"
    return path.format(**request.match_info)
