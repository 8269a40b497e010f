"""The fixtures of the emulator's tests, on a store in memory whose time is moved by hand and by pauses."""

import time

import pytest
from google.cloud import firestore

from firebreak.bucket.ledger import Ledger
from firebreak.metering.client import Metered
from firebreak.switch.watch import Switch
from tests.emulator.graph.user import User
from tests.emulator.metering.notes import fill
from tests.emulator.switch.hand import Hand
from tests.twin.client import client_on, metered_on
from tests.twin.clock import Virtual
from tests.twin.faults import Faults
from tests.twin.store import Twin

# Pauses move the store's time on, and it must not overtake the clock on the wall, which some tests look at.
BEHIND_US = 60_000_000


class Shifted:
    """The instance's monotonic clock, which a test can move against the store's."""

    def __init__(self, virtual: Virtual) -> None:
        self._virtual = virtual
        self.by = 0.0

    def __call__(self) -> float:
        return self._virtual.monotonic() + self.by


@pytest.fixture
def virtual() -> Virtual:
    return Virtual(time.time_ns() // 1_000 - BEHIND_US)


@pytest.fixture
def twin(virtual: Virtual) -> Twin:
    return Twin(virtual.now_us)


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def direct(twin: Twin) -> firestore.Client:
    """For looking, and for acting as somebody else: no fault meets it."""
    return client_on(twin)


@pytest.fixture
def through_proxy(twin: Twin, faults: Faults) -> firestore.Client:
    return client_on(twin, faults)


@pytest.fixture
def ledger(through_proxy: firestore.Client, virtual: Virtual) -> Ledger:
    return Ledger(through_proxy, virtual.clock)


@pytest.fixture
def shifted(virtual: Virtual) -> Shifted:
    return Shifted(virtual)


@pytest.fixture
def full_pool() -> None:
    """It is full anyway."""


@pytest.fixture
def store(direct: firestore.Client) -> firestore.Client:
    return direct


@pytest.fixture
def proxied(through_proxy: firestore.Client) -> firestore.Client:
    return through_proxy


@pytest.fixture
def straight(twin: Twin) -> Metered:
    return metered_on(twin)


@pytest.fixture
def user(straight: Metered, direct: firestore.Client, uid: str) -> User:
    return User(key=uid, client=straight, direct=direct)


@pytest.fixture
def shaky(twin: Twin, direct: firestore.Client, faults: Faults, virtual: Virtual, uid: str) -> User:
    return User(key=uid, client=metered_on(twin, faults), direct=direct, clock=virtual.clock)


@pytest.fixture
def handlers(twin: Twin, faults: Faults) -> Metered:
    return metered_on(twin, faults)


@pytest.fixture
def aside(direct: firestore.Client) -> firestore.Client:
    return direct


@pytest.fixture
def notes(aside: firestore.Client) -> firestore.CollectionReference:
    """`d0` to `d4`, {n: 0…4}."""
    collection = aside.collection("notes")
    fill(collection, 5)
    return collection


@pytest.fixture
def hand() -> Hand:
    return Hand()


@pytest.fixture
def switch(proxied: firestore.Client, hand: Hand) -> Switch:
    return Switch(proxied, ttl_s=15, clock=hand.clock)
