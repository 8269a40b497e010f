"""The project that the tests of provisioning provision."""

from collections.abc import Iterator

import pytest

from scripts.local.client import client_at
from scripts.local.inject.raw_firestore import raw
from scripts.local.stack import Stack
from tests.e2e.provision.world import World


@pytest.fixture
def world(
    stack: Stack,
    tmp_path_factory: pytest.TempPathFactory,
    uid: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    """A project with nothing provisioned, and a file that wants two caps and an alert."""
    made = World(
        standins=stack.standins_url,
        firestore_host=stack.firestore_host,
        store=raw(client_at(stack.firestore_host), "looks at what is on record"),
        file=tmp_path_factory.mktemp("provision") / "firebreak.toml",
        topic=uid,
        capsys=capsys,
        monkeypatch=monkeypatch,
    )
    made.reset()
    made.write()
    yield made
    made.reset()
