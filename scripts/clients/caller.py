"""One client of the backend: the official Firebase JS SDK in a Node process, steered and read from Python."""

import json
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from scripts.local.layout import REGION
from scripts.local.stack import Stack

SCRIPT = Path(__file__).with_suffix(".mjs")
APP_ID = "1:123456789012:web:f12eb12ea4f12eb12ea4f1"

type Json = Any
"""Whatever JSON holds; the callers' events are read with checks where it matters."""

type Event = Mapping[str, Json]
"""One line of the caller: `event`, `at` (epoch ms), and the fields that caller.mjs gives it."""


class CallerFailed(Exception):
    """The client process broke, as opposed to being refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Who calls, and how.

    Args:
        attest: what it shows for App Check: a token minted with these claims, this very string, or nothing.
        data: the `data` of its calls, taken in turn.
        sign_in: as a new user with an address and a password, as an anonymous one, or not at all.
        functions: the callables that it calls, taken in turn.
        calls: how many; None calls until told to stop.
        open_together: every worker calls once before any calls twice.
        request_ids: adds a fresh `requestId` to data that has none.
        patient: waits and sends the same `requestId` again where a refusal says that this is safe.
    """

    backend: Stack
    data: Sequence[Json]
    attest: Mapping[str, Json] | str | None = field(default_factory=dict)
    sign_in: Literal["email", "anonymous"] | None = "email"
    functions: Sequence[str] = ("generate",)
    calls: int | None = 1
    workers: int = 1
    open_together: bool = False
    pause_ms: int = 0
    timeout_ms: int = 70_000
    limited_use: bool = False
    request_ids: bool = True
    patient: bool = True

    def as_json(self) -> dict[str, Json]:
        """The config that `caller.mjs` reads."""
        return {
            "project": self.backend.project,
            "appId": APP_ID,
            "region": REGION,
            "emulator": self.backend.functions_url,
            "auth": f"http://{self.backend.auth_host}",
            "attest": self._attest(),
            "signIn": self.sign_in,
            "functions": list(self.functions),
            "data": list(self.data),
            "calls": self.calls,
            "workers": self.workers,
            "openTogether": self.open_together,
            "pauseMs": self.pause_ms,
            "timeoutMs": self.timeout_ms,
            "limitedUse": self.limited_use,
            "requestIds": self.request_ids,
            "patient": self.patient,
        }

    def _attest(self) -> dict[str, Json] | None:
        if self.attest is None:
            return None
        if isinstance(self.attest, str):
            return {"token": self.attest}
        return {"mint": f"{self.backend.standins_url}/appcheck/mint", "claims": dict(self.attest)}


class Caller:
    """A running client. Its events arrive in `events`, in order, from a thread of its own."""

    def __init__(self, client: Client, on_event: Callable[[Event], None] | None = None) -> None:
        self.events: list[Event] = []
        self._on_event = on_event
        self._process = subprocess.Popen(
            ["node", str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._stderr: list[str] = []
        self._threads = [threading.Thread(target=reads, daemon=True) for reads in (self._read, self._drain)]
        for thread in self._threads:
            thread.start()
        self._send(json.dumps(client.as_json()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """Ends the loops after the calls in hand."""
        self._send("stop")

    def wait(self, timeout_s: float) -> list[Event]:
        """All events, once the client has ended by itself. Raises CallerFailed if it broke or took too long."""
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise CallerFailed(f"a client was still calling after {timeout_s:.0f} s") from error
        for thread in self._threads:
            thread.join()
        if status != 0:
            raise CallerFailed(self._reason(status))
        return self.events

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # It has ended; wait() tells how.

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line)
            self.events.append(event)
            if self._on_event:
                self._on_event(event)

    def _drain(self) -> None:
        assert self._process.stderr is not None
        self._stderr.extend(self._process.stderr)

    def _reason(self, status: int) -> str:
        told = [str(event["message"]) for event in self.events if event["event"] == "failed"]
        said = told[0] if told else "".join(self._stderr).strip()
        return f"a client ended with status {status}: {said or 'it said nothing'}"


def call(client: Client, timeout_s: float = 120) -> list[Event]:
    """Runs a client to its end and returns its events."""
    with Caller(client) as caller:
        return caller.wait(timeout_s)


def of_kind(events: Sequence[Event], kind: str) -> list[Event]:
    return [event for event in events if event["event"] == kind]
