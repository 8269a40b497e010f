"""Who calls the backend, and how: the config of one client."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from scripts.local.layout import REGION
from scripts.local.stack import Stack

APP_ID = "1:123456789012:web:f12eb12ea4f12eb12ea4f1"

type Json = Any
"""Whatever JSON holds."""


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
        stream: takes the answer in messages; the SDK then knows no timeout.
        responses: by the name of a function, what it answers: a result that calls one is answered, until none does.
        abort_after: leaves a stream after so many messages, by an AbortSignal.
        browser: the Chromium whose page it is; None is a Node process.
        page_port: of the page's origin; 0 is any.
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
    stream: bool = False
    responses: Mapping[str, Json] | None = None
    abort_after: int | None = None
    browser: Path | None = None
    page_port: int = 0

    def as_json(self) -> dict[str, Json]:
        """The config that `lines.mjs` reads."""
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
            "stream": self.stream,
            "responses": None if self.responses is None else dict(self.responses),
            "abortAfter": self.abort_after,
            "browser": None if self.browser is None else str(self.browser),
            "pagePort": self.page_port,
        }

    def _attest(self) -> dict[str, Json] | None:
        if self.attest is None:
            return None
        if isinstance(self.attest, str):
            return {"token": self.attest}
        return {"mint": f"{self.backend.standins_url}/appcheck/mint", "claims": dict(self.attest)}
