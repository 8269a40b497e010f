"""What a walk finds, what it costs, where it stops, and that a client who goes on from there misses nothing."""

from typing import Any

import pytest

from firebreak import errors
from graph.traverse import IN_MOST, MOST_STARTS
from tests.emulator.graph.user import Answer, User, edge, hub, node

#      a → b → c → d → a, and b → e, and x by itself
RING = {"ab": ("a", "b"), "bc": ("b", "c"), "cd": ("c", "d"), "da": ("d", "a"), "be": ("b", "e")}


@pytest.mark.parametrize(
    ("asked", "nodes", "edges", "reads"),
    [
        ({"start": "a"}, "ab", {"ab"}, 1 + 1 + 1),
        ({"start": "a", "depth": 2}, "abce", {"ab", "bc", "be"}, 1 + 1 + 1 + 2 + 2),
        ({"start": "a", "depth": 5}, "abcde", set(RING), 1 + 5 + 4),
        ({"start": "a", "direction": "in"}, "ad", {"da"}, 1 + 1 + 1),
        ({"start": "a", "direction": "both"}, "abd", {"ab", "da"}, 1 + 2 + 2),
        ({"start": ["a", "c"]}, "abcd", {"ab", "cd"}, 2 + 2 + 2),
        ({"start": "e"}, "e", set(), 1 + 1),
        ({"start": "x"}, "x", set(), 1 + 1),
        ({"start": "gone"}, "", set(), 1),
        ({"start": ["gone", "a"]}, "ab", {"ab"}, 2 + 1 + 1),
        ({"start": {"id": "a", "direction": "in"}}, "ad", {"da"}, 1 + 1 + 1),
        ({"start": "a", "label": "none such"}, "a", set(), 1 + 1),
    ],
)
def test_what_a_walk_finds_and_costs(
    user: User, asked: dict[str, Any], nodes: str, edges: set[str], reads: int
) -> None:
    user.fill(RING, "x")

    answer = user.traverse(**asked)

    assert answer.nodes() == set(nodes)
    assert answer.edges() == edges
    assert answer.result["truncated"] is False
    assert "next" not in answer.result
    assert answer.reads == reads


def test_nodes_and_edges_are_given_whole(user: User) -> None:
    user.mutate(
        node("a", label="A", properties={"a.b": [1, {"c": None}]}, position={"x": 1, "y": 2}),
        node("b"),
        edge("ab", "a", "b", label="knows"),
    )

    answer = user.traverse(start="a")

    assert answer.result == {
        "nodes": [
            {"id": "a", "label": "A", "properties": {"a.b": [1, {"c": None}]}, "position": {"x": 1.0, "y": 2.0}},
            {"id": "b", "label": "", "properties": {}},
        ],
        "edges": [{"id": "ab", "from": "a", "to": "b", "label": "knows"}],
        "truncated": False,
    }


def test_a_label_selects_edges_and_only_those_are_read(user: User) -> None:
    user.mutate(*(node(id_) for id_ in "abc"), edge("1", "a", "b", label="likes"), edge("2", "a", "c", label="hates"))

    answer = user.traverse(start="a", label="likes")

    assert answer.edges() == {"1"}
    assert answer.reads == 1 + 1 + 1


def all_of(user: User, *, at_once: int = MOST_STARTS, reads: int = 1_000, **asked: Any) -> list[Answer]:
    """What a client does: go on from what each answer leaves, until nothing is left."""
    answers = [user.traverse(reads=reads, **asked)]
    left = list(answers[0].result.get("next", []))
    while left:
        assert len(answers) < 500, "it goes round in circles"
        start, left = left[:at_once], left[at_once:]
        answers.append(user.traverse(reads=reads, **(asked | {"start": start})))
        left += answers[-1].result.get("next", [])
    return answers


@pytest.mark.parametrize(
    ("edges", "asked"),
    [(130, {"limit": 200}), (130, {"limit": 50}), (9, {"limit": 1}), (20, {"limit": 200, "reads": 9})],
)
@pytest.mark.parametrize("direction", ["out", "both"])
def test_a_hub_is_read_to_its_end(user: User, edges: int, asked: dict[str, Any], direction: str) -> None:
    user.fill({f"e{n:03}": ("hub", f"n{n:03}") for n in range(edges)} | {"in": ("n007", "hub")})

    answers = all_of(user, start="hub", direction=direction, **asked)

    assert set().union(*(answer.nodes() for answer in answers)) == set(user.nodes())
    found = set().union(*(answer.edges() for answer in answers))
    assert found == (set(user.edges()) if direction == "both" else set(user.edges()) - {"in"})
    assert all(answer.reads <= asked.get("reads", 1_000) for answer in answers)


def test_more_nodes_than_one_query_can_name_are_asked_for_in_several(user: User) -> None:
    spokes = range(IN_MOST + 5)
    user.fill({f"e{n}": ("hub", f"n{n}") for n in spokes} | {f"f{n}": (f"n{n}", f"m{n}") for n in spokes})

    answer = user.traverse(start="hub", depth=2, limit=200)

    assert answer.nodes() == set(user.nodes())
    assert answer.reads == 1 + 4 * len(spokes)
    assert answer.result["truncated"] is False


def test_each_start_goes_on_behind_its_own_edge(user: User) -> None:
    user.fill(hub(4, name="a") | hub(4, name="b") | hub(4, name="c"))

    answer = user.traverse(start=[{"id": "a", "after": "a-00002"}, {"id": "b", "after": "b-00001"}, "c"])

    assert sorted(answer.edges()) == ["a-00003", "b-00002", "b-00003", "c-00000", "c-00001", "c-00002", "c-00003"]


def test_edges_are_bounded_too_and_the_walk_goes_on_behind_the_last(user: User) -> None:
    user.fill(hub(23))

    first = user.traverse(start="hub", limit=2)
    answers = all_of(user, start="hub", limit=2)

    assert len(first.edges()) == 10
    assert first.result["next"] == [{"id": "hub", "direction": "out", "depth": 1, "after": "hub-00009"}]
    assert [len(answer.edges()) for answer in answers] == [10, 10, 3]


@pytest.mark.parametrize(
    ("depth", "limit", "at_once"), [(2, 3, 1), (2, 1, MOST_STARTS), (4, 4, MOST_STARTS), (4, 50, MOST_STARTS)]
)
def test_a_walk_that_is_cut_short_and_gone_on_with_misses_nothing(
    user: User, depth: int, limit: int, at_once: int
) -> None:
    tree = {f"e{n:03}": (f"n{(n - 1) // 3}", f"n{n}") for n in range(1, 25)}
    user.fill(tree | {"back": ("n20", "n0"), "side": ("n1", "n2")})
    whole = user.traverse(start="n0", depth=depth, limit=200)

    answers = all_of(user, start="n0", depth=depth, limit=limit, at_once=at_once)

    assert whole.result["truncated"] is False
    assert set().union(*(answer.nodes() for answer in answers)) >= whole.nodes()
    assert set().union(*(answer.edges() for answer in answers)) >= whole.edges()


@pytest.mark.parametrize("reads", range(1, 26, 2))
def test_at_the_end_of_its_reads_a_walk_is_truncated_not_refused(user: User, reads: int) -> None:
    user.fill(RING)

    answer = user.traverse(start="a", depth=5, direction="both", reads=reads)

    assert answer.reads <= reads
    assert answer.result["truncated"] or answer.edges() == set(RING)
    assert answer.nodes() >= {"a"}
    assert {end for each in answer.result["edges"] for end in (each["from"], each["to"])} <= answer.nodes()


def test_reads_that_do_not_even_cover_the_start_are_the_meters(user: User) -> None:
    with pytest.raises(errors.ReadsExceeded):
        user.traverse(start=["a", "b"], reads=1)


def test_a_hundred_starts_cannot_be_asked_for(user: User) -> None:
    with pytest.raises(errors.InvalidField, match=r"^start: must be a list of 1 to 30$"):
        user.traverse(start=[f"n{n}" for n in range(100)])


def test_what_the_graph_cannot_have_written_breaks_no_walk(user: User) -> None:
    """Documents that somebody has made in the console, or in code of their own."""
    user.fill({"ab": ("a", "b")})
    edges, nodes = user.graph.collection("edges"), user.graph.collection("nodes")
    nodes.document("b").set({"label": 7, "properties": {"at": user.graph.get().read_time, "nan": float("nan")}})
    edges.document("1").set({"from": "a", "to": "x/y"})
    edges.document("2").set({"from": "a", "to": 5})
    edges.document("3").set({"from": "a"})
    edges.document("4").set({"from": "a", "to": "gone", "label": b"bytes"})
    edges.document("5").set({"from": "a", "to": "b", "label": b"bytes"})

    answer = user.traverse(start="a", depth=5)

    assert answer.result["nodes"] == [{"id": "a", "label": "", "properties": {}}, {"id": "b", "label": 7}]
    assert answer.edges() == {"ab", "5"}
    assert answer.result["truncated"] is False
