"""What a control endpoint is given: checked as strictly as a request, so that a typing error is no silent success."""

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from scripts.local.standins import jsonfront
from scripts.local.standins.google import GoogleError
from scripts.local.standins.jsonfront import Kind, Message


async def take(request: web.Request, required: Mapping[str, Kind], optional: Mapping[str, Kind]) -> dict[str, Any]:
    """Its fields; those with a default value may be left out of the result.

    Raises:
        GoogleError: 400, naming the field.
    """
    text = await request.text()
    given = jsonfront.read(text, Message({**required, **optional}))
    raw = {jsonfront.camel(name) for name in await request.json()} if text else set()
    for name in required:
        if name not in raw:
            raise bad(name, "is required")
    return given


def bad(name: str, words: str) -> GoogleError:
    return GoogleError(400, f"{name} {words}")
