"""The processes of a stack: marked by an environment variable that every child inherits, found and ended by id."""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from scripts.local.unavailable import Unavailable

MARK = "FIREBREAK_STACK"
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess)


def mark(env: Mapping[str, str], root: Path) -> dict[str, str]:
    """`env` with the mark of the stack at `root`."""
    return {**env, MARK: str(root)}


def marked(root: Path) -> set[psutil.Process]:
    """Every living process of the stack at `root`, this one excepted.

    Some systems hide the environment of their own shells: what a marked process started counts as marked too.
    """
    found = {process for process in psutil.process_iter() if _is_marked(process, root)}
    for process in tuple(found):
        with suppress(*_GONE):
            found.update(process.children(recursive=True))
    return {process for process in found if process.pid != os.getpid()}


def _is_marked(process: psutil.Process, root: Path) -> bool:
    with suppress(*_GONE, OSError):
        return process.environ().get(MARK) == str(root) and process.status() != psutil.STATUS_ZOMBIE
    return False


def end(root: Path, *, within_s: float = 10) -> int:
    """End every process of the stack at `root` and say how many there were.

    SIGKILL, and the Firebase CLI first: asked politely, it may end every Pub/Sub emulator of the machine by name
    (`pubsubEmulator.js`), and it leaves its Python workers behind in any case.

    Raises:
        Unavailable: some are still there after `within_s` seconds.
    """
    deadline = time.monotonic() + within_s
    ended: set[psutil.Process] = set()
    while found := marked(root):
        if time.monotonic() > deadline:
            raise Unavailable(f"these processes would not end: {', '.join(str(p.pid) for p in found)}")
        for process in sorted(found, key=_is_cli, reverse=True):
            with suppress(*_GONE):
                process.kill()
        psutil.wait_procs(found, timeout=0.2)
        ended |= found
    return len(ended)


def _is_cli(process: psutil.Process) -> bool:
    with suppress(*_GONE):
        return "emulators:start" in process.cmdline()
    return False


def listening_on(port: int) -> str | None:
    """Who listens on a TCP port of this machine, in words; None if it cannot be told."""
    for process in psutil.process_iter():
        with suppress(*_GONE):
            for connection in process.net_connections(kind="tcp"):
                if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
                    return f"process {process.pid} ({' '.join(process.cmdline())[:80]})"
    return None
