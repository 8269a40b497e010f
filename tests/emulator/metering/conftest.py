"""The metered client through the fault proxy, and a client past it: in a database of their own."""

import uuid

import pytest
from google.cloud import firestore

from firebreak.metering.client import Metered
from scripts.local.client import client_at, metered_at
from tests.emulator.metering.notes import fill
from tests.fault_proxy import FaultProxy

# Of this run: the emulator gets slow with all that it holds.
DATABASE = f"metering-{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def handlers(proxy: FaultProxy) -> Metered:
    """The metered client of handlers, through the proxy."""
    return metered_at(proxy.address, database=DATABASE)


@pytest.fixture(scope="session")
def aside(firestore_host: str) -> firestore.Client:
    """Straight to the emulator and past the meters: for filling, and for looking."""
    return client_at(firestore_host, database=DATABASE)


@pytest.fixture
def notes(aside: firestore.Client, faults: FaultProxy) -> firestore.CollectionReference:
    """A collection of its own, with the documents `d0` to `d4` {n: 0…4}, past the meters."""
    collection = aside.collection(f"notes-{uuid.uuid4().hex[:12]}")
    fill(collection, 5)
    return collection
