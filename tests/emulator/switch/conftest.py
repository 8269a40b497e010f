"""A switch of its own for each test: it is one document, so that each test has a database to itself."""

import uuid

import pytest
from google.cloud import firestore

from firebreak.switch.watch import Switch
from scripts.local.client import client_at
from tests.emulator.switch.hand import Hand
from tests.fault_proxy import FaultProxy


@pytest.fixture
def database() -> str:
    return f"switch-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def store(firestore_host: str, database: str) -> firestore.Client:
    """Straight to the emulator: for looking, and for acting as somebody else."""
    client = client_at(firestore_host, database=database)
    client.collection("warm").document("up").get()
    return client


@pytest.fixture
def proxied(faults: FaultProxy, database: str) -> firestore.Client:
    """Through the fault proxy, with all counters at 0."""
    client = client_at(faults.address, database=database)
    client.collection("warm").document("up").get()
    faults.clear()
    return client


@pytest.fixture
def hand() -> Hand:
    return Hand()


@pytest.fixture
def switch(proxied: firestore.Client, hand: Hand) -> Switch:
    """The switch under test: its every RPC goes through the proxy, its time is moved by hand."""
    return Switch(proxied, ttl_s=15, clock=hand.clock)
