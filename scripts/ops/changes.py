"""What was changed, by whom and why: a record of each change is kept for a year."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from google.cloud import firestore

from firebreak.switch.change import CHANGES, LOG
from firebreak.switch.documents import OPS
from scripts.ops import text
from scripts.ops.options import AsJson, Project
from scripts.ops.pages import pages
from scripts.ops.session import session

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=__doc__)


@app.callback()
def noun() -> None:
    """What was changed, by whom and why: a record of each change is kept for a year."""


@app.command()
def show(
    project: Project,
    most: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Changes read and shown, newest first.")] = 20,
    as_json: AsJson = False,
) -> None:
    """The last changes, those of budgets and caps too."""
    with session(project, as_json=as_json) as at:
        log = at.client.collection(OPS).document(CHANGES).collection(LOG)
        newest = log.order_by("at", direction=firestore.Query.DESCENDING)
        found = [snapshot.to_dict() or {} for page in pages(newest, most) for snapshot in page]
        rows = [(text.stamp(c.get("at")), c.get("what"), _whose(c), c.get("by"), c.get("reason")) for c in found]
        at.show({"changes": found}, text.table("Changes", "at,what,whose,by,reason", rows))


def _whose(change: Mapping[str, Any]) -> str:
    """The user's pseudonym, or the switch's scope and owner."""
    return " ".join(str(change[name]) for name in ("user", "scope", "owner") if name in change)
