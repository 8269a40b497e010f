"""The Firestore channel, emulator's and real one: it goes on trying to connect, however long the outage was."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from google.api_core.exceptions import GoogleAPICallError
from google.auth.credentials import AnonymousCredentials

from firebreak.metering.client import Metered
from firebreak.metering.meter import unmetered
from firebreak.store.outcome import STORE_ERRORS

# gRPC's own back-off takes 43 s to this many, ours 7 s. A busy machine is slower at both.
ATTEMPTS = 8
PATIENCE_S = 30.0


class Refusing:
    """A server that hangs up on whoever connects, and counts them."""

    def __init__(self) -> None:
        self.attempts = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._refuse, daemon=True).start()

    def _refuse(self) -> None:
        with suppress(OSError):
            while True:
                self._listener.accept()[0].close()
                self.attempts += 1

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def refusing() -> Iterator[Refusing]:
    server = Refusing()
    yield server
    server.close()


@pytest.mark.parametrize("kind", ["emulator", "real"])
def test_an_instance_is_not_deaf_after_an_outage(
    kind: str, refusing: Refusing, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "emulator":
        monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", refusing.address)
        client = Metered(project="demo-x")
    else:
        monkeypatch.delenv("FIRESTORE_EMULATOR_HOST", raising=False)
        at = {"api_endpoint": refusing.address}
        nobody = AnonymousCredentials()  # type: ignore[no-untyped-call]  # google-auth types some of it
        client = Metered(project="my-app", credentials=nobody, client_options=at)

    end = time.monotonic() + PATIENCE_S
    while refusing.attempts < ATTEMPTS and time.monotonic() < end:
        with unmetered("asks a server that is none"), suppress(*STORE_ERRORS, GoogleAPICallError):
            client.document("a", "b").get(retry=None, timeout=0.2)
        time.sleep(0.05)

    assert refusing.attempts >= ATTEMPTS
