"""Everything that one deployed function says to the outside, as seen at the wire, by the layer that it belongs to."""

import http.server
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import grpc

from scripts.local import wire
from scripts.local.layout import HOST
from scripts.local.stack import Stack
from tests.fault_proxy import FaultProxy

# By the first document or collection that a Firestore request names.
_STORES = re.compile(rb"/documents/(ops/switch|request_buckets|pool|token_buckets|graphs)\b")
_NAMES = {
    "ops/switch": "switch",
    "request_buckets": "rate",
    "pool": "pool",
    "token_buckets": "bucket",
    "graphs": "graph",
}


class Tapped(FaultProxy):
    """Notes to which layer each Firestore request belongs."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.seen: list[str] = []

    def serve(self, method: str, request: bytes, context: grpc.ServicerContext) -> list[bytes]:
        found = _STORES.search(request)
        self.seen.append(_NAMES[found[1].decode()] if found else f"Firestore: {method}")
        return super().serve(method, request, context)


class _Ears(http.server.BaseHTTPRequestHandler):
    """Hears who is asked for; answers that it cannot be reached."""

    heard: list[str]

    def do_CONNECT(self) -> None:
        self.heard.append(self.path)
        self.send_error(502)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's
        pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tap:
    """What is heard of one function; `env` makes it speak through here."""

    stack: Stack
    firestore: Tapped
    outside: list[str]
    env: dict[str, str] = field(default_factory=dict)

    def heard(self) -> set[str]:
        """The layers whose calls were seen since the last time, and what went to the world outside."""
        firestore, self.firestore.seen[:] = set(self.firestore.seen), []
        outside, self.outside[:] = {"certificates" for _ in self.outside}, []
        calls = firestore | outside
        for service in ("appcheck", "gemini"):
            methods = {entry["method"] for entry in wire.call("GET", f"{self.stack.standins_url}/_log/{service}").json}
            calls |= {f"{service}: {method}" for method in methods}
        assert wire.call("POST", f"{self.stack.standins_url}/_reset").status == 200
        return calls


@contextmanager
def tapping(stack: Stack) -> Iterator[Tap]:
    """A tap on Firestore, on the stand-ins, and on everything that would leave this machine."""
    outside: list[str] = []
    handler = type("Ears", (_Ears,), {"heard": outside})
    server = http.server.ThreadingHTTPServer((HOST, 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with Tapped(stack.firestore_host).running() as firestore:
            env = {
                "FIRESTORE_EMULATOR_HOST": firestore.address,
                "HTTPS_PROXY": f"http://{HOST}:{server.server_port}",
                "NO_PROXY": f"{HOST},localhost",
            }
            tap = Tap(stack=stack, firestore=firestore, outside=outside, env=env)
            tap.heard()
            yield tap
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def knocking() -> Iterator[tuple[str, Callable[[], int]]]:
    """An address at which nobody answers, and how often somebody has tried it."""
    knocks = 0

    def listen() -> None:
        nonlocal knocks
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                knocks += 1
                connection.close()

    with socket.create_server((HOST, 0)) as server:
        threading.Thread(target=listen, daemon=True).start()
        yield f"{HOST}:{server.getsockname()[1]}", lambda: knocks
