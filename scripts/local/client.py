"""Real Firestore clients of an emulator: the SDK takes its address from the environment alone."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from google.cloud import firestore

from firebreak.metering.client import Metered
from scripts.local.inject.raw_firestore import raw
from scripts.local.layout import PROJECT


def client_at(
    host: str,
    *,
    because: str = "tests and scripts look at the store, and act as somebody else, past the meters",
    **options: Any,  # noqa: ANN401 - the SDK's own
) -> firestore.Client:
    """The SDK's own client of the emulator at `host`, which may do without meters: `because` says why."""
    with _emulator(host):
        return raw(firestore.Client(project=PROJECT, **options), because)


def metered_at(host: str, **options: Any) -> Metered:  # noqa: ANN401 - the SDK's own
    """The metered client of the emulator at `host`."""
    with _emulator(host):
        return Metered(project=PROJECT, **options)


@contextmanager
def _emulator(host: str) -> Iterator[None]:
    before = os.environ.get("FIRESTORE_EMULATOR_HOST")
    os.environ["FIRESTORE_EMULATOR_HOST"] = host
    try:
        yield
    finally:
        if before is None:
            del os.environ["FIRESTORE_EMULATOR_HOST"]
        else:
            os.environ["FIRESTORE_EMULATOR_HOST"] = before
