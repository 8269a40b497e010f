"""A user reaches their own graph and no other, whatever their ids are made of."""

import pytest
from google.cloud import firestore

from firebreak import errors
from firebreak.metering.client import Metered
from firebreak.store.documents import user_key
from tests.emulator.graph.user import User, delete_node, edge, hub, node

HOSTILE_UIDS = [
    "{}",
    "{}/nodes/a",
    "{}%2Fnodes%2Fa",
    "{}/..",
    "__{}__",
    "%5F_{}__",
    "{}.",
    "{}%2E",
    "*{}",
    "`{}`",
    "é{}",
]
HOSTILE_IDS = ["../b", "a/b", ".", "..", "__a__", "", "a" * 65, "é", "a b", "nodes/a", "a\n", "%2e", "*", "a\x00"]


def test_users_whose_ids_look_alike_share_nothing(straight: Metered, direct: firestore.Client, uid: str) -> None:
    users = [User(key=user_key(form.format(uid)), client=straight, direct=direct) for form in HOSTILE_UIDS]
    for number, user in enumerate(users):
        user.mutate(node("a", label=user.key), node(f"b{number}"), edge("e", "a", f"b{number}"))

    for number, user in enumerate(users):
        seen = user.traverse(start=["a", *(f"b{n}" for n in range(len(users)))], direction="both")

        assert seen.nodes() == {"a", f"b{number}"}
        assert seen.result["nodes"][0]["label"] == user.key
    for user in users[::2]:
        user.mutate(delete_node("a"))
    assert [len(user.edges()) for user in users] == [number % 2 for number in range(len(users))]


def test_two_users_with_the_same_ids_have_two_graphs(straight: Metered, direct: firestore.Client, uid: str) -> None:
    one, other = (User(key=f"{uid}-{n}", client=straight, direct=direct) for n in range(2))
    one.fill(hub(5))
    other.fill(hub(5))

    one.mutate(delete_node("hub"))

    assert set(one.nodes()) == {"rim"}
    assert len(other.edges()) == 5
    other.check()


@pytest.mark.parametrize("id_", HOSTILE_IDS)
def test_an_id_is_never_a_path(user: User, id_: str) -> None:
    for operation in (node(id_), edge(id_, "a", "b"), edge("e", id_, "a"), delete_node(id_)):
        with pytest.raises(errors.InvalidField):
            user.mutate(operation)
    with pytest.raises(errors.InvalidField):
        user.traverse(start=id_)
    with pytest.raises(errors.InvalidField):
        user.traverse(start={"id": "a", "direction": "out", "after": id_} if id_ else "")
