"""What this tool looks at and never changes: App Check's enforcement, and API keys that are a way past every limit."""

from collections.abc import Iterator, Mapping
from typing import Any

from scripts.provision.api import Api
from scripts.provision.config import Config
from scripts.provision.failure import Failed
from scripts.provision.hosts import Hosts

# The APIs that answer prompts: Gemini's own, Firebase AI Logic's, and Agent Platform's.
_MODELS = frozenset(
    f"{name}.googleapis.com" for name in ("generativelanguage", "firebasevertexai", "firebaseml", "aiplatform")
)
_CLIENTS = ("browserKeyRestrictions", "androidKeyRestrictions", "iosKeyRestrictions")
_APPS = (*_CLIENTS, "serverKeyRestrictions")


def report(api: Api, hosts: Hosts, project: str) -> list[str]:
    """One line for each thing that its owner should know."""
    return [
        *_read(api, f"{hosts.of('firebaseappcheck')}/v1/projects/{project}/services", "services", _app_check),
        *_read(api, f"{hosts.of('apikeys')}/v2/projects/{project}/locations/global/keys", "keys", _keys),
    ]


def counted(config: Config) -> list[str]:
    """Whether the alert budgets count what credits pay for: pure."""
    words = {
        "include": "subtracts credits and the free tier: while the credits of a trial last it stays silent, whatever "
        'is spent. credits = "exclude" counts all that is spent',
        "exclude": 'counts all that is spent, what credits pay for too (credits = "exclude")',
    }
    return [f"budgets.{key} {words[alert.credits]}" for key, alert in sorted(config.budgets.items())]


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
        apis = {str(target.get("service", "")) for target in restrictions.get("apiTargets", ())}
        if not apis:
            yield f"API key {name!r} may call every API that is enabled, Gemini's too: restrict it in the console"
        elif apis & _MODELS and not restrictions.get("serverKeyRestrictions"):
            yield _past_every_limit(name, sorted(apis & _MODELS), public=any(map(restrictions.get, _CLIENTS)))
        elif not any(map(restrictions.get, _APPS)):
            yield f"API key {name!r} may be used from anywhere: restrict it to your sites or apps"


def _past_every_limit(name: str, apis: list[str], *, public: bool) -> str:
    """A key of a site or an app is public; another is the secret GEMINI_API_KEY, or has no business with a client."""
    may = f"API key {name!r} may call {', '.join(apis)}"
    if public:
        return f"{may} from your sites or apps, past every limit here: take these APIs off its list in the console"
    return f"{may} from anywhere: unless it is the secret GEMINI_API_KEY, take these APIs off its list in the console"
