"""A Firestore emulator and stand-ins of the bench's own, on free ports: they share nothing with a local stack."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from scripts.local import binaries, environment, processes, ready
from scripts.local.layout import HOST, ROOT, Layout
from scripts.local.stack import Stack

START_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """Where they answer: `firestore` is host:port, `standins` a URL."""

    firestore: str
    standins: str

    @property
    def stack(self) -> Stack:
        """As a stack without the services that nothing here asks."""
        nobody = f"{HOST}:9"
        return Stack(
            project="demo-firebreak",
            functions_url=f"http://{nobody}",
            firestore_host=self.firestore,
            auth_host=nobody,
            pubsub_host=nobody,
            standins_url=self.standins,
        )


@contextmanager
def running(folder: Path) -> Iterator[Own]:
    """Both, until the context ends; what they write goes to `folder`, whose path also marks their processes.

    Should this process be killed, the stand-ins end everything that bears the mark.

    Raises:
        Unavailable: no emulator is installed, or one of the two did not come up.
    """
    folder.mkdir(parents=True, exist_ok=True)
    processes.end(folder)
    environment.write_credentials(Layout())
    own = Own(firestore=f"{HOST}:{free_port()}", standins=f"http://{HOST}:{free_port()}")
    try:
        standins = _started(_standins(own), folder, "standins")
        firestore = _started(_firestore(own), folder, "firestore")
        for process, name, url in (
            (standins, "standins", f"{own.standins}/_health"),
            (firestore, "firestore", f"http://{own.firestore}/"),
        ):
            ready.poll(partial(ready.answers, url), process, name, folder / f"{name}.log", START_S)
        yield own
    finally:
        processes.end(folder)


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _standins(own: Own) -> list[str]:
    return [sys.executable, "-m", "scripts.local.standins", "--port", own.standins.rsplit(":", 1)[1], "--guard"]


def _firestore(own: Own) -> list[str]:
    jar = binaries.firestore_jar(os.environ, root=ROOT, local=Layout().local)
    java = Path(binaries.java(os.environ)["JAVA_HOME"]) / "bin" / "java"
    return [str(java), "-jar", str(jar), f"--host={HOST}", f"--port={own.firestore.rsplit(':', 1)[1]}"]


def _started(command: list[str], folder: Path, name: str) -> subprocess.Popen[bytes]:
    env = processes.mark(environment.scrubbed(os.environ), folder)
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
        )
