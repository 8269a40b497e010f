"""How tests and the demo steer the stand-ins: scripts in, logs out."""

from collections.abc import Callable, Mapping, Sequence

from aiohttp import web

from scripts.local.standins.google import GoogleError
from scripts.local.standins.script import BadScript, Script


class Control:
    """The handlers, over the script of each service; `resets` forget what else is to be forgotten."""

    def __init__(self, scripts: Mapping[str, Script], resets: Sequence[Callable[[], None]] = ()) -> None:
        self._scripts = scripts
        self._resets = (*resets, *(script.reset for script in scripts.values()))

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/_health", self._health),
            web.post("/_script/{service}", self._script),
            web.get("/_log/{service}", self._log),
            web.post("/_reset", self._reset),
        ]

    async def _health(self, _request: web.Request) -> web.StreamResponse:
        return web.json_response({"services": sorted(self._scripts)})

    async def _script(self, request: web.Request) -> web.StreamResponse:
        script = self._service(request)
        try:
            script.extend(await request.json())
        except BadScript as error:
            raise GoogleError(400, str(error)) from None
        return web.json_response({"queued": len(script.replies)})

    async def _log(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self._service(request).log)

    async def _reset(self, _request: web.Request) -> web.StreamResponse:
        for reset in self._resets:
            reset()
        return web.json_response({})

    def _service(self, request: web.Request) -> Script:
        name = request.match_info["service"]
        if name not in self._scripts:
            raise GoogleError(404, f"no stand-in is called {name!r}; there are {', '.join(sorted(self._scripts))}")
        return self._scripts[name]
