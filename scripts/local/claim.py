"""Who owns the stack of a tree: at most one living process, found by a lock that dies with it."""

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

from scripts.local.layout import Layout
from scripts.local.progress import Say
from scripts.local.unavailable import Unavailable

_PATIENCE_S = 1800
_POLL_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The stack that another process keeps for others to use."""

    owner: int
    settings: Mapping[str, Any]


@contextmanager
def claimed(layout: Layout, say: Say) -> Iterator[Served | None]:
    """None as the owner of this tree's stack, until the context ends; or the stack that its owner serves.

    An owner that does not serve is a run of tests or of the demo: this waits until it ends.

    Raises:
        Unavailable: it does not end within half an hour.
    """
    with layout.lock.open("a+") as lock:
        deadline = time.monotonic() + _PATIENCE_S
        while not _locked(lock):
            if served := _served(layout):
                yield served
                return
            lock.seek(0)
            owner = lock.read().strip()
            if time.monotonic() > deadline:
                raise Unavailable(f"process {owner} has run a stack of this tree for too long; end it and try again")
            say(f"waiting for process {owner}, which runs a stack of this tree")
            time.sleep(_POLL_S)
        layout.state.unlink(missing_ok=True)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        try:
            yield None
        finally:
            layout.state.unlink(missing_ok=True)


def serve(layout: Layout, settings: Mapping[str, Any]) -> None:
    """Let other processes use this stack; only for its owner."""
    draft = layout.state.with_suffix(".draft")
    draft.write_text(json.dumps({"owner": os.getpid(), "settings": settings}))
    draft.replace(layout.state)


def owner(layout: Layout) -> int | None:
    """The process that serves this tree's stack, if one does."""
    served = _served(layout)
    return None if served is None else served.owner


def _locked(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _served(layout: Layout) -> Served | None:
    with suppress(FileNotFoundError):
        return Served(**json.loads(layout.state.read_text()))
    return None
