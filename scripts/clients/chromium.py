"""Finds an installed Chromium or Chrome; downloads none."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from scripts.local.unavailable import Unavailable

NAMED = "CHROMIUM_PATH"
_COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_MAC = ("Chromium.app/Contents/MacOS/Chromium", "Google Chrome.app/Contents/MacOS/Google Chrome")


def find(env: Mapping[str, str]) -> Path | None:
    """The browser that `CHROMIUM_PATH` names, else one on PATH, else an application of macOS; None if there is none.

    Raises:
        Unavailable: `CHROMIUM_PATH` names no file.
    """
    if named := env.get(NAMED):
        if not Path(named).is_file():
            raise Unavailable(f"{NAMED} names {named}, which is not a file; correct it or unset it")
        return Path(named)
    commands = (shutil.which(command, path=env.get("PATH")) for command in _COMMANDS)
    found = [Path(command) for command in commands if command]
    found += [
        app for folder in (Path("/Applications"), Path.home() / "Applications") for app in map(folder.joinpath, _MAC)
    ]
    return next((path for path in found if path.is_file()), None)
