"""Clients on the twin: the metered one that is shipped, and the SDK's own for looking past the meters."""

from functools import cached_property
from typing import Any, cast

from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from google.cloud.firestore_v1.base_client import DEFAULT_DATABASE
from google.cloud.firestore_v1.services.firestore import FirestoreClient

from firebreak.metering.firestore import Metered
from scripts.local.layout import PROJECT
from tests.twin.wire import Twin


class _MeteredOnTwin(Metered):
    def __init__(self, twin: Twin, database: str) -> None:
        super().__init__(project=PROJECT, credentials=_nobody(), database=database)
        self._twin = twin

    @cached_property
    def _wire(self) -> FirestoreClient:
        return cast("FirestoreClient", self._twin)


class _OnTwin(firestore.Client):
    def __init__(self, twin: Twin, database: str) -> None:
        super().__init__(project=PROJECT, credentials=_nobody(), database=database)
        self._twin = twin

    @property
    def _firestore_api(self) -> Any:
        return self._twin


def metered_on(twin: Twin, *, database: str = DEFAULT_DATABASE) -> Metered:
    """The metered client, with nothing replaced but what it sends on."""
    return _MeteredOnTwin(twin, database)


def client_on(twin: Twin, *, database: str = DEFAULT_DATABASE) -> firestore.Client:
    """The SDK's own client, for looking at the store and acting as somebody else."""
    return _OnTwin(twin, database)


def _nobody() -> Any:
    return AnonymousCredentials()  # type: ignore[no-untyped-call]  # google's
