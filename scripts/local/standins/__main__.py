"""Runs the stand-ins: `python -m scripts.local.standins`, on this machine only."""

import argparse
import asyncio
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from aiohttp import web

from scripts.local import processes
from scripts.local.layout import HOST, Layout
from scripts.local.standins.appcheck import AppCheck
from scripts.local.standins.cloud import Cloud
from scripts.local.standins.control import Control
from scripts.local.standins.deliver import recorded
from scripts.local.standins.gemini import Gemini
from scripts.local.standins.oauth import Issuer

_MAX_BODY_BYTES = 64 * 2**20


def app(pubsub_host: str) -> web.Application:
    """All stand-ins in one application; the Pub/Sub emulator at `pubsub_host` may come later, or never."""
    issuer = Issuer()
    appcheck, gemini, cloud = AppCheck(issuer), Gemini(issuer), Cloud(issuer, pubsub_host)
    scripts = {"appcheck": appcheck.script, "gemini": gemini.script, **cloud.scripts}
    control = Control(scripts, [cloud.reset])
    application = web.Application(middlewares=[recorded], client_max_size=_MAX_BODY_BYTES)
    for part in (issuer, appcheck, gemini, cloud, control):
        application.add_routes(part.routes())
    return application


async def _serve(port: int, pubsub_host: str) -> None:
    # Cancelling the handler of a client that left is how the log learns of it.
    runner = web.AppRunner(app(pubsub_host), handler_cancellation=True, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, HOST, port).start()
    print(f"stand-ins on http://{HOST}:{port}", flush=True)
    await asyncio.Event().wait()


def _guard(end: Callable[[], object]) -> None:
    """Once stdin closes, the owner of the stack is gone: end what it left, this process last."""
    while sys.stdin.buffer.read(4096):
        pass
    end()
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m scripts.local.standins", description=__doc__)
    parser.add_argument("--port", type=int, default=Layout().standins_port)
    parser.add_argument("--pubsub", default=os.environ.get("PUBSUB_EMULATOR_HOST", Layout().address("pubsub")))
    parser.add_argument("--guard", action="store_true", help="when stdin closes, end the stack this process belongs to")
    arguments = parser.parse_args()
    if arguments.guard:
        root = Path(os.environ[processes.MARK])
        threading.Thread(target=_guard, args=[lambda: processes.end(root)], daemon=True).start()
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(arguments.port, arguments.pubsub))


if __name__ == "__main__":
    main()
