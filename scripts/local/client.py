"""A real Firestore client of an emulator."""

import os

from google.cloud import firestore

from scripts.local.layout import PROJECT


def client_at(host: str) -> firestore.Client:
    """A client whose emulator is at `host`; the SDK takes the address from the environment alone."""
    before = os.environ.get("FIRESTORE_EMULATOR_HOST")
    os.environ["FIRESTORE_EMULATOR_HOST"] = host
    try:
        return firestore.Client(project=PROJECT)
    finally:
        if before is None:
            del os.environ["FIRESTORE_EMULATOR_HOST"]
        else:
            os.environ["FIRESTORE_EMULATOR_HOST"] = before
