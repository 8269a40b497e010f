"""Tests of the emulator that say nothing of its own, to be run on the store in memory too."""

from inspect import isfunction
from types import ModuleType
from typing import Any

# Only what is real has an address.
REAL = frozenset({"stack", "firestore_host", "proxy", "client_at", "metered_at", "address"})


def same(module: ModuleType, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """The tests, fixtures and marks of a module, but for the tests that need an address, and those named.

    Raises:
        ValueError: one that is named is not there.
    """
    if unknown := set(without) - vars(module).keys():
        raise ValueError(f"{module.__name__} has no {', '.join(sorted(unknown))}")
    return {
        name: value
        for name, value in vars(module).items()
        if name == "pytestmark" or _is_fixture(value) or (_runs_anywhere(name, value) and name not in without)
    }


def _is_fixture(value: object) -> bool:
    return type(value).__name__ == "FixtureFunctionDefinition"


def _runs_anywhere(name: str, value: Any) -> bool:
    if not name.startswith("test_") or not isfunction(value):
        return False
    return not REAL & {*value.__code__.co_varnames, *value.__code__.co_names}
