"""Pub/Sub topics: those of the emulator, seen through its REST interface."""

import base64
import json
import re
from collections.abc import Mapping

import aiohttp

from scripts.local.standins.billing.spend import Notice

TOPIC = re.compile(r"projects/[^/]+/topics/[^/]+")
_TIMEOUT = aiohttp.ClientTimeout(total=10)


class Topics:
    """The emulator's, at `host`, and those that are only `registered` with a stand-in."""

    def __init__(self, host: str) -> None:
        self._url = f"http://{host}/v1/"
        self.reset()

    def reset(self) -> None:
        self.registered: set[str] = set()

    async def exists(self, name: str) -> bool:
        if name in self.registered:
            return True
        return (await self.ask("GET", name))[0] == 200

    async def publish(self, notice: Notice) -> bool:
        """Whether the emulator took it."""
        data = base64.b64encode(json.dumps(notice.data).encode()).decode()
        message = {"attributes": dict(notice.attributes), "data": data}
        return (await self.ask("POST", f"{notice.topic}:publish", {"messages": [message]}))[0] == 200

    async def ask(
        self, method: str, path: str, body: object = None, query: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Status and body of the emulator's answer; 503 if there is no emulator."""
        try:
            async with (
                aiohttp.ClientSession(timeout=_TIMEOUT) as session,
                session.request(method, self._url + path, json=body, params=query) as answer,
            ):
                return answer.status, await answer.read()
        except (aiohttp.ClientError, TimeoutError):
            return 503, b"{}"
