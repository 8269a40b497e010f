"""Where everything of one local stack is: its folders, its ports, its project."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"
PROJECT = "demo-firebreak"
REGION = "us-central1"


@dataclass(frozen=True)
class Layout:
    """The tree at `root`, whose `firebase.json` fixes the ports of the emulators."""

    root: Path = ROOT
    standins_port: int = 9777
    only: tuple[str, ...] = field(default=("auth", "functions", "firestore", "pubsub"))

    @property
    def local(self) -> Path:
        """Everything that the stack writes, but for `functions/.secret.local`."""
        return self.root / ".local"

    @property
    def logs(self) -> Path:
        return self.local / "logs"

    @property
    def firebase_log(self) -> Path:
        return self.logs / "firebase.log"

    @property
    def standins_log(self) -> Path:
        return self.logs / "standins.log"

    @property
    def temporary(self) -> Path:
        return self.local / "tmp"

    @property
    def state(self) -> Path:
        return self.local / "stack.json"

    @property
    def lock(self) -> Path:
        return self.local / "stack.lock"

    @property
    def service_account(self) -> Path:
        return self.local / "service-account.json"

    @property
    def cli(self) -> Path:
        return self.root / "node_modules" / ".bin" / "firebase"

    @cached_property
    def ports(self) -> dict[str, int]:
        """Port by name: the emulators as `firebase.json` lists them, and the stand-ins."""
        emulators: dict[str, Any] = json.loads((self.root / "firebase.json").read_text())["emulators"]
        ports = {name: spec["port"] for name, spec in emulators.items() if isinstance(spec, dict) and "port" in spec}
        ports["firestore websocket"] = emulators["firestore"]["websocketPort"]
        return ports | {"stand-ins": self.standins_port}

    def address(self, name: str) -> str:
        """`host:port` of one emulator, or of `stand-ins`."""
        return f"{HOST}:{self.ports[name]}"

    def make_folders(self) -> None:
        for folder in (self.logs, self.temporary):
            folder.mkdir(parents=True, exist_ok=True)
