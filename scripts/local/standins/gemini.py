"""The Gemini API and its Vertex twin, as far as google-genai's `generate_content` and `count_tokens` go."""

import itertools
import json
from contextlib import suppress
from typing import Any

from aiohttp import web

from scripts.local.standins import deliver, gemini_reply, gemini_request, gemini_signature
from scripts.local.standins.google import GoogleError
from scripts.local.standins.oauth import Issuer
from scripts.local.standins.script import Entry, Script

MODELS = frozenset(
    f"gemini-{name}"
    for name in (
        "4-argon 4-carbon 4-hydrogen 4-neon 3.8-flash 3.7-flash 3.6-flash 3.5-flash 3.5-flash-lite 3.1-flash-lite "
        "3.1-pro-preview 2.5-pro 2.5-flash 2.5-flash-lite"
    ).split()
)
_API = "/{version:v1|v1beta|v1beta1}"
_VERTEX = _API + "/projects/{project}/locations/{location}/publishers/google"
_METHODS = ("generateContent", "streamGenerateContent", "countTokens")


class Gemini:
    """The handlers; every request is logged, the refused ones too."""

    def __init__(self, issuer: Issuer) -> None:
        self.script = Script(methods=frozenset(_METHODS[:2]))
        self._issuer = issuer
        self._numbers = itertools.count(1)

    def routes(self) -> list[web.RouteDef]:
        path = "/models/{model:[^/:]+}:{method}"
        return [web.post(_VERTEX + path, self._vertex), web.post(_API + path, self._developer)]

    async def _developer(self, request: web.Request) -> web.StreamResponse:
        entry = await self._enter(request)
        if not (request.headers.get("x-goog-api-key") or request.query.get("key")):
            raise GoogleError(
                403,
                "Method doesn't allow unregistered callers (callers without established identity). "
                "Please use API Key or other form of API consumer identity to call this API.",
            )
        return await self._answer(request, entry, vertex=False)

    async def _vertex(self, request: web.Request) -> web.StreamResponse:
        entry = await self._enter(request)
        self._issuer.require_bearer(request)
        return await self._answer(request, entry, vertex=True)

    async def _enter(self, request: web.Request) -> Entry:
        text = await request.text()
        body: object = text
        with suppress(ValueError):
            body = json.loads(text)
        asked = {name: request.match_info[name] for name in ("method", "model")}
        request[deliver.ENTRY] = entry = self.script.enter(**asked, path=request.path, body=body)
        return entry

    async def _answer(self, request: web.Request, entry: Entry, *, vertex: bool) -> web.StreamResponse:
        method, model, body = entry["method"], entry["model"], entry["body"]
        if method not in _METHODS or model not in MODELS:
            raise GoogleError(
                404,
                f"models/{model} is not found for API version {request.match_info['version']}, or is not supported for "
                f"{method}. Call ListModels to see the list of available models and their supported methods.",
            )
        counting = method == "countTokens"
        parsed = gemini_request.parse_count(body, vertex=vertex) if counting else gemini_request.parse_generate(body)
        reply = self.script.next_for(method)
        if request.match_info["version"] == "v1":
            gemini_request.refuse(body, reply.get("refuses", []))
        if refused := await deliver.scripted_error(request, reply):
            return refused
        if counting:
            return await deliver.whole(request, reply, reply.get("raw", _counted(parsed)))
        gemini_signature.verify(parsed["contents"], model)
        stream = method == "streamGenerateContent"
        common = {"modelVersion": model, "responseId": f"local-{next(self._numbers)}"}
        chunks = gemini_reply.chunks(parsed, reply, common=common, stream=stream)
        if stream:
            return await deliver.events(request, reply, chunks)
        return await deliver.whole(request, reply, next(chunks))


def _counted(request: dict[str, Any]) -> dict[str, Any]:
    total = gemini_reply.count(request)
    return {"totalTokens": total, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": total}]}
