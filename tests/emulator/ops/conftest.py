"""The operator's tool as its user runs it, against the emulator."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from google.cloud import firestore
from typer.testing import CliRunner

from firebreak.events import pseudonym
from firebreak.store.documents import document_id
from scripts.local.layout import PROJECT
from scripts.ops.__main__ import app


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a command ended."""

    status: int
    out: str
    said: str

    @property
    def data(self) -> dict[str, Any]:
        """What `--json` printed; nothing else may stand on stdout."""
        assert self.status == 0, self.said
        data: dict[str, Any] = json.loads(self.out)
        return data


type Ops = Callable[..., Ran]


def run(*words: str, env: Mapping[str, str | None]) -> Ran:
    """Run the command in this process."""
    result = CliRunner(env=env).invoke(app, words, catch_exceptions=False)
    return Ran(status=result.exit_code, out=result.stdout, said=result.stderr)


def ops_at(host: str) -> Ops:
    """Runs commands on the emulator at `host`, for the local project."""

    def ops(*words: str) -> Ran:
        return run(*words, "--project", PROJECT, env={"FIRESTORE_EMULATOR_HOST": host})

    return ops


@pytest.fixture
def ops(firestore_host: str, switch: firestore.DocumentReference) -> Ops:
    return ops_at(firestore_host)


@pytest.fixture
def switch(direct: firestore.Client) -> Iterator[firestore.DocumentReference]:
    """The document of the kill switch; there is none before the test, nor after it."""
    document: firestore.DocumentReference = direct.document("ops", "switch")
    document.delete()
    yield document
    document.delete()


@pytest.fixture
def records(direct: firestore.Client, uid: str) -> Callable[[], list[dict[str, Any]]]:
    """The records of what was changed about the user, in order."""

    def records() -> list[dict[str, Any]]:
        log = direct.collection("ops", "changes", "log")
        mine = log.where(filter=firestore.FieldFilter("user", "==", pseudonym(uid))).get()
        return sorted((record.to_dict() or {} for record in mine), key=lambda record: record["at"])

    return records


@pytest.fixture
def bucket(direct: firestore.Client, uid: str) -> firestore.DocumentReference:
    """The user's bucket."""
    document: firestore.DocumentReference = direct.collection("token_buckets").document(document_id(uid))
    return document
