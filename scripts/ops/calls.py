"""Calls of all users: those that were never settled, and who spent the most."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from google.cloud import firestore

from firebreak.bucket.documents import BUCKETS, CALLS, Status
from firebreak.events import pseudonym
from firebreak.store.documents import user_of
from firebreak.store.times import SECOND_US, from_us
from scripts.ops import switched, text
from scripts.ops.options import AsJson, Project, seconds
from scripts.ops.pages import Snapshot, pages
from scripts.ops.rpc import RPC_S, patiently
from scripts.ops.session import session

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=__doc__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call, charged `tokens`: its estimate while it is held."""

    key: str
    request_id: str
    held: bool
    tokens: int
    created: str | None

    def as_json(self) -> dict[str, Any]:
        call = {"request_id": self.request_id, "held": self.held, "tokens": self.tokens, "created": self.created}
        return _named(self.key) | call


@app.command()
def held(
    project: Project,
    older_s: Annotated[
        int,
        typer.Option(
            "--older", parser=seconds, metavar="DURATION", show_default="10m", help="Only those held for longer."
        ),
    ] = 600,
    most: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Calls read and shown, newest first.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Calls that were never settled: their instance died, or Firestore did. They stay charged at their estimate."""
    with session(project, as_json=as_json) as at:
        before = from_us(switched.read(at).at_us - older_s * SECOND_US)
        query = newest(at.client, Status.HELD).where(filter=firestore.FieldFilter("createdAt", "<=", before))
        # One more tells whether there are more.
        read = [snapshot for page in pages(query, most + 1) for snapshot in page]
        found = list(_calls(read[:most]))
        data = {"calls": [call.as_json() for call in found], "truncated": len(read) > most}
        rows = [(*user_of(call.key), call.request_id, call.created, call.tokens) for call in found]
        at.show(data, text.table("Held", "uid,tenant,request id,since,tokens>", rows))
        if data["truncated"]:
            at.say(f"older ones are not shown: --limit is {most}", "yellow")


@app.command()
def top(
    project: Project,
    since_s: Annotated[
        int,
        typer.Option("--since", parser=seconds, metavar="DURATION", show_default="1h", help="Calls of this last time."),
    ] = 3600,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Users shown.")] = 20,
    most: Annotated[
        int, typer.Option("--reads", min=1, max=1_000_000, help="Calls read at most, newest first: each is a read.")
    ] = 5000,
    as_json: AsJson = False,
) -> None:
    """Who was charged the most tokens; one read for each call, told before it reads."""
    with session(project, as_json=as_json) as at:
        after = from_us(switched.read(at).at_us - since_s * SECOND_US)
        query = newest(at.client, Status.HELD, Status.SETTLED)
        query = query.where(filter=firestore.FieldFilter("createdAt", ">=", after))
        total = _count(query)
        at.say(f"{total:,} calls since {text.stamp(after)}; reading the newest {min(total, most):,}")
        calls = list(_calls(snapshot for page in pages(query, most) for snapshot in page))
        users = _by_user(calls)
        data = {"since": text.stamp(after), "calls": total, "read": len(calls), "users": users[:limit]}
        at.show(
            data,
            text.table(
                "Most tokens", "uid,tenant,in the logs,calls>,held>,tokens>", (u.values() for u in users[:limit])
            ),
        )
        if total > most:
            at.say(f"{total - most:,} older calls were not read: --reads is {most:,}", "yellow")
        if len(users) > limit:
            at.say(f"{len(users) - limit:,} more users are not shown: --limit is {limit}", "yellow")


def newest(client: firestore.Client, *statuses: Status) -> firestore.Query:
    """Calls of these statuses by the one index that there is, over all users."""
    of = firestore.FieldFilter("status", "in", [status.value for status in statuses])
    newest = client.collection_group(CALLS).where(filter=of).order_by("createdAt", direction="DESCENDING")
    return newest.select(["status", "estimated", "actual", "createdAt"])


def _count(query: firestore.Query) -> int:
    """How many a query would find, for a thousandth of the reads."""
    counted: Any = query.count()
    return int(patiently(lambda: counted.get(timeout=RPC_S))[0][0].value)


def _calls(snapshots: Iterable[Snapshot]) -> Iterator[Call]:
    for snapshot in snapshots:
        bucket, fields = snapshot.reference.parent.parent, snapshot.to_dict() or {}
        # An app may have a collection of this name of its own.
        if bucket is None or bucket.parent.id != BUCKETS:
            continue
        tokens = fields.get("actual", fields.get("estimated"))
        yield Call(
            key=bucket.id,
            request_id=snapshot.id,
            held=fields.get("status") == Status.HELD,
            tokens=tokens if isinstance(tokens, int) else 0,
            created=text.stamp(fields.get("createdAt")),
        )


def _by_user(calls: Iterable[Call]) -> list[dict[str, Any]]:
    """Each user's calls, held calls and tokens, the largest first."""
    count, held, tokens = Counter[str](), Counter[str](), Counter[str]()
    for call in calls:
        count[call.key] += 1
        held[call.key] += call.held
        tokens[call.key] += call.tokens
    return [
        _named(key) | {"pseudonym": pseudonym(key), "calls": count[key], "held": held[key], "tokens": spent}
        for key, spent in tokens.most_common()
    ]


def _named(key: str) -> dict[str, Any]:
    uid, tenant = user_of(key)
    return {"uid": uid, "tenant": tenant}
