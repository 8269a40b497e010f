"""The Google services that money can be bounded for: our word, the catalog's id and name, and whether a cap exists."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """`names` matches what the catalog may call it; `scope` is the kill switch's, None where no cap can exist."""

    key: str
    id: str
    names: re.Pattern[str]
    words: str
    scope: str | None = None


def _service(key: str, id_: str, names: str, words: str, scope: str | None = None) -> Service:
    return Service(key=key, id=id_, names=re.compile(names, re.IGNORECASE), words=words, scope=scope)


GEMINI = _service(
    "gemini",
    "AEFD-7695-64FA",
    r"(Gemini|Generative Language) API",
    "Gemini API: `generate`, and AI Logic on the Gemini Developer API",
    "gemini",
)
AGENT_PLATFORM = _service(
    "agent-platform",
    "C7E2-9256-1C43",
    r".*\b(Vertex AI|Agent Platform)\b.*",
    "Agent Platform, formerly Vertex AI: GEMINI_BACKEND=vertex, and AI Logic on Vertex AI",
    "gemini",
)
RUN = _service("run", "152E-C115-5142", r"Cloud Run", "Cloud Run: App Hosting, and possibly functions", "all")
FUNCTIONS = _service(
    "functions", "29E7-DA93-CA13", r"Cloud (Run )?functions", "Cloud Run functions: this backend itself", "all"
)
FIRESTORE = _service("firestore", "EE2C-7FAC-5E08", r"(Google )?Cloud Firestore", "Cloud Firestore")

SERVICES: Mapping[str, Service] = {s.key: s for s in (GEMINI, AGENT_PLATFORM, RUN, FUNCTIONS, FIRESTORE)}
CAPPED: Mapping[str, Service] = {key: service for key, service in SERVICES.items() if service.scope}

NO_FIRESTORE_CAP = (
    "Firestore has no spend cap: Google caps only Gemini API, Agent Platform, Cloud Run and Cloud Run functions. "
    "Use [budgets.firestore] for an alert; what stops a loop there are MAX_REQUEST_READS and MAX_REQUEST_WRITES"
)


def known(key: str, services: Mapping[str, Service]) -> Service:
    """The service of this key.

    Raises:
        ValueError: there is none; the message names those there are.
    """
    if key in services:
        return services[key]
    near = get_close_matches(key, services, 1, 0.6)
    meant = f"; did you mean {near[0]}?" if near else ""
    raise ValueError(f"is no service known here; there are {', '.join(services)}{meant}")


def mismatch(service: Service, catalog: Iterable[Mapping[str, Any]], *, confirmed: str | None) -> str | None:
    """How the catalog contradicts what is known of a service, None if it does not.

    Args:
        service: as known here.
        catalog: `services` of the Cloud Billing API.
        confirmed: the id that the file gives; then the catalog's name of it does not matter.
    """
    names = {str(entry.get("serviceId")): str(entry.get("displayName")) for entry in catalog}
    wanted = confirmed or service.id
    if wanted not in names:
        named = sorted(id_ for id_, name in names.items() if service.names.fullmatch(name))
        others = f"it gives such a name to {', '.join(named)}; " if named else ""
        return (
            f"the catalog has no service {wanted}; {others}name the right id in the file: [services] {service.key} = …"
        )
    if confirmed or service.names.fullmatch(names[wanted]):
        return None
    return (
        f"the catalog calls {wanted} {names[wanted]!r}, which is not {service.words}; "
        f'if the id is right, confirm it in the file: [services] {service.key} = "{wanted}"'
    )
