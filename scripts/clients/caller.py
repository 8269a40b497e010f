"""One client of the backend: the official Firebase JS SDK in Node or in a browser, steered and read from Python."""

import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from scripts.clients.client import Client, Json

SCRIPTS = Path(__file__).parent
END_S = 10.0

type Event = Mapping[str, Json]
"""One line of the caller: `event`, `at` (epoch ms), and the fields that calls.mjs gives it."""


class CallerFailed(Exception):
    """The client process broke, as opposed to being refused."""


class Caller:
    """A running client. Its events arrive in `events`, in order, from a thread of its own."""

    def __init__(self, client: Client) -> None:
        self.events: list[Event] = []
        self._process = subprocess.Popen(
            ["node", str(SCRIPTS / ("browser.mjs" if client.browser else "caller.mjs"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        self._stderr: list[str] = []
        self._threads = [threading.Thread(target=reads, daemon=True) for reads in (self._read, self._drain)]
        for thread in self._threads:
            thread.start()
        self._send(json.dumps(client.as_json()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Not SIGKILL: it closes its browser first.
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
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
            self.events.append(json.loads(line))

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
