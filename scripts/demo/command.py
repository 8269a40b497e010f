"""The operator's command, run as a person would type it."""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from scripts.local.layout import ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What was typed, its exit status, and what it printed."""

    typed: str
    status: int
    printed: str


def ops(words: Sequence[str], *, project: str, firestore_host: str) -> Command:
    """Run `python -m scripts.ops` on the emulator; a status that is not 0 is for the caller to judge."""
    arguments = ["-m", "scripts.ops", *words, "--project", project]
    path = os.pathsep.join((str(ROOT / "functions"), str(ROOT)))
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "FIRESTORE_EMULATOR_HOST": firestore_host, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return Command(
        typed=shlex.join(["python", *arguments]),
        status=done.returncode,
        printed=(done.stdout if done.returncode == 0 else done.stderr).strip(),
    )
