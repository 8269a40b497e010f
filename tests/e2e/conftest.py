"""One `generate` as deployed, for the tests that speak HTTP to it."""

import time
from collections.abc import Callable, Iterator
from http import HTTPStatus

import pytest

from scripts.clients.tokens import headers as tokens_of
from scripts.local import wire
from scripts.local.deployed import Deployed, deployed
from scripts.local.stack import Stack
from tests.conftest import SignedIn

type Headers = dict[str, str]

WARM_S = 60


@pytest.fixture(scope="session")
def generate(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """`generate` under gunicorn; one server for all tests that do not need settings of their own."""
    with deployed("generate", stack, tmp_path_factory.mktemp("generate") / "log") as server:
        _warm_up(server, tokens_of(stack.standins_url, "the-first"))
        yield server


def _warm_up(server: Deployed, sent: Headers) -> None:
    """The first requests of a cold instance may find the store too slow; that is for tests of its own."""
    end = time.monotonic() + WARM_S
    while (
        wire.call("POST", server.url, {"data": {}}, headers=sent, timeout_s=WARM_S).status
        == HTTPStatus.SERVICE_UNAVAILABLE
    ):
        assert time.monotonic() < end, server.log


@pytest.fixture
def user(sign_up: Callable[[], SignedIn]) -> SignedIn:
    return sign_up()


@pytest.fixture
def headers(mint: Callable[..., str], user: SignedIn) -> Headers:
    """Of an attested, signed-in client."""
    return {"X-Firebase-AppCheck": mint(), "Authorization": f"Bearer {user.id_token}"}
