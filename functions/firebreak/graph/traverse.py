"""The `traverse` callable: what is near some nodes of the caller's own graph, within bounds, and where to go on."""

from typing import Any

from google.cloud import firestore

from firebreak.bucket.answers import STORE_ERRORS, unavailable
from firebreak.graph.documents import UNREACHABLE, graph_of
from firebreak.graph.traversal import parse
from firebreak.graph.walk import Walk


def run(data: object, *, user_key: str, client: firestore.Client) -> dict[str, Any]:
    """Walk from `data.start`; the request's meters must be open.

    The result has `nodes`, `edges`, and `truncated`; if that is true `next` lists where edges were left unread, as
    items for the `start` of further calls. It is no snapshot: what is changed meanwhile may be seen by halves.

    Raises:
        InvalidField: a field is not valid; the message names it.
        StoreUnavailable: no answer.
        MeterExceeded: not even the nodes to start from can be read.
    """
    walk = Walk(client, graph_of(user_key, client), parse(data))
    try:
        walk.run()
    except STORE_ERRORS as error:
        raise unavailable(error, step="traverse", text=UNREACHABLE) from error
    result = {"nodes": list(walk.nodes.values()), "edges": walk.found_edges(), "truncated": bool(walk.unread)}
    return result | ({"next": [task.shown() for task in walk.unread]} if walk.unread else {})
