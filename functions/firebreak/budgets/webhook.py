"""One HTTPS request to the owner's webhook: to a public address that is resolved once, and never anywhere else."""

import json
import re
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

import certifi

from firebreak.budgets.address import is_public
from firebreak.deadline import Late, within

PORT = 443
# Of the whole exchange, and of each wait in it.
TOTAL_S = 10.0
SILENCE_S = 5.0
MOST_CHARACTERS = 2_000
NONE = ("", "none")

_URL = re.compile(r"[!-~]+")
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL})+")


class NotDelivered(Exception):
    """Nobody is known to have taken the message; `why` is for the log, and holds nothing of the URL."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Where to send: the path is a secret."""

    host: str
    target: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Net:
    """How to get there; tests have a server of their own."""

    resolve: Callable[[str], Sequence[str]]
    connect: Callable[[str], socket.socket]
    is_allowed: Callable[[str], bool]
    tls: Callable[[], ssl.SSLContext]
    total_s: float = TOTAL_S


def _resolve(host: str) -> Sequence[str]:
    found = socket.getaddrinfo(host, PORT, type=socket.SOCK_STREAM)
    # IPv4 first: not every network of a function has the other.
    return [str(address[0]) for *_, address in sorted(found, key=lambda entry: entry[0] != socket.AF_INET)]


def _connect(address: str) -> socket.socket:
    return socket.create_connection((address, PORT), timeout=SILENCE_S)


def _tls() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certifi.where())


INTERNET = Net(resolve=_resolve, connect=_connect, is_allowed=is_public, tls=_tls)


def read(url: str) -> Webhook | None:
    """The webhook of a secret's value; None if it is empty or `none`.

    Raises:
        ValueError: it is no https URL of a host by name, on port 443, without a user or fragment.
    """
    url = url.strip()
    if url in NONE:
        return None
    if not _URL.fullmatch(url) or "\\" in url or len(url) > MOST_CHARACTERS:
        raise ValueError("must hold no space and no strange character")
    try:
        parts, port = urlsplit(url), urlsplit(url).port
    except ValueError:
        raise ValueError("must be a URL") from None
    if parts.scheme != "https" or port not in {None, PORT}:
        raise ValueError("must be https, on port 443")
    if "@" in parts.netloc or parts.fragment or not _HOST.fullmatch(parts.hostname or ""):
        raise ValueError("must name a host, and no user or fragment")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Webhook(host=str(parts.hostname), target=target)


def send(webhook: Webhook, body: Mapping[str, object], *, net: Net = INTERNET) -> None:
    """Post `body` as JSON and wait for a 2xx; a redirect is not followed, and of an answer only the head is read.

    Raises:
        NotDelivered: no such answer came in time, or the address is not a public one.
    """
    connection = _Pinned(webhook.host, net)
    try:
        status = within(net.total_s, lambda: _exchange(connection, webhook.target, json.dumps(body).encode()))
    except Late as error:
        raise NotDelivered("no answer in time") from error
    except (OSError, HTTPException, UnicodeError) as error:
        raise NotDelivered(type(error).__name__) from error
    finally:
        connection.hang_up()
    if not 200 <= status < 300:
        raise NotDelivered(f"status {status}")


def _exchange(connection: HTTPSConnection, target: str, body: bytes) -> int:
    headers = {"Content-Type": "application/json", "User-Agent": "firebreak", "Connection": "close"}
    connection.request("POST", target, body, headers)
    return connection.getresponse().status


class _Pinned(HTTPSConnection):
    """A connection to the addresses that its host had when it was looked at; the certificate must be the host's."""

    def __init__(self, host: str, net: Net) -> None:
        self._net = net
        self._given_up = False
        self._tls = net.tls()
        super().__init__(host, PORT, context=self._tls)

    def connect(self) -> None:
        addresses = self._net.resolve(self.host)
        if not addresses or not all(map(self._net.is_allowed, addresses)):
            raise NotDelivered("the address is not a public one")
        self._go_on()
        plain = self._net.connect(addresses[0])
        # The handshake apart, so that it can be hung up on too.
        sock = self._tls.wrap_socket(plain, server_hostname=self.host, do_handshake_on_connect=False)
        self.sock = sock
        self._go_on()
        sock.do_handshake()
        self._go_on()

    def send(self, data: Any) -> None:  # noqa: ANN401  # as the base class has it
        self._go_on()
        super().send(data)

    def _go_on(self) -> None:
        """Stop the thread here if nobody waits for it any more: what failed must not arrive after all."""
        if self._given_up:
            self.close()
            raise NotDelivered("given up")

    def hang_up(self) -> None:
        """Close, also under a thread that still waits for an answer, or is yet to connect or send."""
        self._given_up = True
        with suppress(OSError):
            if self.sock is not None:
                self.sock.shutdown(socket.SHUT_RDWR)
        self.close()
