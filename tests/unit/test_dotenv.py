"""Settings are looked at before anything starts or is deployed."""

from pathlib import Path

import pytest

from scripts.local.dotenv import dotenv, wrong
from scripts.local.layout import PROJECT, ROOT


@pytest.fixture
def functions(tmp_path: Path) -> Path:
    (tmp_path / "firebreak").mkdir()
    (tmp_path / ".env").write_text("# limits\nMAX_DAILY_TOKENS=5\nTHREADS=8\n")
    return tmp_path


def test_what_is_committed_is_right_here_and_for_any_project() -> None:
    assert wrong(ROOT / "functions", PROJECT) == []
    assert wrong(ROOT / "functions", "my-app") == []


def test_a_projects_own_file_stands_above(functions: Path) -> None:
    (functions / ".env.my-app").write_text("MAX_DAILY_TOKENS=7\n")

    assert dotenv(functions, "my-app")["MAX_DAILY_TOKENS"] == "7"
    assert dotenv(functions)["MAX_DAILY_TOKENS"] == "5"


def test_a_wrong_knob_is_named(functions: Path) -> None:
    (functions / ".env.my-app").write_text("THREADS=abc\n")

    assert wrong(functions, "my-app") == ["THREADS must be a whole number, not 'abc'"]


def test_a_name_that_is_almost_a_knob_is_a_slip_and_any_other_is_somebody_elses(functions: Path) -> None:
    (functions / ".env.my-app").write_text("CHECK_REVOKE=true\nMY_OWN_THING=1\n")

    assert wrong(functions, "my-app") == ["CHECK_REVOKE is no setting; CHECK_REVOKED is"]


def test_functions_of_somebody_else_are_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("THREADS=abc\n")

    assert wrong(tmp_path, "my-app") == []
