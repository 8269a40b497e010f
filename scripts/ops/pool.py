"""The app's tokens of this hour, for all users together."""

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass

import typer
from google.cloud import firestore

from firebreak.limits import credit, lease
from firebreak.limits.lease import LevelDocument, Levels
from firebreak.limits.pool import COLLECTION, COMMON, SHARDS, Share, divide
from firebreak.store.documents import document_id
from scripts.ops import text
from scripts.ops.limits import settings
from scripts.ops.options import AsJson, Project
from scripts.ops.rpc import RPC_S, patiently
from scripts.ops.session import session

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=__doc__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What is left of a share, of how many tokens an hour."""

    share: str
    tokens: int
    limit: int
    percent: int


@app.callback()
def noun() -> None:
    """The app's tokens of this hour, for all users together."""


@app.command()
def show(project: Project, as_json: AsJson = False) -> None:
    """What is left of each share as of now; one read for each shard.

    What instances have leased is gone from here already, spent or not.
    """
    with session(project, as_json=as_json) as at:
        knobs = settings(project)
        shards, broken, at_us = _shards(at.client)
        rows = [
            _left(name, share, shards, at_us)
            for name, share in divide(knobs.pool_tokens_per_hour, knobs.pool_shares).items()
        ]
        total = _of("total", sum(row.tokens for row in rows), sum(row.limit for row in rows))
        data = {"shares": [asdict(row) for row in rows], "total": asdict(total), "broken": broken}
        columns = "share,left>,of an hour's>,percent>"
        at.show(data, text.table("Tokens of the pool", columns, (astuple(row) for row in (*rows, total))))
        if not knobs.pool_tokens_per_hour:
            at.say("POOL_TOKENS_PER_HOUR is 0: there is no such limit")
        for number in broken:
            at.say(f"{COLLECTION}/{number} holds no levels: delete it in the console, and it starts full", "yellow")


def _shards(client: firestore.Client) -> tuple[dict[int, Levels], list[int], int]:
    """What the shards hold by number, those that hold something else, and the server's time."""
    documents = [LevelDocument(client, COLLECTION, str(number)) for number in range(SHARDS)]
    read = patiently(lambda: list(lease.read(documents, timeout_s=RPC_S)))
    sound = {number: found for number, found, _ in read if isinstance(found, Levels)}
    return sound, [number for number, *_ in read if number not in sound], read[0][2]


def _left(name: str, share: Share, shards: Mapping[int, Levels], at_us: int) -> Left:
    """A share's own level over all shards, without what is common."""
    level = COMMON if name == COMMON else document_id(name)
    limits = {number: {level: limit[level]} for number, limit in enumerate(share.limits) if level in limit}
    tokens = sum(
        credit.holding(found.levels, limits[number], at_us=at_us).tokens
        for number, found in shards.items()
        if number in limits
    )
    return _of(name, tokens, sum(limit[level] for limit in limits.values()))


def _of(share: str, tokens: int, limit: int) -> Left:
    return Left(share=share, tokens=tokens, limit=limit, percent=tokens * 100 // limit if limit else 0)
