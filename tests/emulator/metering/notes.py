"""Documents to read."""

from google.cloud import firestore


def fill(collection: firestore.CollectionReference, count: int, *, start: int = 0) -> None:
    """Put documents `d0`… {n: 0…} into the collection, past the meters."""
    batch = collection._client.batch()
    for n in range(start, start + count):
        batch.set(collection.document(f"d{n}"), {"n": n})
    batch.commit()
