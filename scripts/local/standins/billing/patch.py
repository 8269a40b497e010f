"""What an update makes of a budget: by its mask, or by what it sets; pure."""

from collections.abc import Collection, Mapping
from copy import deepcopy
from typing import Any

from scripts.local.standins.billing.message import BUDGET
from scripts.local.standins.billing.rules import Broken
from scripts.local.standins.jsonfront import Kind, Message, camel

Fields = Mapping[str, Any]
_READ_ONLY = frozenset({"name", "spendCap.outputState", "spendCap.reconciling"})


def paths(mask: str) -> tuple[str, ...]:
    """The paths of a field mask, in lower camel case; none for an empty mask.

    Raises:
        Broken: one of them is no field of a budget, or is read-only.
    """
    found = tuple(camel(path.strip()) for path in mask.split(",")) if mask else ()
    for path in found:
        if path in _READ_ONLY or not _exists(path):
            raise Broken(f"updateMask: {path!r} can be updated")
    return found


def _exists(path: str) -> bool:
    kind: Kind = BUDGET
    for name in path.split("."):
        if not isinstance(kind, Message) or name not in kind.fields:
            return False
        kind = kind.fields[name]
    return True


def masked(current: Fields, given: Fields, mask: Collection[str]) -> dict[str, Any]:
    """The current budget with each path as it is given, cleared where it is not."""
    result = deepcopy(dict(current))
    for path in mask:
        _set(result, given, path.split("."), BUDGET)
    return result


def _set(target: dict[str, Any], source: Fields, names: list[str], message: Message) -> None:
    name, *deeper = names
    if deeper:
        kind = message.fields[name]
        assert isinstance(kind, Message)
        _clear_siblings(target, name, message)
        _set(target.setdefault(name, {}), source.get(name, {}), deeper, kind)
    elif name in source:
        _clear_siblings(target, name, message)
        target[name] = deepcopy(source[name])
    else:
        target.pop(name, None)


def merged(current: Fields, given: Fields, message: Message = BUDGET) -> dict[str, Any]:
    """The current budget with what is given over it: messages by their fields, money too, and lists as a whole.

    So a 0 in what is given sets nothing.
    """
    result = deepcopy(dict(current))
    for name, value in given.items():
        kind = message.fields[name]
        _clear_siblings(result, name, message)
        if isinstance(kind, Message):
            result[name] = merged(result.get(name, {}), value, kind)
        else:
            result[name] = deepcopy(value)
    return result


def _clear_siblings(target: dict[str, Any], name: str, message: Message) -> None:
    """Setting one field of a oneof clears the others."""
    for members in message.oneofs.values():
        if name in members:
            for other in members - {name}:
                target.pop(other, None)
