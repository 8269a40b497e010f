"""TTL policies of Firestore: which collection groups `firestore.indexes.json` wants them for, and setting them."""

import json
from dataclasses import dataclass
from pathlib import Path

from scripts.provision.api import Api
from scripts.provision.failure import NoAnswer
from scripts.provision.hosts import Hosts

FIELD = "expireAt"
_TRIES = 4


def groups(indexes: Path) -> tuple[str, ...]:
    """The collection groups whose documents expire."""
    overrides = json.loads(indexes.read_text())["fieldOverrides"]
    named = [entry["collectionGroup"] for entry in overrides if entry.get("ttl") and entry["fieldPath"] == FIELD]
    return tuple(sorted(named))


@dataclass(frozen=True, slots=True)
class Ttl:
    """Of the default database of one project; setting a policy again is harmless."""

    api: Api
    hosts: Hosts
    project: str

    def is_set(self, group: str) -> bool:
        """Whether new documents expire; Google may still be working through the old ones. Raises Failed."""
        return "ttlConfig" in self.api.get(self._url(group))

    def set(self, group: str) -> None:
        """Set it, and nothing else of the field; Google applies it over minutes or hours.

        Raises:
            Failed: Google does not take it.
        """
        for number in range(_TRIES):
            try:
                self.api.send("PATCH", self._url(group), {"ttlConfig": {}}, params={"updateMask": "ttlConfig"})
            except NoAnswer:
                if number == _TRIES - 1:
                    raise
                self.api.clock.sleep(2**number)
            else:
                return

    def _url(self, group: str) -> str:
        database = f"projects/{self.project}/databases/(default)"
        return f"{self.hosts.of('firestore')}/v1/{database}/collectionGroups/{group}/fields/{FIELD}"
