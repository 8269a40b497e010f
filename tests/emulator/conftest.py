"""Firestore clients of the emulator tests: one straight to the emulator, one through the fault proxy."""

from collections.abc import Iterator

import pytest
from google.cloud import firestore

from firebreak.bucket.ledger import Ledger
from scripts.local.client import client_at
from scripts.local.stack import Stack
from tests.emulator.shifted import Shifted
from tests.fault_proxy import FaultProxy


@pytest.fixture(scope="session")
def firestore_host(stack: Stack) -> str:
    return stack.firestore_host


@pytest.fixture(scope="session")
def direct(firestore_host: str) -> firestore.Client:
    """Straight to the emulator: for looking, and for acting as somebody else."""
    client = client_at(firestore_host)
    # The emulator's first calls are slow, and no test of a deadline is about that.
    client.collection("warm").document("up").set({"n": firestore.Increment(1)})
    return client


@pytest.fixture(scope="session")
def proxy(firestore_host: str, direct: firestore.Client) -> Iterator[FaultProxy]:
    with FaultProxy(firestore_host).running() as running:
        yield running


@pytest.fixture(scope="session")
def through_proxy(proxy: FaultProxy) -> firestore.Client:
    return client_at(proxy.address, because="the ledger's own tests count its calls at the wire")


@pytest.fixture
def faults(proxy: FaultProxy) -> Iterator[FaultProxy]:
    """The proxy, with nothing planned and all counters at 0."""
    proxy.clear()
    yield proxy
    proxy.clear()


@pytest.fixture
def ledger(through_proxy: firestore.Client, faults: FaultProxy) -> Ledger:
    """The ledger under test: its every RPC goes through the proxy."""
    return Ledger(through_proxy)


@pytest.fixture
def full_pool(direct: firestore.Client) -> Iterator[None]:
    """No document of the pool, before and after: it is full, and the functions of the stack find it so again."""
    _forget_pool(direct)
    yield
    _forget_pool(direct)


def _forget_pool(client: firestore.Client) -> None:
    for document in client.collection("pool").list_documents():
        document.delete()


@pytest.fixture
def shifted() -> Shifted:
    return Shifted()
