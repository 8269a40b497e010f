"""What the stand-ins for REST APIs share: each request is logged, authorised, scripted and answered in JSON."""

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from aiohttp import web

from scripts.local.standins import deliver, jsonfront
from scripts.local.standins.google import GoogleError
from scripts.local.standins.oauth import Issuer
from scripts.local.standins.script import Script

Act = Callable[[web.Request], Awaitable[object]]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Switchboard(Protocol):
    """Knows which APIs are enabled."""

    def require(self, service: str) -> None:
        """Raises GoogleError, 403."""


class Api:
    """One API of Google, by the name under which it is enabled; `script` may be shared."""

    def __init__(self, service: str, *, issuer: Issuer, script: Script, switchboard: Switchboard) -> None:
        self._service, self._issuer, self._script, self._switchboard = service, issuer, script, switchboard

    def handler(self, method: str, act: Act, *, query: str | None = "") -> Handler:
        """A handler that answers what `act` gives.

        Args:
            method: its name in the log and in scripts.
            act: gives what becomes the JSON body.
            query: the parameters it takes, parted by spaces; None for any.
        """

        async def handle(request: web.Request) -> web.StreamResponse:
            entry = self._script.enter(
                method=method, path=request.path, query=dict(request.query), body=await _body(request)
            )
            request[deliver.ENTRY] = entry
            try:
                self._admit(request, query)
                reply = self._script.next_for(method)
                if refused := await deliver.scripted_error(request, reply):
                    return refused
                return await deliver.whole(request, reply, await act(request))
            except GoogleError as error:
                entry["refused"] = getattr(error, "rule", str(error))
                raise

        return handle

    def _admit(self, request: web.Request, query: str | None) -> None:
        self._issuer.require_bearer(request)
        self._switchboard.require(self._service)
        if query is not None:
            jsonfront.check_query(request.query, query.split())


async def _body(request: web.Request) -> object:
    """As JSON if it is that; None if there is none."""
    text = await request.text()
    with suppress(ValueError):
        return json.loads(text) if text else None
    return text
