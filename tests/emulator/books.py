"""What a user's documents say, read past the code under test."""

from dataclasses import dataclass
from typing import Any

from google.cloud import firestore


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """A user's bucket (None: no document) and calls by request id, as stored."""

    bucket: dict[str, Any] | None
    calls: dict[str, dict[str, Any]]

    @property
    def charged(self) -> int:
        """Tokens that the call documents say were charged."""
        return sum(call.get("actual", call["estimated"]) for call in self.calls.values())

    def statuses(self) -> list[str]:
        return sorted(call["status"] for call in self.calls.values())


def books(client: firestore.Client, user_key: str) -> Books:
    bucket = client.collection("token_buckets").document(user_key)
    return Books(
        bucket=bucket.get().to_dict(),
        calls={snapshot.id: snapshot.to_dict() or {} for snapshot in bucket.collection("calls").stream()},
    )
