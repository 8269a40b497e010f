"""How tests and the demo set what a project holds: `POST /_admin/state`, each field in place of what was there.

`{enabled?: [API], secrets?: [name], apiKeys?: [key as the API shows it], appCheck?: {service: mode},
services?: [location/name of a service of Cloud Run]}`
"""

from aiohttp import web

from scripts.local.standins.admin.project_api import Contents
from scripts.local.standins.admin.service_usage import SERVICES, Enabled
from scripts.local.standins.control_input import bad, take
from scripts.local.standins.jsonfront import ANY, STRING, Map, Repeated

_MODES = frozenset({"OFF", "UNENFORCED", "ENFORCED"})


class AdminControl:
    """The handler."""

    def __init__(self, enabled: Enabled, contents: Contents) -> None:
        self._enabled, self._contents = enabled, contents

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/_admin/state", self._set)]

    async def _set(self, request: web.Request) -> web.StreamResponse:
        lists = {name: Repeated(STRING) for name in ("enabled", "secrets", "services")}
        given = await take(request, {}, {**lists, "apiKeys": Repeated(ANY), "appCheck": Map(STRING)})
        if unknown := set(given.get("enabled", [])) - SERVICES:
            raise bad("enabled", f"has unknown APIs: {', '.join(sorted(unknown))}")
        if not _MODES.issuperset(given.get("appCheck", {}).values()):
            raise bad("appCheck", f"has a mode that is none of {', '.join(sorted(_MODES))}")
        if any(not isinstance(key, dict) for key in given.get("apiKeys", [])):
            raise bad("apiKeys", "are objects")
        named = await request.json()
        if "enabled" in named:
            self._enabled.names = set(given.get("enabled", []))
        if "secrets" in named:
            self._contents.secrets = set(given.get("secrets", []))
        if "services" in named:
            self._contents.services = set(given.get("services", []))
        if "apiKeys" in named:
            self._contents.api_keys = given.get("apiKeys", [])
        if "appCheck" in named:
            self._contents.app_check = given.get("appCheck", {})
        return web.json_response({})
