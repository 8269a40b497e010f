"""Measures the unit tests: changes one operator or constant at a time in a copy, and counts the changes they catch.

`python -m scripts.mutations` draws 200 changes from the modules that decide; modules may be named instead, as
`budgets.standing`. What survives is listed by file and line. No emulator is used.
"""

import ast
import os
import random
import shutil
import signal
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from queue import Queue
from typing import Annotated

import pytest
import typer

ROOT = Path(__file__).resolve().parents[1]
FUNCTIONS = ROOT / "functions"
UNIT = ROOT / "tests" / "unit"
# Not in the contract of pure modules, and money depends on them all the same.
DECIDE_TOO = ("settings.period", "gemini.generate", "gemini.messages", "guard.streaming")

_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
}
_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
# Each change is tried in a fork of a process that has these already: they take longer to load than most tests to run.
_LIBRARIES = ["pytest", "hypothesis", "firebase_functions.https_fn", "google.cloud.firestore", "google.genai", "typer"]
_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload(_LIBRARIES)
_SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One change: the `number`-th node of a module that can be changed, where it is, and what it becomes."""

    module: str
    number: int
    line: int
    what: str

    def __str__(self) -> str:
        return f"{path_of(self.module).relative_to(ROOT)}:{self.line}: {self.what}"


def path_of(module: str) -> Path:
    return FUNCTIONS / "firebreak" / Path(*module.split(".")).with_suffix(".py")


def changed(node: ast.AST) -> ast.AST | None:
    """The node with one thing about it changed, or None if it is not a kind that is."""
    new = deepcopy(node)
    match new:
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in _ARITHMETIC:
            new.op = _ARITHMETIC[type(op)]()
        case ast.Compare(ops=[first, *rest]):
            new.ops = [_COMPARED[type(first)](), *rest]
        case ast.BoolOp(op=op):
            new.op = ast.Or() if isinstance(op, ast.And) else ast.And()
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            return operand
        case ast.If(test=test) | ast.IfExp(test=test) if isinstance(test, ast.Name | ast.Attribute | ast.Call):
            new.test = ast.UnaryOp(op=ast.Not(), operand=test)
        case ast.Constant(value=bool() as value):
            new.value = not value
        case ast.Constant(value=int() | float() as value):
            new.value = value + 1
        case ast.Call(func=ast.Name(id=name) as called) if name in _SWAPPED:
            called.id = _SWAPPED[name]
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            new.value = ast.Constant(value=None)
        case _:
            return None
    return new


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when the code runs: no annotations, no decorators."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "type_params"} or isinstance(node, ast.TypeAlias):
            continue
        yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, ast.AST))


def _candidates(node: ast.AST) -> Iterator[ast.AST]:
    if changed(node) is not None:
        yield node
    for child in _children(node):
        yield from _candidates(child)


def mutations(module: str) -> Iterator[Mutation]:
    """Every change that can be made to a module."""
    for number, node in enumerate(_candidates(ast.parse(path_of(module).read_text()))):
        before, after = ast.unparse(node), ast.unparse(changed(node) or node)
        what = " -> ".join(text.splitlines()[0] for text in (before, after))
        yield Mutation(module=module, number=number, line=getattr(node, "lineno", 0), what=what)


def mutant(mutation: Mutation) -> str:
    """The module's source with the change made."""
    tree = ast.parse(path_of(mutation.module).read_text())
    target = list(_candidates(tree))[mutation.number]

    class Change(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return changed(node) or node if node is target else self.generic_visit(node)

    return ast.unparse(ast.fix_missing_locations(Change().visit(tree)))


@cache
def imported(path: Path) -> frozenset[str]:
    """The modules of the package that a file imports, and those that a helper beside it does."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            if name.startswith("firebreak."):
                found.add(name.removeprefix("firebreak."))
            helper = ROOT / Path(*name.split(".")).with_suffix(".py")
            if name.startswith("tests.unit.") and helper.exists():
                found |= imported(helper)
    return frozenset(name for name in found if path_of(name).exists())


@cache
def reached(path: Path) -> frozenset[str]:
    """The modules that a file imports, however indirectly."""
    found: set[str] = set()
    left = set(imported(path))
    while left:
        module = left.pop()
        found.add(module)
        left |= imported(path_of(module)) - found
    return frozenset(found)


def unit_tests_of(module: str) -> list[list[Path]]:
    """The unit tests that import a module, then those that reach it through others."""
    files = sorted(UNIT.glob("test_*.py"))
    near = [path for path in files if module in imported(path)]
    return [near, [path for path in files if path not in near and module in reached(path)]]


def catches(copy: Path, tests: Sequence[Path], *, timeout_s: float) -> bool:
    """Whether a test fails, or never ends, with the package in `copy`."""
    if not tests:
        return False
    process = _FORKS.Process(target=_run, args=(str(copy), [str(path) for path in tests]))
    process.start()
    process.join(timeout_s)
    if process.exitcode is None:
        os.killpg(process.pid or 0, signal.SIGKILL)
        process.join()
    return process.exitcode != 0


def _run(copy: str, tests: list[str]) -> None:
    """In a process of its own, which has loaded the libraries and nothing of the package."""
    os.setsid()
    os.chdir(ROOT)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = f"{copy}/.hypothesis"
    sys.dont_write_bytecode = True
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    # pyproject.toml would put this tree's own package first.
    sys.path.insert(0, copy)
    sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-o", f"pythonpath={copy}", *tests]))


def survives(mutation: Mutation, copy: Path, *, timeout_s: float) -> bool:
    """Whether all unit tests that could notice a change pass with it."""
    place = copy / path_of(mutation.module).relative_to(FUNCTIONS)
    before = place.read_text()
    place.write_text(mutant(mutation))
    try:
        return not any(catches(copy, tests, timeout_s=timeout_s) for tests in unit_tests_of(mutation.module))
    finally:
        place.write_text(before)


def default_modules() -> list[str]:
    """The pure modules as pyproject.toml lists them, and those that decide about money beside them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    pure = next(contract["source_modules"] for contract in contracts if contract["id"] == "pure")
    named = {name.removeprefix("firebreak.") for name in pure} | set(DECIDE_TOO)
    return sorted(name for name in named if path_of(name).exists())


def copied(folder: Path) -> Path:
    """A copy of the package, to be changed."""
    shutil.copytree(FUNCTIONS / "firebreak", folder / "firebreak", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(FUNCTIONS / "main.py", folder)
    return folder


def measure(drawn: Sequence[Mutation], *, jobs: int, timeout_s: float, say: Callable[[str], None]) -> list[Mutation]:
    """The changes that no test catches."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        copies: Queue[Path] = Queue()
        for number in range(jobs):
            copies.put(copied(Path(folder) / str(number)))

        def look(mutation: Mutation) -> bool:
            copy = copies.get()
            try:
                left = survives(mutation, copy, timeout_s=timeout_s)
            finally:
                copies.put(copy)
            say("survived" if left else ".")
            return left

        return [mutation for mutation, left in zip(drawn, pool.map(look, drawn), strict=True) if left]


app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(help=__doc__)
def main(
    modules: Annotated[list[str] | None, typer.Argument(help="Modules under firebreak, as budgets.standing.")] = None,
    count: Annotated[int, typer.Option(help="How many changes to draw; 0 makes every one.")] = 200,
    seed: Annotated[int, typer.Option(help="The same seed draws the same changes.")] = 1,
    jobs: Annotated[int, typer.Option(help="How many to run at once.")] = os.cpu_count() or 1,
    timeout_s: Annotated[float, typer.Option(help="A change after which the tests run longer is caught.")] = 300,
    at_least: Annotated[int, typer.Option(help="Percent that must be caught for exit status 0.")] = 90,
) -> None:
    named = modules or default_modules()
    if missing := [name for name in named if not path_of(name).exists()]:
        raise typer.BadParameter(f"no such module under firebreak: {', '.join(missing)}")
    possible = [mutation for name in named for mutation in mutations(name)]
    drawn = random.Random(seed).sample(possible, min(count, len(possible))) if count else possible  # noqa: S311 - no secret
    typer.echo(f"{len(drawn)} of {len(possible)} changes in {len(named)} modules, seed {seed}", err=True)
    everything = sorted({path for name in named for tests in unit_tests_of(name) for path in tests})
    with tempfile.TemporaryDirectory() as folder:
        if catches(copied(Path(folder) / "copy"), everything, timeout_s=10 * timeout_s):
            typer.echo("the unit tests fail without any change: fix them first", err=True)
            raise typer.Exit(2)
    left = measure(drawn, jobs=jobs, timeout_s=timeout_s, say=lambda text: typer.echo(text, err=True, nl=False))
    typer.echo(err=True)
    for name in named:
        mine = [mutation for mutation in drawn if mutation.module == name]
        caught = len(mine) - sum(mutation.module == name for mutation in left)
        typer.echo(f"{name:28} {caught:4} of {len(mine):4} caught" if mine else f"{name:28}    none drawn")
    for mutation in sorted(left, key=lambda each: (each.module, each.line)):
        typer.echo(f"survived  {mutation}")
    percent = 100 * (len(drawn) - len(left)) / len(drawn) if drawn else 100.0
    typer.echo(f"caught {len(drawn) - len(left)} of {len(drawn)}: {percent:.1f} %")
    raise typer.Exit(percent < at_least)


if __name__ == "__main__":
    app()
