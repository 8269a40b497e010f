"""The local stack itself: nothing outlives it, and what is in its way is named."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from scripts.local import processes
from scripts.local.layout import HOST, ROOT, Layout
from scripts.local.stack import Unavailable, running
from scripts.local.wire import call

MAIN = """
from firebase_functions import https_fn

@https_fn.on_call()
def hello(request): return "hello"
"""
OWNER = """
import sys, time
from pathlib import Path
from scripts.local.layout import Layout
from scripts.local.stack import running

root, port, only, share = sys.argv[1:]
with running(Layout(Path(root), int(port), tuple(only.split(","))), share=bool(share)):
    print("up", flush=True)
    time.sleep(1000)
"""


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Layout]:
    """A small tree of its own on ports of its own, so that it can be broken while the real one runs."""
    root = tmp_path_factory.mktemp("tree")
    config = json.loads((ROOT / "firebase.json").read_text())
    for emulator in config["emulators"].values():
        if isinstance(emulator, dict) and "port" in emulator:
            emulator.update({name: free_port() for name in ("port", "websocketPort") if name in emulator})
    (root / "firebase.json").write_text(json.dumps(config))
    for name in ("firestore.rules", "firestore.indexes.json", "node_modules", "functions/venv"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).symlink_to(ROOT / name)
    (root / "functions/main.py").write_text(MAIN)
    (root / "functions/requirements.txt").write_text("firebase-functions\n")
    layout = Layout(root, free_port(), ("functions", "pubsub"))
    yield layout
    processes.end(root)


def suites(layout: Layout) -> set[int]:
    """Process ids of the emulator suites that run."""
    return {process.pid for process in processes.marked(layout.root) if "emulators:start" in process.cmdline()}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@contextmanager
def owner(layout: Layout, *, share: bool = False) -> Iterator[subprocess.Popen[str]]:
    """Another process that runs the stack, once it is up."""
    arguments = [str(layout.root), str(layout.standins_port), ",".join(layout.only), "yes" if share else ""]
    command = [sys.executable, "-c", OWNER, *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "up\n"
            yield process
        finally:
            process.kill()


def names(layout: Layout) -> set[str]:
    """What runs for this stack, by a word of its command line."""
    words = ("emulators:start", "functions-framework", "java", "scripts.local.standins")
    lines = [" ".join(process.cmdline()) for process in processes.marked(layout.root)]
    return {word for word in words if any(word in line for line in lines)}


def wait_until(there: Callable[[], bool], within_s: float = 10) -> bool:
    deadline = time.monotonic() + within_s
    while not there() and time.monotonic() < deadline:
        time.sleep(0.05)
    return there()


def test_nothing_outlives_a_killed_owner_and_the_next_run_works(layout: Layout) -> None:
    with owner(layout, share=True) as first:
        running_then = names(layout)
        first.kill()
        gone = wait_until(lambda: not processes.marked(layout.root))

    assert running_then == {"emulators:start", "functions-framework", "java", "scripts.local.standins"}
    assert gone

    # Now their guard dies too, as in a machine out of memory: the next run has to clean up.
    with owner(replace(layout, only=("functions",))) as second:
        guard = next(p for p in processes.marked(layout.root) if "scripts.local.standins" in p.cmdline())
        guard.kill()
        second.kill()
        second.wait()
        left = names(layout)
    with running(layout) as stack:
        answer = call("POST", f"{stack.functions_url}/hello", {"data": None})

    assert {"emulators:start", "functions-framework"} <= left
    assert answer.json == {"result": "hello"}
    assert not processes.marked(layout.root)


def test_only_a_served_stack_is_shared_and_only_as_it_is(layout: Layout) -> None:
    layout = replace(layout, only=("functions",))
    with owner(layout, share=True) as process:
        served = suites(layout)
        with running(layout) as stack:
            answer = call("POST", f"{stack.functions_url}/hello", {"data": None})
            used = suites(layout)
        with (
            pytest.raises(Unavailable, match=f"process {process.pid} serves a stack with other settings"),
            running(layout, env={"MAX_DAILY_TOKENS": "1"}),
        ):
            pass
        still = names(layout)

        process.send_signal(signal.SIGINT)
        process.wait()

    assert answer.status == 200
    assert used == served
    assert "emulators:start" in still
    assert not processes.marked(layout.root)


def test_a_taken_port_is_named_with_its_holder(layout: Layout) -> None:
    port = layout.ports["pubsub"]
    with (
        socket.create_server((HOST, port)),
        pytest.raises(Unavailable, match=rf"port {port} \(pubsub\) is taken by process {os.getpid()}"),
        running(layout),
    ):
        pass


def test_functions_that_do_not_load_are_told_with_the_log(layout: Layout) -> None:
    main = layout.root / "functions/main.py"
    main.write_text("import nothing_of_this_name\n")
    try:
        with (
            pytest.raises(Unavailable, match=r"(?s)main.py does not load.*nothing_of_this_name"),
            running(replace(layout, only=("functions",))),
        ):
            pass
    finally:
        main.write_text(MAIN)


def test_it_leaves_no_files_outside_its_folder(layout: Layout) -> None:
    made = {path.name for path in layout.root.iterdir()}

    assert made == {".local", "firebase.json", "firestore.rules", "firestore.indexes.json", "functions", "node_modules"}
    assert not list(Path(layout.root, "functions").glob("*.log"))
