"""A Firestore call past the metered client fails, and names the file and line that made it."""

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import firebase_admin
import firebase_admin.firestore
import pytest
from firebase_admin import credentials
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

from firebreak.metering.client import Metered
from firebreak.metering.meter import NoMeter
from scripts.local.client import client_at
from scripts.local.inject.raw_firestore import FAILED, RawFirestore, raw
from scripts.local.layout import PROJECT, ROOT

NOBODY = "127.0.0.1:9"
CALLS: dict[str, Callable[[Any], object]] = {
    "get": lambda client: client.document("users/u").get(),
    "set": lambda client: client.document("users/u").set({"n": 1}),
    "create": lambda client: client.document("users/u").create({"n": 1}),
    "update": lambda client: client.document("users/u").update({"n": 1}),
    "delete": lambda client: client.document("users/u").delete(),
    "add": lambda client: client.collection("users").add({"n": 1}),
    "stream": lambda client: list(client.collection("users").stream()),
    "query": lambda client: client.collection("users").limit(1).get(),
    "collection group": lambda client: client.collection_group("users").get(),
    "count": lambda client: client.collection("users").count().get(),
    "get_all": lambda client: list(client.get_all([client.document("users/u")])),
    "list_documents": lambda client: list(client.collection("users").list_documents()),
    "collections": lambda client: list(client.collections()),
    "batch": lambda client: client.batch().commit(),
    "transaction": lambda client: client.transaction()._begin(),
    "listener": lambda client: client.document("users/u").on_snapshot(print),
    "partitions": lambda client: list(client.collection_group("users").get_partitions(2)),
    "the rpc itself": lambda client: client._firestore_api.commit({}),
}


@pytest.fixture(autouse=True)
def forgotten(metered_only: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody listens at the emulator's address, and what fails here is meant to."""
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", NOBODY)
    before = len(FAILED)
    yield
    del FAILED[before:]


class Nobody(credentials.Base):  # type: ignore[misc]  # firebase_admin ships no types
    def get_credential(self) -> AnonymousCredentials:
        return AnonymousCredentials()  # type: ignore[no-untyped-call]  # google's


@pytest.fixture
def of_firebase_admin() -> Iterator[firestore.Client]:
    app = firebase_admin.initialize_app(Nobody(), {"projectId": PROJECT}, "guarded")
    yield firebase_admin.firestore.client(app)
    firebase_admin.delete_app(app)


@pytest.mark.parametrize("name", CALLS)
def test_every_call_of_the_sdks_own_client_fails_and_names_its_line(name: str) -> None:
    client = firestore.Client(project=PROJECT)

    with pytest.raises(RawFirestore, match=r"raw\(client") as caught:
        CALLS[name](client)

    line = CALLS[name].__code__.co_firstlineno
    assert str(caught.value).startswith(f"{__file__}:{line}: ")


def test_so_does_a_client_of_firebase_admin(of_firebase_admin: firestore.Client) -> None:
    with pytest.raises(RawFirestore, match=__file__):
        of_firebase_admin.document("users/u").get()


def test_so_does_an_asynchronous_client() -> None:
    async def get() -> None:
        await firestore.AsyncClient(project=PROJECT).document("users/u").get()

    with pytest.raises(RawFirestore, match=f"{__file__}:{get.__code__.co_firstlineno + 1}"):
        asyncio.run(get())


def test_a_failure_that_is_swallowed_is_not_forgotten() -> None:
    before = len(FAILED)

    with suppress(Exception):
        firestore.Client(project=PROJECT).document("users/u").get()

    assert len(FAILED) == before + 1


def test_a_metered_client_is_let_through_to_its_meters() -> None:
    with pytest.raises(NoMeter):
        Metered(project=PROJECT).document("users/u").get()
    with pytest.raises(NoMeter):
        Metered(project=PROJECT).guards().document("users/u").get()

    assert FAILED == []


def test_a_client_that_says_why_is_let_through() -> None:
    client = raw(firestore.Client(project=PROJECT), "tests this")

    with pytest.raises(Exception, match="failed to connect"):
        client.document("users/u").get(retry=None, timeout=5)


def test_no_reason_is_none() -> None:
    with pytest.raises(ValueError, match="reason"):
        raw(firestore.Client(project=PROJECT), " ")
    with pytest.raises(ValueError, match="reason"):
        client_at(NOBODY, because="")


def test_only_the_metered_client_itself_knows_the_way_to_the_wire() -> None:
    folder = ROOT / "functions" / "firebreak"
    wire = re.compile(r"firestore_v1\.services|_firestore_api_helper|_firestore_api_internal")

    knowing = {str(path.relative_to(folder)) for path in folder.rglob("*.py") if wire.search(path.read_text())}

    assert knowing == {"metering/api.py", "metering/client.py"}
