"""Finding a browser."""

from pathlib import Path

import pytest

from scripts.clients import chromium
from scripts.local.stack import Unavailable


def installed(folder: Path, name: str) -> Path:
    program = folder / name
    program.touch(mode=0o755)
    return program


def test_a_named_browser_goes_before_one_on_the_path(tmp_path: Path) -> None:
    on_path, named = installed(tmp_path, "chromium"), installed(tmp_path, "mine")

    assert chromium.find({"PATH": str(tmp_path)}) == on_path
    assert chromium.find({"PATH": str(tmp_path), "CHROMIUM_PATH": str(named)}) == named


def test_chromium_goes_before_chrome(tmp_path: Path) -> None:
    chromes = [installed(tmp_path, name) for name in ("google-chrome", "chromium")]

    assert chromium.find({"PATH": str(tmp_path)}) == chromes[1]


def test_a_named_browser_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"CHROMIUM_PATH names .*gone, which is not a file"):
        chromium.find({"PATH": str(tmp_path), "CHROMIUM_PATH": str(tmp_path / "gone")})
