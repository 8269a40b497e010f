"""The architecture, where import-linter cannot see it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.local.layout import ROOT

PACKAGE = ROOT / "functions" / "firebreak"


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name inside it; packages themselves are empty."""
    files = (path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
    return {".".join(path.relative_to(PACKAGE).with_suffix("").parts): path for path in files}


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_only_the_client_and_what_it_is_made_of_import_the_gemini_sdk() -> None:
    importers = {name for name, path in modules().items() if any("google.genai" in name for name in imported(path))}

    assert importers == {"gemini.client", "gemini.messages"}


@pytest.mark.parametrize("package", sorted(PACKAGE.rglob("__init__.py")), ids=lambda path: path.parent.name)
def test_packages_hold_no_code(package: Path) -> None:
    statements = ast.parse(package.read_text()).body

    assert all(isinstance(statement, ast.Expr) for statement in statements)


def test_no_module_of_the_bucket_asks_a_wall_clock() -> None:
    """An instance whose wall clock is wrong by hours admits like any other, because nobody looks at it."""
    asked = re.compile(r"time\.time|datetime\.now|utcnow|\.today\(|SERVER_TIMESTAMP|localtime|gmtime")

    assert [path.name for path in (PACKAGE / "bucket").glob("*.py") if asked.search(path.read_text())] == []
