"""Clients of the app can read and write nothing in Firestore, signed in or not."""

import base64
import json
from collections.abc import Callable

import pytest
from google.cloud import firestore as google_firestore

from scripts.local.stack import Stack
from scripts.local.wire import Answer, call
from tests.conftest import SignedIn

DOCUMENT = {"fields": {"tokens": {"integerValue": "1000000"}}}


def as_client(stack: Stack, user: SignedIn | None, method: str, path: str, body: object = None) -> Answer:
    """What the web SDK does: the REST API with the user's ID token, which the emulator holds against the rules."""
    url = f"http://{stack.firestore_host}/v1/projects/{stack.project}/databases/(default)/documents{path}"
    return call(method, url, body, headers={"Authorization": f"Bearer {user.id_token}"} if user else {})


@pytest.mark.parametrize(
    "path", ["/token_buckets/{uid}", "/token_buckets/{uid}/calls/1", "/ops/switch", "/anything/{uid}"]
)
@pytest.mark.parametrize("signed_in", [True, False])
def test_clients_are_denied(
    stack: Stack,
    sign_up: Callable[[], SignedIn],
    firestore: Callable[..., google_firestore.Client],
    path: str,
    signed_in: bool,
) -> None:
    user = sign_up()
    path = path.format(uid=user.uid)
    firestore().document(path[1:]).set({"tokens": 5})
    client = user if signed_in else None

    answers = [
        as_client(stack, client, "GET", path),
        as_client(stack, client, "GET", path.rsplit("/", 1)[0]),
        as_client(stack, client, "PATCH", path, DOCUMENT),
        as_client(stack, client, "DELETE", path),
        as_client(
            stack, client, "POST", ":runQuery", {"structuredQuery": {"from": [{"collectionId": "token_buckets"}]}}
        ),
    ]

    assert [answer.status for answer in answers] == [403] * 5
    assert firestore().document(path[1:]).get().to_dict() == {"tokens": 5}


def test_the_token_is_one_that_the_emulator_takes(stack: Stack, sign_up: Callable[[], SignedIn]) -> None:
    claims = sign_up().id_token.split(".")[1]
    decoded = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))

    assert decoded["aud"] == stack.project
