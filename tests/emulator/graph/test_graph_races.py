"""Several callers of one user at once: each list is done whole or not at all, and no edge is left without an end."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from google.cloud import firestore

from firebreak import errors
from firebreak.metering.client import Metered
from tests.emulator.graph.user import User, delete_node, edge, node


def outcome(user: User, *operations: dict[str, Any]) -> str:
    """Try until it is decided."""
    for _ in range(100):
        try:
            return "done" if user.mutate(*operations, reads=5_000, writes=5_000).complete else "incomplete"
        except errors.Contention:
            continue
        except errors.InvalidField:
            return "misfit"
    return "undecided"


def test_an_edge_to_a_node_that_is_being_deleted_is_either_deleted_too_or_refused(
    user: User, straight: Metered, direct: firestore.Client
) -> None:
    rounds = 10
    start = threading.Barrier(2)
    user.mutate(*(node(f"n{n}") for n in range(rounds)), node("other"))

    def delete(number: int) -> str:
        start.wait()
        return outcome(user, delete_node(f"n{number}"))

    def join(number: int) -> str:
        start.wait()
        return outcome(user, edge(f"e{number}", "other", f"n{number}"), edge(f"f{number}", f"n{number}", "other"))

    with ThreadPoolExecutor(max_workers=2) as pool:
        for number in range(rounds):
            deleted, joined = pool.submit(delete, number), pool.submit(join, number)
            assert deleted.result() == "done"
            assert joined.result() in ("done", "misfit")

    assert set(user.nodes()) == {"other"}
    assert user.edges() == {}
    user.check()


def test_of_many_who_create_one_node_one_does(user: User) -> None:
    start = threading.Barrier(6)

    def create(number: int) -> str:
        start.wait()
        return outcome(user, node("a", label=str(number)), node(f"only-{number}"))

    with ThreadPoolExecutor(max_workers=6) as pool:
        outcomes = list(pool.map(create, range(6)))

    assert sorted(outcomes) == ["done"] + ["misfit"] * 5
    winner = outcomes.index("done")
    assert set(user.nodes()) == {"a", f"only-{winner}"}
    assert user.nodes()["a"]["label"] == str(winner)
    user.check()


def test_random_lists_of_three_callers_leave_a_whole_graph(user: User) -> None:
    names = [f"n{n}" for n in range(6)]

    def play(seed: int) -> set[str]:
        chance = random.Random(seed)
        outcomes = set()
        for turn in range(8):
            a, b = chance.choices(names, k=2)
            operations = [
                [node(a), node(b), edge(f"{seed}-{turn}", a, b)],
                [edge(f"{seed}-{turn}", a, b), edge(f"{seed}-{turn}-back", b, a)],
                [delete_node(a)],
                [delete_node(a), node(a), {"op": "move_node", "id": a, "position": {"x": turn, "y": seed}}],
            ]
            outcomes.add(outcome(user, *chance.choice(operations)))
        return outcomes

    with ThreadPoolExecutor(max_workers=3) as pool:
        outcomes = set().union(*pool.map(play, range(3)))

    assert outcomes <= {"done", "misfit"}
    assert "done" in outcomes
    user.check()
