"""The edges of nodes that are to go, deleted page by page."""

from firebreak.graph.documents import edge
from firebreak.graph.draft import Draft
from firebreak.graph.mutation import Mutation

ENDS = ("from", "to")


def sweep(draft: Draft, mutation: Mutation) -> bool:
    """Queue the deletion of every stored edge of the draft's deleted nodes, but for those the draft decides on.

    Each full page is committed before the next is read. False: the request's meters leave no room for another page.
    """
    return all(_swept(draft, mutation, end, node_id) for node_id in draft.swept for end in ENDS)


def _swept(draft: Draft, mutation: Mutation, end: str, node_id: str) -> bool:
    after = ""
    while limit := mutation.room():
        page = mutation.page(end, node_id, after=after, limit=limit)
        for id_ in page:
            if edge(id_) not in draft.after:
                mutation.delete_edge(id_)
        if len(page) < limit:
            return True
        after = page[-1]
    return False
