"""An IAM policy as JSON: who has a role without conditions, and the same policy with one member more: pure."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

# Only a reader of version 3 gets the conditions of bindings, and so does not lose them in writing the policy back.
VERSION = 3


def has(policy: Mapping[str, Any], role: str, member: str) -> bool:
    """Whether the member has the role unconditionally, by name: groups are not looked into."""
    return any(member in binding.get("members", ()) for binding in _unconditional(policy, role))


def with_member(policy: Mapping[str, Any], role: str, member: str) -> dict[str, Any]:
    """The same policy, its etag too, with the member added to the role; every binding there is stays as it is."""
    grown = deepcopy(dict(policy))
    grown.setdefault("bindings", [])
    if any(binding.get("condition") for binding in grown["bindings"]):
        grown["version"] = VERSION
    for binding in _unconditional(grown, role):
        binding.setdefault("members", []).append(member)
        return grown
    grown["bindings"].append({"role": role, "members": [member]})
    return grown


def _unconditional(policy: Mapping[str, Any], role: str) -> list[Any]:
    return [b for b in policy.get("bindings", ()) if b.get("role") == role and not b.get("condition")]
