"""A raw client of a stream: it sees every byte when it comes, and can leave or stall at any point."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from scripts.local.deployed import Deployed
from tests.e2e.conftest import Headers

type Event = dict[str, Any]


@dataclass(slots=True)
class Stream:
    """An open stream; events are read as they come."""

    connection: socket.socket
    status: int = 0
    headers: str = ""
    _pending: bytes = b""

    def events(self) -> Iterator[tuple[float, Event | None]]:
        """When each event came, and what it said; None for a heartbeat. Ends with the stream."""
        body = b""
        for chunk in self._chunks():
            now = time.monotonic()
            body += chunk
            if body == b"\n":
                yield now, None
                body = b""
            while b"\n\n" in body:
                line, body = body.split(b"\n\n", 1)
                assert line.startswith(b"data: "), line
                yield now, json.loads(line.removeprefix(b"data: "))
        assert body == b""

    def all(self) -> list[Event | None]:
        return [event for _, event in self.events()]

    def leave(self) -> None:
        """Close the connection as a client that goes away does."""
        self.connection.close()

    def _chunks(self) -> Iterator[bytes]:
        """The chunks of the transfer encoding, each as the server wrote it."""
        head = self._until(b"\r\n\r\n").decode()
        self.status, self.headers = int(head.split()[1]), head.lower()
        while size := int(self._until(b"\r\n"), 16):
            data = self._exactly(size + 2)
            yield data[:-2]

    def _until(self, end: bytes) -> bytes:
        while end not in self._pending:
            self._receive()
        found, self._pending = self._pending.split(end, 1)
        return found

    def _exactly(self, size: int) -> bytes:
        while len(self._pending) < size:
            self._receive()
        found, self._pending = self._pending[:size], self._pending[size:]
        return found

    def _receive(self) -> None:
        data = self.connection.recv(65_536)
        if not data:
            raise ConnectionError("the server hung up")
        self._pending += data


@contextmanager
def streaming(
    server: Deployed, data: object, headers: Headers, *, body: bytes | None = None, receive_buffer: int = 0
) -> Iterator[Stream]:
    """Ask for a stream."""
    at = urlsplit(server.url)
    content = json.dumps({"data": data}).encode() if body is None else body
    lines = {
        "Host": at.netloc,
        "Content-Type": "application/json",
        "Content-Length": str(len(content)),
        "Accept": "text/event-stream",
        "Origin": "https://app.example",
        **headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    with socket.socket() as connection:
        connection.settimeout(60)
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.connect((at.hostname, at.port))
        connection.sendall(f"POST / HTTP/1.1\r\n{head}\r\n".encode() + content)
        yield Stream(connection)
