"""A function as Cloud Run serves it: functions-framework's gunicorn with threads, pointed at local emulators."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from scripts.local import environment, ready
from scripts.local.dotenv import dotenv
from scripts.local.layout import HOST, ROOT, Layout
from scripts.local.stack import Stack

FUNCTIONS = ROOT / "functions"
# As long as a machine that does much else may take.
START_S = 300.0
# Of every function that was served in this run, for the test that looks into all of them.
LOGS: list[Path] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """One running function: its address, its log so far, its server's process."""

    url: str
    log_file: Path
    process: subprocess.Popen[bytes]

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")


@contextmanager
def deployed(
    target: str,
    stack: Stack,
    log_file: Path,
    *,
    env: Mapping[str, str | None] | None = None,
    source: Path | None = None,
) -> Iterator[Deployed]:
    """Serve `target` of `functions/main.py` (or of `source`) until the end of the block.

    `env` adds to the environment of a deployed function; None takes a variable away.
    """
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    settings: dict[str, str | None] = {
        **environment.scrubbed(os.environ),
        **dotenv(FUNCTIONS, stack.project),
        "FUNCTION_TARGET": target,
        "FUNCTIONS_EMULATOR": "true",
        "FIREBREAK_METERED_ONLY": "true",
        "FIREBREAK_STANDINS": stack.standins_url,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "scripts" / "local" / "inject"), str(FUNCTIONS)]),
        "GOOGLE_APPLICATION_CREDENTIALS": str(Layout().service_account),
        "GCLOUD_PROJECT": stack.project,
        "FIRESTORE_EMULATOR_HOST": stack.firestore_host,
        "FIREBASE_AUTH_EMULATOR_HOST": stack.auth_host,
        "GEMINI_EMULATOR_HOST": stack.standins_url.removeprefix("http://"),
        "GEMINI_API_KEY": "local",
        **(env or {}),
    }
    command = [str(FUNCTIONS / "venv" / "bin" / "functions-framework"), "--host", HOST, "--port", str(port)]
    command += ["--source", str(source or FUNCTIONS / "main.py")]
    LOGS.append(log_file)
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=FUNCTIONS,
            env={name: value for name, value in settings.items() if value is not None},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    server = Deployed(url=f"http://{HOST}:{port}", log_file=log_file, process=process)
    try:
        ready.poll(partial(_listens, port), process, target, log_file, START_S)
        yield server
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _listens(port: int) -> bool:
    """Whether the function has loaded; a request would leave an audit event."""
    with suppress(OSError), socket.create_connection((HOST, port)):
        return True
    return False
