"""A user's graph as documents: where they lie, and which of their fields are the graph's."""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from google.cloud import firestore

UNREACHABLE = "The graph cannot be reached."
GRAPHS = "graphs"


class Kind(StrEnum):
    """A document's kind, which is the name of its collection."""

    NODE = "nodes"
    EDGE = "edges"


class Key(NamedTuple):
    """A document of one graph."""

    kind: Kind
    id: str


type Content = Mapping[str, Any]

FIELDS = {Kind.NODE: ("label", "properties", "position"), Kind.EDGE: ("from", "to", "label")}


def node(id_: str) -> Key:
    """The key of a node."""
    return Key(Kind.NODE, id_)


def edge(id_: str) -> Key:
    """The key of an edge."""
    return Key(Kind.EDGE, id_)


def graph_of(user_key: str, client: firestore.Client) -> firestore.DocumentReference:
    """The document that a user's nodes and edges lie under; there is no way from one user's to another's."""
    graph: firestore.DocumentReference = client.collection(GRAPHS).document(user_key)
    return graph


def document(graph: firestore.DocumentReference, key: Key) -> firestore.DocumentReference:
    """Where a node or an edge lies."""
    found: firestore.DocumentReference = graph.collection(key.kind.value).document(key.id)
    return found


def content(kind: Kind, data: Mapping[str, Any]) -> Content:
    """The graph's fields of a document; others, which somebody else has put there, are left alone."""
    return {name: data[name] for name in FIELDS[kind] if name in data}


def shown(key: Key, data: Mapping[str, Any]) -> dict[str, Any]:
    """A document as a client gets it; a value that is not JSON, which the graph cannot have written, is left out."""
    return {"id": key.id} | {name: value for name, value in content(key.kind, data).items() if _is_json(value)}


def same(one: Content | None, other: Content | None) -> bool:
    """Whether two contents are equal, and of equal types: to Python, but not to Firestore, 1 is 1.0 and True."""
    return _text(one) == _text(other)


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True
