"""The Pub/Sub API v1, under `/pubsub`: topics are passed to the emulator, and have the IAM policies that it lacks."""

import json

from aiohttp import web

from scripts.local.standins.admin.iam import Policies
from scripts.local.standins.admin.pubsub_topics import Topics
from scripts.local.standins.api import Api
from scripts.local.standins.google import GoogleError

TOPIC_PATH = "/pubsub/v1/projects/{project:[^/:]+}/topics/{topic:[^/:]+}"


class PubsubApi:
    """The handlers; `routes` come after those of IAM, since they take every path."""

    def __init__(self, api: Api, topics: Topics, policies: Policies) -> None:
        self._api, self._topics, self._policies = api, topics, policies

    def routes(self) -> list[web.RouteDef]:
        return [web.route("*", "/pubsub/v1/{path:.+}", self._api.handler("pubsub", self._pass, query=None))]

    async def resource(self, request: web.Request) -> str:
        """The topic that a request names.

        Raises:
            GoogleError: 404.
        """
        name = "projects/{project}/topics/{topic}".format(**request.match_info)
        if not await self._topics.exists(name):
            raise GoogleError(404, f"Resource not found (resource={request.match_info['topic']}).")
        return name

    async def _pass(self, request: web.Request) -> object:
        path, body = request.match_info["path"], await request.json() if await request.text() else None
        if request.method == "GET" and path in self._topics.registered:
            return {"name": path}
        query = {name: value for name, value in request.query.items() if not name.startswith("$")}
        status, answer = await self._topics.ask(request.method, path, body, query)
        found = json.loads(answer or b"{}")
        if status != 200:
            error = found.get("error", {})
            raise GoogleError(status, error.get("message", "The Pub/Sub emulator is away."), status=error.get("status"))
        if request.method == "DELETE":
            self._policies.forget(path)
        return found
