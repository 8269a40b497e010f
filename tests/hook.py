"""A webhook on this machine: real HTTPS under a certificate of its own, which answers as a test wants."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from urllib3 import PoolManager

from firebreak.budgets import announce

HOST = "localhost"
SECRET = "services/T0/B0/secret"


@dataclass(slots=True)
class Hook:
    """The server: where it is, what it got, and the statuses of its next answers: 200 when there are none, and
    100 is one that goes on for ever."""

    port: int
    certificate: Path
    got: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}/{SECRET}"

    def client(self) -> PoolManager:
        """The client of the code under test, which trusts this server alone."""
        return announce.client(certificates=str(self.certificate))


@contextmanager
def hooked(folder: Path, *, host: str = HOST) -> Iterator[Hook]:
    """A webhook whose certificate is for `host`, until the end of the block."""
    key_file, certificate_file = folder / "hook.key", folder / "hook.pem"
    _certify(host, key_file, certificate_file)
    hook = Hook(port=0, certificate=certificate_file)

    ended = threading.Event()

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hook.got.append({"path": self.path, "type": self.headers["Content-Type"], "body": json.loads(body)})
            status = hook.statuses.pop(0) if hook.statuses else 200
            if status == 100:
                self._go_on(b"HTTP/1.1 100 Continue\r\n\r\n")
                return
            self.send_response(status)
            for name, value in hook.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self._go_on(b"more of a body without an end" * 1000)

        def _go_on(self, content: bytes) -> None:
            with suppress(OSError):
                while not ended.wait(0.01):
                    self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_file, key_file)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    hook.port = server.server_port
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield hook
    finally:
        ended.set()
        server.shutdown()
        server.server_close()


def _certify(host: str, key_file: Path, certificate_file: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a webhook on this machine")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
