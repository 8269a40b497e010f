"""Clients on the twin: the metered one that is shipped, and the SDK's own for looking past the meters."""

from functools import cached_property
from typing import Any, cast

from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from google.cloud.firestore_v1.base_client import DEFAULT_DATABASE
from google.cloud.firestore_v1.services.firestore import FirestoreClient

from firebreak.metering.client import Metered
from scripts.local.layout import PROJECT
from tests.twin.store import Twin
from tests.twin.wire import Network, Wire, reliable


class _MeteredOnTwin(Metered):
    def __init__(self, wire: Wire, database: str) -> None:
        super().__init__(project=PROJECT, credentials=_nobody(), database=database)
        self._twin = wire

    @cached_property
    def _wire(self) -> FirestoreClient:
        return cast("FirestoreClient", self._twin)


class _OnTwin(firestore.Client):
    def __init__(self, wire: Wire, database: str) -> None:
        super().__init__(project=PROJECT, credentials=_nobody(), database=database)
        self._twin = wire

    @property
    def _firestore_api(self) -> Any:
        return self._twin


def metered_on(twin: Twin, network: Network = reliable, *, database: str = DEFAULT_DATABASE) -> Metered:
    """The metered client, with nothing replaced but what it sends on."""
    return _MeteredOnTwin(Wire(twin, network), database)


def client_on(twin: Twin, network: Network = reliable, *, database: str = DEFAULT_DATABASE) -> firestore.Client:
    """The SDK's own client, for looking at the store and acting as somebody else."""
    return _OnTwin(Wire(twin, network), database)


def _nobody() -> Any:
    return AnonymousCredentials()  # type: ignore[no-untyped-call]  # google's
