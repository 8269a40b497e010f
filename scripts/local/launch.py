"""Starts the processes of a stack, and ends every one of them."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from scripts.local import dotenv, environment, processes, ready
from scripts.local.layout import HOST, PROJECT, ROOT, Layout
from scripts.local.progress import Say
from scripts.local.unavailable import Unavailable


@contextmanager
def launched(layout: Layout, *, extra: Mapping[str, str], real_gemini_api_key: str | None, say: Say) -> Iterator[None]:
    """A stack that answers, until the context ends; only for the owner of the tree's stack.

    Raises:
        Unavailable: a port is taken, something is not installed, or it did not come up.
    """
    say("looking for leftovers of an earlier run")
    if ended := processes.end(layout.root):
        say(f"ended {ended} processes of an earlier run")
    _check(layout)
    environment.write_credentials(layout)
    say("finding the emulators")
    env = environment.for_cli(layout, os.environ, extra=extra, real_gemini_api_key=real_gemini_api_key)
    say("starting the stand-ins and the emulators")
    try:
        # Held until the end: once the stand-ins' stdin closes, they end the stack.
        _processes = _start(layout, env, say)
        yield
    finally:
        processes.end(layout.root)


def _start(layout: Layout, env: Mapping[str, str], say: Say, tries: int = 3) -> tuple[subprocess.Popen[bytes], ...]:
    standins, cli = _standins(layout), _cli(layout, env)
    try:
        ready.wait_for_standins(layout, standins)
        ready.wait_for_emulators(layout, cli, say)
    except ready.Raced:
        if tries == 1:
            raise
        say("a port was lost to another program; starting again")
        processes.end(layout.root)
        return _start(layout, env, say, tries - 1)
    return standins, cli


def _check(layout: Layout) -> None:
    if not layout.cli.exists():
        raise Unavailable("the Firebase CLI is not installed here; run `scripts/setup`")
    settings = dotenv.read(layout.root / "functions", PROJECT)
    if faults := dotenv.wrong(layout.root / "functions", settings):
        raise Unavailable(f"functions/.env, or .env.{PROJECT} over it: {'; '.join(faults)}. Fix it and try again")
    for cut in settings.cuts:
        print(cut, file=sys.stderr)
    for name, port in layout.ports.items():
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                who = processes.listening_on(port) or "another process"
                raise Unavailable(f"port {port} ({name}) is taken by {who}; end it and try again") from None


def _standins(layout: Layout) -> subprocess.Popen[bytes]:
    """Their stdin is a pipe that this process holds: should this process die, they end everything that is left."""
    command = [sys.executable, "-m", "scripts.local.standins", "--port", str(layout.standins_port), "--guard"]
    command += ["--pubsub", layout.address("pubsub")]
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
            command,
            cwd=layout.logs,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
