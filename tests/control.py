"""Steers one stand-in of the local stack from a test."""

from dataclasses import dataclass
from typing import Any

import requests

TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class Control:
    """One service of the stand-ins at `url`."""

    url: str
    service: str

    @property
    def host(self) -> str:
        """host:port, as a client's setting."""
        return self.url.removeprefix("http://")

    def script(self, *replies: dict[str, Any]) -> None:
        """Queue these replies for the next requests."""
        requests.post(f"{self.url}/_script/{self.service}", json=replies, timeout=TIMEOUT_S).raise_for_status()

    def log(self) -> list[dict[str, Any]]:
        """The requests seen since the last reset, the refused ones too."""
        answer = requests.get(f"{self.url}/_log/{self.service}", timeout=TIMEOUT_S)
        answer.raise_for_status()
        seen: list[dict[str, Any]] = answer.json()
        return seen

    def reset(self) -> None:
        """Forget every service's replies and requests."""
        requests.post(f"{self.url}/_reset", timeout=TIMEOUT_S).raise_for_status()
