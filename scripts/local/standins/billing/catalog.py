"""The catalog of the Cloud Billing API: which services there are, by their ids."""

from collections.abc import Iterator

from scripts.local.standins import page

# A cap can be put on these alone.
ELIGIBLE = frozenset({"AEFD-7695-64FA", "C7E2-9256-1C43", "152E-C115-5142", "29E7-DA93-CA13"})
_SERVICES = {
    "6F81-5844-456A": "Compute Engine",
    "95FF-2EF5-5EA1": "Cloud Storage",
    "24E6-581D-38E5": "BigQuery",
    "A1E8-BE35-7EBC": "Cloud Pub/Sub",
    "5490-F7B7-8DF6": "Cloud Logging",
    "EE2C-7FAC-5E08": "Cloud Firestore",
    "29E7-DA93-CA13": "Cloud Run Functions",
    "152E-C115-5142": "Cloud Run",
    "C7E2-9256-1C43": "Vertex AI",
    "AEFD-7695-64FA": "Gemini API",
}


class Catalog:
    """The services; display names may change, ids do not. A page holds `most` of them."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.services = dict(_SERVICES)
        self.most = 5000

    def page(self, size: int, token: str) -> dict[str, object]:
        """Raises GoogleError, 400."""
        found = page.cut(list(self._entries()), size, token, most=self.most)
        return {"services": found.items, **found.next}

    def _entries(self) -> Iterator[dict[str, str]]:
        for service_id, name in self.services.items():
            yield {
                "name": f"services/{service_id}",
                "serviceId": service_id,
                "displayName": name,
                "businessEntityName": "businessEntities/GCP",
            }
