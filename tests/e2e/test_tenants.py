"""Users of tenants, as deployed: refused unless their tenant is named, and kept apart from all others."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from google.cloud import firestore as google_firestore

from scripts.clients import tokens
from scripts.local import wire
from scripts.local.deployed import Deployed, deployed
from scripts.local.stack import Stack
from tests.conftest import StandIn

TENANTS = ("acme", "globex")
HELLO = {"prompt": "hi", "maxOutputTokens": 100, "requestId": "same"}
ALICES = (None, *TENANTS)

type Json = Any
type Post = Callable[[Deployed, str | None, Json], wire.Answer]


@pytest.fixture(scope="module")
def servers(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Deployed]]:
    """The callables that keep something of a user, where two tenants may call."""
    folder, env = tmp_path_factory.mktemp("tenants"), {"ALLOWED_TENANTS": ",".join(TENANTS)}
    with ExitStack() as running:
        yield {
            name: running.enter_context(deployed(name, stack, folder / name, env=env))
            for name in ("generate", "usage", "mutate", "traverse")
        }


@pytest.fixture
def post(stack: Stack, uid: str) -> Post:
    """Sends `data` as the user `uid` of a tenant, or of none."""

    def post(server: Deployed, tenant: str | None, data: Json) -> wire.Answer:
        headers = tokens.headers(stack.standins_url, uid, stack.project, tenant=tenant)
        return wire.call("POST", server.url, {"data": data}, headers=headers)

    return post


def test_users_of_one_uid_share_nothing_across_tenants(
    servers: dict[str, Deployed],
    post: Post,
    uid: str,
    gemini: StandIn,
    firestore: Callable[..., google_firestore.Client],
) -> None:
    answers = [post(servers["generate"], tenant, HELLO) for tenant in ALICES]
    for tenant in ALICES:
        label = tenant or "none"
        post(servers["mutate"], tenant, {"operations": [{"op": "create_node", "id": label, "label": label}]})
    calls = [len(post(servers["usage"], tenant, {}).json["result"]["recent"]) for tenant in ALICES]
    graphs = [post(servers["traverse"], tenant, {"start": ["none", *TENANTS]}) for tenant in ALICES]

    assert [answer.status for answer in answers] == [200] * 3
    assert len({answer.json["result"]["remaining"] for answer in answers}) == 1
    assert calls == [1, 1, 1]
    assert [[node["id"] for node in graph.json["result"]["nodes"]] for graph in graphs] == [
        ["none"],
        ["acme"],
        ["globex"],
    ]
    for collection in ("token_buckets", "request_buckets", "graphs"):
        documents = [firestore().document(collection, key) for key in (uid, f"acme.{uid}", f"globex.{uid}")]
        assert all(document.get().exists for document in documents)
    users = {json.loads(line)["user"] for line in servers["generate"].log.splitlines() if '"firebreak.request"' in line}
    assert len(users) == 3


@pytest.mark.parametrize("tenant", ["initech", "acme,globex", ""])
def test_a_tenant_that_is_not_named_is_refused(
    servers: dict[str, Deployed], post: Post, gemini: StandIn, tenant: str
) -> None:
    answer = post(servers["generate"], tenant, HELLO)

    assert (answer.status, answer.json["error"]["details"]) == (401, {"reason": "sign-in"})
    assert "ALLOWED_TENANTS" in answer.json["error"]["message"]
    assert gemini.log() == []


def test_without_the_setting_every_tenant_is_refused(generate: Deployed, post: Post) -> None:
    assert post(generate, "acme", HELLO).status == 401


def test_a_revoked_user_is_looked_for_in_their_tenant(
    stack: Stack, post: Post, uid: str, gemini: StandIn, tmp_path: Any
) -> None:
    auth = f"http://{stack.auth_host}/identitytoolkit.googleapis.com"

    def admin(path: str, body: Json) -> Json:
        answer = wire.call("POST", f"{auth}/{path}", body, headers={"Authorization": "Bearer owner"})
        assert answer.status == 200, answer.body
        return answer.json

    name = admin(f"v2/projects/{stack.project}/tenants", {"displayName": "acme"})["name"]
    tenant = name.rpartition("/")[2]
    users = f"v1/projects/{stack.project}/tenants/{tenant}/accounts"
    # Another user of the same uid, whom the project itself knows.
    admin(f"v1/projects/{stack.project}/accounts", {"localId": uid, "disabled": True})
    env = {"ALLOWED_TENANTS": tenant, "CHECK_REVOKED": "true"}
    with deployed("usage", stack, tmp_path / "log", env=env) as server:
        unknown = post(server, tenant, {}).status
        admin(users, {"localId": uid})
        known, other = post(server, tenant, {}).status, post(server, None, {}).status
        admin(f"{users}:update", {"localId": uid, "disableUser": True})
        disabled = post(server, tenant, {}).status

    assert (unknown, known, other, disabled) == (401, 200, 401, 401)
