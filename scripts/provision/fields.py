"""The fields of a settings file by dotted path: each taken once and checked; what nobody took is a slip."""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any


class BadFile(ValueError):
    """The file cannot be used; `faults` holds one sentence for each field that is wrong."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


class Fields:
    """The file's fields by dotted path: takes each once, notes what is wrong, and then knows what nobody took."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.faults: list[str] = []
        self._data = data
        self._known: set[str] = set()

    def table(self, path: str) -> list[str]:
        """The keys of a table, none where there is no such table."""
        self._known.add(path)
        found = self._find(path)
        if found is None or isinstance(found, dict):
            return list(found or ())
        self.faults.append(f"{path} must be a table, as in the example; not {found!r}")
        return []

    def take[T](self, path: str, parse: Callable[[Any], T], instead: T, *, default: T | None = None) -> T:
        """The parsed field; `instead` where it is wrong, `default` where it is missing and may be."""
        self._known.add(path)
        found = self._find(path)
        if found is None:
            if default is None:
                self.faults.append(f"{path} is missing; firebreak.toml.example has one")
            return instead if default is None else default
        try:
            return parse(found)
        except ValueError as error:
            self.faults.append(f"{path} {error}")
            return instead

    def refuse_the_rest(self) -> None:
        """Note every field that nobody took: a slip there would be money unbounded; and every key with a dot.

        Such a key looks like a path, and would hide what stands at that path.
        """
        self.faults += [
            f"{name!r} must be no key with a dot in it: leave the quotes out" for name in _dotted(self._data)
        ]
        for path in _leaves(self._data):
            if path not in self._known:
                near = get_close_matches(path, self._known, 1, 0.7)
                self.faults.append(f"{path} is no field{f'; {near[0]} is' if near else ''}")

    def _find(self, path: str) -> Any:  # noqa: ANN401  # whatever the file holds
        found: Any = self._data
        for name in path.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        return found


def _leaves(data: Mapping[str, Any], above: str = "") -> list[str]:
    return [
        path
        for name, value in data.items()
        for path in (_leaves(value, f"{above}{name}.") if isinstance(value, dict) and value else [f"{above}{name}"])
    ]


def _dotted(data: Mapping[str, Any]) -> list[str]:
    below = [name for value in data.values() if isinstance(value, dict) for name in _dotted(value)]
    return [name for name in data if "." in name] + below


def written_as(pattern: re.Pattern[str], wanted: str) -> Callable[[Any], str]:
    """Takes text of this form; `wanted` is what the error asks for."""

    def parse(found: object) -> str:
        if not isinstance(found, str) or not pattern.fullmatch(found):
            raise ValueError(f"must be {wanted}, not {found!r}")
        return found

    return parse


def flag(found: object) -> bool:
    """true or false."""
    if not isinstance(found, bool):
        raise ValueError(f"must be true or false, not {found!r}")  # noqa: TRY004  # a wrong value is a wrong value
    return found
