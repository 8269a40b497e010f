"""The Cloud Billing Budget API v1, under `/billingbudgets`.

Its restrictions are in `billing_rules`, `billing_cap_rules` and `billing_update`; a refusal is as bare as it is there,
and the log says which rule it was. The flakiness that was seen of the preview is there only when asked for.
"""

from typing import Any

from aiohttp import web

from scripts.local.standins import deliver, jsonfront
from scripts.local.standins.admin.iam import Policies
from scripts.local.standins.admin.pubsub_topics import Topics
from scripts.local.standins.api import Api
from scripts.local.standins.billing.accounts import Accounts, not_found
from scripts.local.standins.billing.budgets import Budgets
from scripts.local.standins.billing.flaky import Flaky
from scripts.local.standins.billing.message import BUDGET
from scripts.local.standins.billing.record import Record
from scripts.local.standins.billing.rules import Broken
from scripts.local.standins.google import GoogleError

PUBLISHER = ("roles/pubsub.publisher", "serviceAccount:billing-budget-alert@system.gserviceaccount.com")
_PARENT = "/billingbudgets/v1/billingAccounts/{account:[^/:]+}/budgets"
METHODS = ("create", "get", "list", "patch", "delete")


class Billing:
    """The handlers."""

    def __init__(
        self, api: Api, budgets: Budgets, accounts: Accounts, *, topics: Topics, policies: Policies, flaky: Flaky
    ) -> None:
        self._api, self._budgets, self._accounts = api, budgets, accounts
        self._topics, self._policies, self._flaky = topics, policies, flaky

    def routes(self) -> list[web.RouteDef]:
        one, api = _PARENT + "/{budget:[^/:]+}", self._api
        return [
            web.post(_PARENT, api.handler("create", self._create)),
            web.get(_PARENT, api.handler("list", self._list, query="pageSize pageToken scope")),
            web.get(one, api.handler("get", self._get)),
            web.patch(one, api.handler("patch", self._patch, query="updateMask")),
            web.delete(one, api.handler("delete", self._delete)),
        ]

    async def _create(self, request: web.Request) -> object:
        given = jsonfront.read(await request.text(), BUDGET, "budget")
        draft = self._budgets.draft(request.match_info["account"], given)
        await self.connect(draft.topic)
        answer = _written(self._budgets.put(draft).shown)
        self._lose(request, "create")
        return answer

    async def _list(self, request: web.Request) -> object:
        size = jsonfront.whole_number(request.query.get("pageSize", "0"), "pageSize")
        scope, token = request.query.get("scope", ""), request.query.get("pageToken", "")
        page = self._budgets.page(request.match_info["account"], scope, size, token)
        capless = any(record.cap for record in page.items) and self._flaky.takes("listOmitsCaps")
        shown = [self._view(record) for record in page.items if not (capless and record.cap)]
        return ({"budgets": shown} if shown else {}) | page.next

    async def _get(self, request: web.Request) -> object:
        record = self._budgets.get(_name(request))
        if record.cap and self._flaky.takes("getNotFound"):
            raise not_found()
        return self._view(record)

    async def _patch(self, request: web.Request) -> object:
        given, mask = jsonfront.read(await request.text(), BUDGET, "budget"), request.query.get("updateMask", "")
        changed = self._budgets.changed(_name(request), given, mask)
        if changed.cap and self._flaky.takes("patchNotFound"):
            raise not_found()
        if "notificationsRule" in given:
            await self.connect(changed.topic)
            changed = self._budgets.changed(_name(request), given, mask)
        answer = self._view(self._budgets.put(changed))
        self._lose(request, "patch")
        return answer

    async def _delete(self, request: web.Request) -> object:
        record = self._budgets.records.get(_name(request))
        self._budgets.delete(_name(request))
        if record and self._flaky.takes("deleteDoesNotStick"):
            self._budgets.records[record.name] = record
        self._lose(request, "delete")
        return {}

    async def connect(self, topic: str | None) -> None:
        """Let the service publish to the topic, on the caller's behalf.

        Raises:
            GoogleError: 400 or 403.
        """
        if topic is None:
            return
        self._accounts.require("pubsub.topics.setIamPolicy")
        if not await self._topics.exists(topic):
            raise Broken("the topic exists")
        self._policies.grant(topic, *PUBLISHER)

    def _view(self, record: Record) -> dict[str, Any]:
        return _written(self._budgets.view(record))

    def _lose(self, request: web.Request, method: str) -> None:
        """What was done stays done; its answer may not arrive."""
        if self._flaky.takes(f"{method}Dropped"):
            deliver.drop(request)
        if self._flaky.takes(f"{method}Unavailable"):
            raise GoogleError(503, "The service is currently unavailable.")


def _name(request: web.Request) -> str:
    return "billingAccounts/{account}/budgets/{budget}".format(**request.match_info)


def _written(shown: dict[str, Any]) -> dict[str, Any]:
    written: dict[str, Any] = jsonfront.write(shown, BUDGET)
    return written
