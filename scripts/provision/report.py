"""What this tool looks at and never changes: App Check's enforcement, and API keys without restrictions."""

from collections.abc import Iterator, Mapping
from typing import Any

from scripts.provision.api import Api
from scripts.provision.failure import Failed
from scripts.provision.hosts import Hosts

_APPS = ("browserKeyRestrictions", "androidKeyRestrictions", "iosKeyRestrictions", "serverKeyRestrictions")


def report(api: Api, hosts: Hosts, project: str) -> list[str]:
    """One line for each thing that its owner should know."""
    return [
        *_read(api, f"{hosts.of('firebaseappcheck')}/v1/projects/{project}/services", "services", _app_check),
        *_read(api, f"{hosts.of('apikeys')}/v2/projects/{project}/locations/global/keys", "keys", _keys),
    ]


def _read(api: Api, url: str, field: str, tell: Any) -> list[str]:  # noqa: ANN401
    found: list[Mapping[str, Any]] = []
    params: dict[str, str | int] = {"pageSize": 300}
    try:
        while True:
            page = api.get(url, params)
            found += page.get(field, ())
            if not page.get("nextPageToken"):
                return list(tell(found))
            params |= {"pageToken": page["nextPageToken"]}
    except Failed as error:
        return [f"could not look at {field}: {error}"]


def _app_check(services: list[Mapping[str, Any]]) -> Iterator[str]:
    modes = {str(entry["name"]).rpartition("/")[2]: entry.get("enforcementMode", "OFF") for entry in services}
    modes.setdefault("firestore.googleapis.com", "OFF")
    for name, mode in sorted(modes.items()):
        if mode != "ENFORCED":
            yield f"App Check is {mode} for {name}: clients that reach it directly need no attestation"
    yield "App Check is enforced for the functions by their own code, always"


def _keys(keys: list[Mapping[str, Any]]) -> Iterator[str]:
    for key in keys:
        restrictions = key.get("restrictions", {})
        name = key.get("displayName") or str(key.get("name", "")).rpartition("/")[2]
        if not restrictions.get("apiTargets"):
            yield f"API key {name!r} may call every API that is enabled, Gemini's too: restrict it in the console"
        elif not any(restrictions.get(kind) for kind in _APPS):
            yield f"API key {name!r} may be used from anywhere: restrict it to your sites or apps"
