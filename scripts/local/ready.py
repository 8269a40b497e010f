"""Waits until a started stack answers: the stand-ins, the emulators, and every function."""

import re
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from scripts.local.layout import PROJECT, Layout
from scripts.local.progress import Say
from scripts.local.unavailable import Unavailable
from scripts.local.wire import Answer, call

_POLL_S = 0.05
_FIRST_ANSWER_S = 300
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_BROKEN = "Failed to load function definition from source"
_LOADED = "All emulators ready"
_RACED = "Address already in use"


class Raced(Unavailable):
    """Another program took a port between the CLI's look and its use; worth another try."""


def wait_for_standins(layout: Layout, process: subprocess.Popen[bytes], *, within_s: float = 30) -> None:
    """Wait until the stand-ins answer.

    Raises:
        Unavailable: they ended, or did not answer in time.
    """
    url = f"http://{layout.address('stand-ins')}/_health"
    poll(lambda: answers(url), process, "the stand-ins", layout.standins_log, within_s)


def wait_for_emulators(layout: Layout, process: subprocess.Popen[bytes], say: Say, *, within_s: float = 600) -> None:
    """Wait until the emulators answer and, if the functions are among them, every function has started once.

    Raises:
        Raced: a port was lost to another program.
        Unavailable: the CLI ended, the functions do not load, or something did not answer in time.
    """
    log = layout.firebase_log
    for name in layout.only:
        say(f"waiting for {name}")
        poll(partial(answers, f"http://{layout.address(name)}"), process, name, log, within_s)
    say("waiting for everything to load")
    poll(partial(_loaded, log), process, "the emulators", log, within_s)
    if "functions" in layout.only:
        urls = _callables(layout)
        if not urls:
            raise Unavailable(f"functions/main.py has no callable.\n{tail(log)}")
        say(f"starting {', '.join(sorted(url.rsplit('/', 1)[1] for url in urls))}")
        _start_each(urls, process, log)


def _start_each(urls: list[str], process: subprocess.Popen[bytes], log: Path) -> None:
    pool = ThreadPoolExecutor(max_workers=2)
    try:
        waits = [pool.submit(poll, partial(_serves, url), process, url, log, _FIRST_ANSWER_S) for url in urls]
        for wait in waits:
            wait.result()
    finally:
        # What still polls ends with the stack; Ctrl-C must not wait for it.
        pool.shutdown(wait=False, cancel_futures=True)


def poll(there: Callable[[], bool], process: subprocess.Popen[bytes], what: str, log: Path, within_s: float) -> None:
    """Wait until it is there.

    Raises:
        Unavailable: the process ended, or it is not there in time; with the end of its log.
    """
    deadline = time.monotonic() + within_s
    while not there():
        if process.poll() is not None:
            raise Unavailable(f"{what} did not start: the process ended with status {process.returncode}.\n{tail(log)}")
        if time.monotonic() > deadline:
            raise Unavailable(f"{what} did not answer within {within_s:.0f} s.\n{tail(log)}")
        time.sleep(_POLL_S)


def _answer(method: str, url: str) -> Answer | None:
    with suppress(OSError):
        return call(method, url)
    return None


def answers(url: str) -> bool:
    """Whether anything answers there, whatever it says."""
    return _answer("GET", url) is not None


def _loaded(log: Path) -> bool:
    """Whether the CLI says that it is done; a main.py that does not load does not stop it."""
    text = log.read_text(errors="replace")
    if _BROKEN in text:
        kind = Raced if _RACED in text else Unavailable
        raise kind(f"functions/main.py does not load; fix what the log says.\n{tail(log, until=_BROKEN)}")
    return _LOADED in text


def _callables(layout: Layout) -> list[str]:
    """The addresses of the functions that take requests."""
    emulator = f"http://{layout.address('functions')}"
    backends = call("GET", f"{emulator}/backends").json["backends"]
    triggers = [trigger for backend in backends for trigger in backend["functionTriggers"]]
    return [f"{emulator}/{PROJECT}/{t['region']}/{t['name']}" for t in triggers if "httpsTrigger" in t]


def _serves(url: str) -> bool:
    """Whether a worker of this function answers; a preflight asks nothing of anyone else."""
    answer = _answer("OPTIONS", url)
    return answer is not None and answer.status in {200, 204}


def tail(log: Path, *, until: str = "", lines: int = 25) -> str:
    """The last lines of a log without colours, or those up to the one that has `until`; and where the rest is."""
    text = _COLOURS.sub("", log.read_text(errors="replace")) if log.exists() else ""
    before, found, after = text.partition(until) if until else (text, "", "")
    shown = before + found + after.partition("\n")[0]
    return "\n".join([*shown.splitlines()[-lines:], f"(the whole log: {log})"])
