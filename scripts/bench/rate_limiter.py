"""Contender `rate_limiter`: firebase-functions-rate-limiter from npm with its Firestore backend, run by Node."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from scripts.bench.contender import Contender
from scripts.bench.figures import Block
from scripts.bench.shape import Scenario, Shape
from scripts.local import environment, processes
from scripts.local.layout import PROJECT
from scripts.local.unavailable import Unavailable

SOURCE = Path(__file__).parent / "limiter"


class RateLimiter(Contender):
    name: ClassVar[str] = "rate_limiter"
    lacks: ClassVar[frozenset[Scenario]] = frozenset({Scenario.SETTLE})

    def __init__(self, node: subprocess.Popen[str]) -> None:
        self._node = node
        self._shape: dict[str, Any] = {}

    def prepare(self, shape: Shape) -> None:
        self._shape = asdict(shape)
        self._ask("prepare")

    def run(self) -> Block:
        return Block(**self._ask("run"))

    def _ask(self, command: str) -> Any:  # noqa: ANN401 - as Node sent it
        assert self._node.stdin
        assert self._node.stdout
        self._node.stdin.write(json.dumps({command: self._shape}) + "\n")
        self._node.stdin.flush()
        answer = self._node.stdout.readline()
        if not answer:
            raise Unavailable("the npm limiter's process has ended; see its messages above")
        return json.loads(answer)


def install(folder: Path) -> Path:
    """Its packages, as its own lock file has them, in `folder`; nothing else of the project uses them.

    Raises:
        Unavailable: npm could not install them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock, done = (SOURCE / "package-lock.json").read_text(), folder / "done"
    if not done.exists() or done.read_text() != lock:
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(SOURCE / name, folder / name)
        command = ["npm", "ci", "--ignore-scripts", "--no-progress", "--loglevel=error"]
        if subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL).returncode:
            raise Unavailable("npm could not install the limiter to compare with; check the network and try again")
        done.write_text(lock)
    return folder


@contextmanager
def served(packages: Path, firestore_host: str, root: Path) -> Iterator[RateLimiter]:
    """A process of Node that asks the emulator at `firestore_host`, until the context ends."""
    env = environment.scrubbed(os.environ) | {"FIRESTORE_EMULATOR_HOST": firestore_host}
    env["FIREBASE_CONFIG"] = json.dumps({"projectId": PROJECT})
    command = ["node", str(SOURCE / "limiter.mjs"), str(packages), PROJECT]
    node = subprocess.Popen(
        command, env=processes.mark(env, root), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield RateLimiter(node)
    finally:
        node.kill()
        node.wait()
