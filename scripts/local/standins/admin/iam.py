"""IAM policies of any resource: read, modify, write, guarded by an etag."""

import base64
import re
import secrets
from collections.abc import Callable
from typing import Any

from scripts.local.standins.google import GoogleError
from scripts.local.standins.jsonfront import ANY, INT32, STRING, Message, Repeated

_BINDING = Message({"role": STRING, "members": Repeated(STRING), "condition": ANY})
POLICY = Message({"version": INT32, "bindings": Repeated(_BINDING), "etag": STRING, "auditConfigs": ANY})
GET = Message({"options": Message({"requestedPolicyVersion": INT32})})
SET = Message({"policy": POLICY, "updateMask": STRING})
TEST = Message({"permissions": Repeated(STRING)})
_ROLE = re.compile(r"(projects/[^/]+/|organizations/[^/]+/)?roles/[\w.]+")
_MEMBER = re.compile(
    r"(user|group|serviceAccount|domain|principal|principalSet|deleted|projectOwner|projectEditor|"
    r"projectViewer):\S+|allUsers|allAuthenticatedUsers"
)
_EMPTY = "ACAB"


class Policies:
    """The policy of each resource by its name; one never set is empty. No member may be one that `is_missing`."""

    def __init__(self, is_missing: Callable[[str], bool]) -> None:
        self._is_missing = is_missing
        self.reset()

    def reset(self) -> None:
        self._policies: dict[str, dict[str, Any]] = {}

    def get(self, resource: str) -> dict[str, Any]:
        return self._policies.get(resource, {"etag": _EMPTY})

    def set(self, resource: str, given: dict[str, Any]) -> dict[str, Any]:
        """Replace it; without an etag whatever it is.

        Raises:
            GoogleError: 400, it is no policy; 409, the etag is an old one.
        """
        for binding in given.get("bindings", []):
            self._check(binding)
        if given.get("etag", self.get(resource)["etag"]) != self.get(resource)["etag"]:
            raise GoogleError(
                409,
                "There were concurrent policy changes. "
                "Please retry the whole read-modify-write with exponential backoff.",
            )
        bindings = [binding for binding in given.get("bindings", []) if binding.get("members")]
        policy = {"version": 1, "etag": _etag(), **({"bindings": bindings} if bindings else {})}
        self._policies[resource] = policy
        return policy

    def forget(self, resource: str) -> None:
        self._policies.pop(resource, None)

    def grant(self, resource: str, role: str, member: str) -> None:
        """Add one member, unless it has the role."""
        if not self.has(resource, role, member):
            bindings = [*self.get(resource).get("bindings", []), {"role": role, "members": [member]}]
            self.set(resource, {"bindings": bindings})

    def has(self, resource: str, role: str, member: str) -> bool:
        bindings = self.get(resource).get("bindings", [])
        return any(binding["role"] == role and member in binding["members"] for binding in bindings)

    def _check(self, binding: dict[str, Any]) -> None:
        role = binding.get("role", "")
        if not _ROLE.fullmatch(role):
            raise GoogleError(400, f"Role {role} is not supported for this resource.")
        for member in binding.get("members", []):
            if not _MEMBER.fullmatch(member):
                raise GoogleError(
                    400, f"The member {member} is of an unknown type. Please set a valid type prefix for it."
                )
            if self._is_missing(member):
                raise GoogleError(400, f"Service account {member.partition(':')[2]} does not exist.")


def _etag() -> str:
    return base64.b64encode(secrets.token_bytes(9)).decode()
