"""Users with a graph each; `user` goes straight to the emulator, `shaky` through the fault proxy."""

from collections.abc import Callable

import pytest
from google.cloud import firestore

from firebreak.metering.client import Metered
from scripts.local.layout import PROJECT
from tests.emulator.graph.user import User
from tests.fault_proxy import FaultProxy


@pytest.fixture(scope="session")
def metered_at() -> Callable[[str], Metered]:
    """Makes the handlers' client of an emulator; the SDK takes its address from the environment alone."""

    def client(host: str) -> Metered:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FIRESTORE_EMULATOR_HOST", host)
            return Metered(project=PROJECT)

    return client


@pytest.fixture(scope="session")
def straight(metered_at: Callable[[str], Metered], firestore_host: str) -> Metered:
    return metered_at(firestore_host)


@pytest.fixture(scope="session")
def proxied(metered_at: Callable[[str], Metered], proxy: FaultProxy) -> Metered:
    return metered_at(proxy.address)


@pytest.fixture
def user(straight: Metered, direct: firestore.Client, uid: str) -> User:
    return User(key=uid, client=straight, direct=direct)


@pytest.fixture
def shaky(proxied: Metered, direct: firestore.Client, faults: FaultProxy, uid: str) -> User:
    return User(key=uid, client=proxied, direct=direct)
