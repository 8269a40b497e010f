"""One `generate` as deployed, for the tests that speak HTTP to it."""

from collections.abc import Callable, Iterator

import pytest

from scripts.local.deployed import Deployed, deployed
from scripts.local.stack import Stack
from tests.conftest import SignedIn

type Headers = dict[str, str]


@pytest.fixture(scope="session")
def generate(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """`generate` under gunicorn; one server for all tests that do not need settings of their own."""
    with deployed("generate", stack, tmp_path_factory.mktemp("generate") / "log") as server:
        yield server


@pytest.fixture
def user(sign_up: Callable[[], SignedIn]) -> SignedIn:
    return sign_up()


@pytest.fixture
def headers(mint: Callable[..., str], user: SignedIn) -> Headers:
    """Of an attested, signed-in client."""
    return {"X-Firebase-AppCheck": mint(), "Authorization": f"Bearer {user.id_token}"}
