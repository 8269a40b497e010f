"""Starts the local stack, hands out its addresses, and leaves nothing behind."""

import fcntl
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import IO, Any

from scripts.local import environment, processes, ready
from scripts.local.layout import HOST, PROJECT, REGION, ROOT, Layout
from scripts.local.progress import Say, telling


class Unavailable(RuntimeError):
    """The stack cannot be started; the message says what is in the way and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The addresses of a running stack: URLs with a scheme, hosts without."""

    project: str
    functions_url: str
    firestore_host: str
    auth_host: str
    pubsub_host: str
    standins_url: str


@contextmanager
def running(
    layout: Layout | None = None,
    *,
    env: Mapping[str, str] | None = None,
    real_gemini_api_key: str | None = None,
    say: Say | None = None,
) -> Iterator[Stack]:
    """A stack that answers: the one of this tree that is being served, else one that lasts as long as the context.

    What it starts ends with this process, even if this process is killed.

    Args:
        layout: the tree and its ports; this one by default.
        env: variables for the functions, on top of what the stack sets.
        real_gemini_api_key: sends model calls to Google with this key, and costs money.
        say: takes each line of progress; shown on stderr by default.

    Raises:
        Unavailable: a port is taken, something is not installed, or another stack of this tree is in the way.
        NotReady: it did not come up.
    """
    layout = layout or Layout()
    settings: dict[str, Any] = {"env": dict(env or {}), "real": real_gemini_api_key is not None}
    layout.make_folders()
    with layout.lock.open("a") as lock, ExitStack() as at_the_end:
        with telling() as shown:
            stack = _take(lock, layout, settings, say or shown)
            if stack is None:
                at_the_end.callback(_end, layout)
                stack = _start(layout, settings, real_gemini_api_key, say or shown)
        yield stack


def _end(layout: Layout) -> None:
    layout.state.unlink(missing_ok=True)
    processes.end(layout.root)


def _take(lock: IO[str], layout: Layout, settings: Mapping[str, Any], say: Say) -> Stack | None:
    """Become the owner of this tree's stack, or find the one that its owner serves.

    The system drops the lock with the process that holds it, however that process ends.
    """
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return None
        with suppress(FileNotFoundError, ValueError):
            state = json.loads(layout.state.read_text())
            if state["settings"] != settings:
                raise Unavailable(
                    f"a stack of this tree is running with other settings; end process {state['owner']} first"
                )
            say(f"using the stack that process {state['owner']} serves")
            return Stack(**state["stack"])
        say("waiting for another stack of this tree to start or to end")
        time.sleep(0.5)
    raise Unavailable(f"another process holds {layout.lock} but serves no stack; end it first")


def _start(layout: Layout, settings: Mapping[str, Any], real_gemini_api_key: str | None, say: Say) -> Stack:
    say("looking for leftovers of an earlier run")
    layout.state.unlink(missing_ok=True)
    if ended := processes.end(layout.root):
        say(f"ended {ended} processes of an earlier run")
    _check(layout)
    environment.write_credentials(layout)
    say("finding the emulators")
    extra = settings["env"]
    env = environment.for_cli(layout, os.environ, extra=extra, real_gemini_api_key=real_gemini_api_key)
    say("starting the stand-ins and the emulators")
    standins = _standins(layout)
    cli = _cli(layout, env)
    ready.wait_for_standins(layout, standins)
    ready.wait_for_emulators(layout, cli, say)
    stack = Stack(
        project=PROJECT,
        functions_url=f"http://{layout.address('functions')}/{PROJECT}/{REGION}",
        firestore_host=layout.address("firestore"),
        auth_host=layout.address("auth"),
        pubsub_host=layout.address("pubsub"),
        standins_url=f"http://{layout.address('stand-ins')}",
    )
    state = {"owner": os.getpid(), "settings": settings, "stack": asdict(stack)}
    draft = layout.state.with_suffix(".draft")
    draft.write_text(json.dumps(state))
    draft.replace(layout.state)
    return stack


def _check(layout: Layout) -> None:
    if not layout.cli.exists():
        raise Unavailable("the Firebase CLI is not installed here; run `scripts/setup`")
    for name, port in layout.ports.items():
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                who = processes.listening_on(port) or "another process"
                raise Unavailable(f"port {port} ({name}) is taken by {who}; end it and try again") from None


def _standins(layout: Layout) -> subprocess.Popen[bytes]:
    """Its stdin is a pipe that this process holds: should this process die, it ends everything that is left."""
    command = [sys.executable, "-m", "scripts.local.standins", "--port", str(layout.standins_port), "--guard"]
    env = processes.mark(environment.scrubbed(os.environ), layout.root)
    with layout.standins_log.open("wb") as log:
        return subprocess.Popen(
            command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
        )


def _cli(layout: Layout, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """A session of its own, so that Ctrl-C does not reach it; its debug logs go to the folder that it runs in."""
    command = [str(layout.cli), "emulators:start", "--only", ",".join(layout.only), "--project", PROJECT]
    command += ["--config", str(layout.root / "firebase.json")]
    with layout.firebase_log.open("wb") as log:
        return subprocess.Popen(
            command, cwd=layout.logs, env=dict(env), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
