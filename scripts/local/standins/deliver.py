"""Sends an answer as the script says: late, in pieces, or with the connection dropped on the way."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NoReturn

from aiohttp import web

from scripts.local.standins.google import GoogleError, envelope, phrase
from scripts.local.standins.script import Entry, Reply

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ENTRY = web.RequestKey("entry", dict)


class _Dropped(Exception):
    """The script dropped this connection; nothing can be sent any more."""


@web.middleware
async def recorded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn errors into Google's envelope, and note in the log which clients left early."""
    try:
        return await handler(request)
    except GoogleError as error:
        return web.json_response(error.body, status=error.code)
    except _Dropped:
        return web.Response()
    except (asyncio.CancelledError, ConnectionResetError):
        entry: Entry = request.get(ENTRY, {})
        entry["aborted"] = True
        raise


async def scripted_error(request: web.Request, reply: Reply) -> web.StreamResponse | None:
    """Wait as told; then drop the connection, or give the scripted error or junk; None if the script has none."""
    await asyncio.sleep(reply.get("delayMs", 0) / 1000)
    if reply.get("dropAfter") == "nothing":
        drop(request)
    status = reply.get("status", 200)
    if "body" in reply:
        return await _send(request, reply, reply["body"].encode(), status)
    if status != 200 or "error" in reply:
        error = {"error": reply["error"]} if "error" in reply else envelope(status, phrase(status))
        return await _send(request, reply, json.dumps(error).encode(), status)
    return None


async def whole(request: web.Request, reply: Reply, body: object) -> web.StreamResponse:
    """One JSON body."""
    return await _send(request, reply, json.dumps(body).encode(), 200)


async def _send(request: web.Request, reply: Reply, body: bytes, status: int) -> web.StreamResponse:
    if "dropAfter" not in reply:
        return web.Response(body=body, status=status, content_type="application/json")
    response = web.StreamResponse(status=status, headers={"Content-Type": "application/json; charset=UTF-8"})
    response.content_length = len(body)
    await response.prepare(request)
    sent = 0 if reply["dropAfter"] == "headers" else reply["dropAfter"]
    await response.write(body[:sent])
    _hang_up(request)
    raise _Dropped


async def events(request: web.Request, reply: Reply, chunks: Iterable[dict[str, Any]]) -> web.StreamResponse:
    """One server-sent event for each chunk."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    drop = reply.get("dropAfter")
    for number, chunk in enumerate(chunks):
        if drop in {"headers", number}:
            _hang_up(request)
            raise _Dropped
        if number:
            await asyncio.sleep(reply.get("chunkDelayMs", 0) / 1000)
        await response.write(b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n")
    if drop is not None:
        _hang_up(request)
        raise _Dropped
    await response.write_eof()
    return response


def drop(request: web.Request) -> NoReturn:
    """Reset the connection: the client learns nothing."""
    if request.transport is not None:
        request.transport.abort()
    raise _Dropped


def _hang_up(request: web.Request) -> None:
    """Close the connection after what was written, so that the client gets it, in the middle of the body."""
    if request.transport is not None:
        request.transport.close()
