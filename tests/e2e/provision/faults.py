"""Ways for a run of provisioning to go wrong: it dies at a request, a reply is lost, the service drops a field."""

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from google.auth.credentials import Credentials
from google.oauth2.service_account import Credentials as AccountCredentials

from scripts.local.layout import HOST, PROJECT
from scripts.provision.hosts import Hosts
from scripts.provision.login import login
from scripts.provision.session import Login

_READS = (":getIamPolicy", ":testIamPermissions")
type Json = dict[str, Any]


class Crash(BaseException):
    """The process dies here: no handler of the code under test runs."""


@dataclass(slots=True)
class Fate:
    """When a run dies: before the request of this number, or at the next one once it is dead."""

    dies_before: int | None = None
    dead: bool = False
    seen: int = 0

    def meet(self) -> None:
        self.seen += 1
        if self.dead or self.seen == self.dies_before:
            raise Crash


@cache
def known(standins: str) -> Credentials:
    """The local account's credentials: reading its key takes longer than a whole run does."""
    return login(Hosts(standins=standins), PROJECT)


def doomed(account: Credentials, fate: Fate) -> Login:
    """The same credentials, which every request of every client passes before it is sent."""

    class Doomed(AccountCredentials):
        def before_request(self, request: Any, method: str, url: str, headers: dict[str, str]) -> None:
            fate.meet()
            super().before_request(request, method, url, headers)  # type: ignore[no-untyped-call]  # as it ships

    of: Any = account
    credentials: Credentials = Doomed(  # type: ignore[no-untyped-call]  # as it ships
        of.signer, of.service_account_email, of._token_uri, scopes=of.scopes, project_id=PROJECT
    )
    return lambda _where, _project: credentials


class Relay:
    """An HTTP proxy in front of the stand-ins.

    Attributes:
        seen: every request that was forwarded, as `METHOD /path`.
        loses: the number of the request whose reply is lost, though it was carried out.
        shows: what a read of a budget shows in place of it.
        drops: a field that is taken out of every created budget on its way, as a service that does not know it would.
        on_loss: done once a reply is lost.
    """

    def __init__(
        self, target: str, *, loses: int, drops: str, shows: Callable[[Json], Json], on_loss: Callable[[], object]
    ) -> None:
        self.seen: list[str] = []
        self._target, self._loses, self._on_loss = urlsplit(target), loses, on_loss
        self._drops, self._shows = drops, shows
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer((HOST, 0), _handler(self))

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._server.server_address[1]}"

    @property
    def changing(self) -> list[int]:
        """The numbers of the requests that change something."""
        return [
            number
            for number, request in enumerate(self.seen, 1)
            if not request.startswith("GET ") and not request.endswith(_READS)
        ]

    def serve(self) -> None:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def forward(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes] | None:
        """Status and body of the answer; None for one that is lost."""
        kept = {name: value for name, value in headers.items() if name.lower() not in ("content-length", "connection")}
        if self._drops and method == "POST" and path.partition("?")[0].endswith("/budgets"):
            body = json.dumps({name: value for name, value in json.loads(body).items() if name != self._drops}).encode()
        connection = http.client.HTTPConnection(self._target.hostname or HOST, self._target.port, timeout=20)
        connection.request(method, path, body, kept)
        answer = connection.getresponse()
        found = answer.status, self._shown(method, path, answer.read())
        connection.close()
        return None if self._is_lost(method, path) else found

    def _shown(self, method: str, path: str, answer: bytes) -> bytes:
        is_budget = method == "GET" and "/budgets/" in path and "etag" in json.loads(answer)
        return json.dumps(self._shows(json.loads(answer))).encode() if is_budget else answer

    def _is_lost(self, method: str, path: str) -> bool:
        if path == "/token":
            return False
        with self._lock:
            self.seen.append(f"{method} {path}")
            lost = len(self.seen) == self._loses
        if lost:
            self._on_loss()
        return lost


def _handler(relay: Relay) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = relay.forward(self.command, self.path, dict(self.headers), body)
            self.close_connection = True
            if answer is None:
                return
            self.send_response(answer[0])
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer[1])))
            self.end_headers()
            self.wfile.write(answer[1])

        do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _serve  # noqa: N815  # as the base class calls them

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


@contextmanager
def relaying(
    target: str,
    *,
    loses: int = 0,
    drops: str = "",
    shows: Callable[[Json], Json] = lambda budget: budget,
    on_loss: Callable[[], object] = lambda: None,
) -> Iterator[Relay]:
    """A relay, until the end of the block; it loses and drops nothing by default."""
    relay = Relay(target, loses=loses, drops=drops, shows=shows, on_loss=on_loss)
    relay.serve()
    try:
        yield relay
    finally:
        relay.stop()
