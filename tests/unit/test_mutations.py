"""`scripts/mutations.py` changes what runs, one thing at a time, and its verdict is that of the tests."""

import ast
from pathlib import Path

import pytest

from scripts import mutations
from scripts.mutations import UNIT, catches, changed, copied, default_modules, mutant, path_of, unit_tests_of


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a + b", "a - b"),
        ("a * b", "a // b"),
        ("a < b", "a <= b"),
        ("a is None", "a is not None"),
        ("a and b", "a or b"),
        ("not a", "a"),
        ("-a", "a"),
        ("7", "8"),
        ("True", "False"),
        ("min(a, b)", "max(a, b)"),
        ("x if a else b", "x if not a else b"),
        ("'text'", None),
        ("f(a)", None),
    ],
)
def test_one_thing_is_changed(before: str, after: str | None) -> None:
    new = changed(ast.parse(before, mode="eval").body)

    assert (None if new is None else ast.unparse(new)) == after


@pytest.mark.parametrize("module", ["budgets.standing", "metering.meter"])
def test_every_change_of_a_module_is_another_program(module: str) -> None:
    source = ast.unparse(ast.parse(path_of(module).read_text()))

    made = [mutant(mutation) for mutation in mutations.mutations(module)]

    assert len(made) > 10
    assert len(set(made)) == len(made)
    assert source not in made


def test_only_what_runs_is_changed() -> None:
    lines = path_of("budgets.standing").read_text().splitlines()

    assert not [m for m in mutations.mutations("budgets.standing") if lines[m.line - 1].startswith("@")]


def test_the_default_is_what_decides_about_money() -> None:
    assert {"budgets.standing", "metering.meter", "gemini.generate", "guard.streaming"} <= set(default_modules())


def test_tests_that_import_a_module_come_first() -> None:
    near, further = unit_tests_of("budgets.standing")

    assert UNIT / "test_standing.py" in near
    assert further
    assert not set(near) & set(further)


@pytest.mark.timeout(600)
def test_the_tests_run_against_the_copy(tmp_path: Path) -> None:
    copy, trace = copied(tmp_path / "copy"), tmp_path / "trace"
    place = copy / "firebreak" / "settings" / "period.py"
    place.write_text(f"{place.read_text()}\nopen({str(trace)!r}, 'w').close()\n")

    assert not catches(copy, [UNIT / "test_period.py"], timeout_s=500)
    assert trace.exists()


@pytest.mark.parametrize("code", ["raise SystemExit(1)", "while True: pass"])
def test_a_failure_and_an_endless_run_are_caught(tmp_path: Path, code: str) -> None:
    """With a package that does so when it is imported."""
    (tmp_path / "firebreak.py").write_text(code)

    assert catches(tmp_path, [UNIT / "test_period.py"], timeout_s=3)
