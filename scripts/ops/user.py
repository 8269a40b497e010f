"""One user: what they have left, and changing it while their calls go on."""

import re
from collections.abc import Callable
from functools import cache
from typing import Annotated

import typer

from firebreak.events import pseudonym
from firebreak.settings.knobs import MOST_TOKENS
from firebreak.store.documents import user_key
from scripts.ops import bucket, overview, switched, text
from scripts.ops.change import Change, Record, make
from scripts.ops.document import Seen, see
from scripts.ops.failure import NotDone
from scripts.ops.forget import Forgetting
from scripts.ops.limits import Limits, by_settings, settings, settings_if_right
from scripts.ops.options import AsJson, By, Limit, Project, Reason, Tenant, Uid, Yes
from scripts.ops.session import Session, session, why

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=__doc__)


@app.command()
def show(uid: Uid, project: Project, tenant: Tenant = None, limit: Limit = None, as_json: AsJson = False) -> None:
    """What a user has left as of now, and what is held."""
    with session(project, as_json=as_json) as at:
        key = user_key(uid, tenant)
        seen = see(at.client, key)
        allowed = _limits(at, limit)(seen)
        data = {
            "uid": uid,
            "tenant": tenant,
            "pseudonym": pseudonym(key),
            "limit": allowed.as_json(),
            "bucket": overview.bucket(seen, allowed),
            "held": overview.held(seen),
            "requests": overview.requests(at.client, key, settings_if_right(project, at.say)),
        }
        at.show(data, overview.table(data))


@app.command()
def grant(
    uid: Uid,
    tokens: Annotated[int, typer.Argument(min=1, max=MOST_TOKENS)],
    project: Project,
    reason: Reason,
    tenant: Tenant = None,
    limit: Limit = None,
    by: By = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Add tokens to what a user has left, no further than to their limit."""
    with session(project, as_json=as_json) as at:
        record = _record(uid, tenant, "grant", reason, by)
        at.agree(f"grant {tokens:,} tokens to {_who(uid, tenant)}", yes=yes)
        allowed = _limits(at, limit)
        _make(at, user_key(uid, tenant), record, lambda seen: bucket.grant(seen, tokens, allowed(seen)))


@app.command()
def reset(
    uid: Uid,
    project: Project,
    reason: Reason,
    tenant: Tenant = None,
    limit: Limit = None,
    by: By = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Fill a user's bucket; this also repairs one whose level is damaged."""
    with session(project, as_json=as_json) as at:
        record = _record(uid, tenant, "reset", reason, by)
        at.agree(f"fill the bucket of {_who(uid, tenant)}", yes=yes)
        allowed = _limits(at, limit)
        _make(at, user_key(uid, tenant), record, lambda seen: bucket.reset(seen, allowed(seen)))


@app.command("limit")
def set_limit(
    uid: Uid,
    project: Project,
    reason: Reason,
    tokens: Annotated[int | None, typer.Argument(min=0, max=MOST_TOKENS, help="Tokens a day; 0 blocks.")] = None,
    none: Annotated[bool, typer.Option("--none", help="Take it away: the settings' limit counts again.")] = False,
    tenant: Tenant = None,
    by: By = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Give a user a daily limit of their own, from their next call on; 0 blocks them."""
    if (tokens is None) != none:
        raise typer.BadParameter("name the tokens a day, or say --none")
    with session(project, as_json=as_json) as at:
        record = _record(uid, tenant, "limit", reason, by)
        if tokens is None:
            at.agree(f"take their own limit from {_who(uid, tenant)}", yes=yes)
            knobs = settings_if_right(project, at.say)
            allowed = by_settings(knobs, percent=switched.percent(at)) if knobs else None
            _make(at, user_key(uid, tenant), record, lambda seen: bucket.unlimit(seen, allowed))
        else:
            at.agree(f"set the daily limit of {_who(uid, tenant)} to {tokens:,}", yes=yes)
            _make(at, user_key(uid, tenant), record, lambda seen: bucket.limit(seen, tokens))


@app.command()
def forget(
    uid: Uid,
    project: Project,
    reason: Reason,
    tenant: Tenant = None,
    limit: Limit = None,
    by: By = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete all that is kept of a user, but for a bare level until it would be full again. Safe to repeat.

    Delete the account in Firebase Auth first: its tokens are good for an hour, in which it can call on.
    """
    with session(project, as_json=as_json) as at:
        record = _record(uid, tenant, "forget", reason, by)
        at.agree(f"delete all that is kept of {_who(uid, tenant)}", yes=yes)
        allowed = _limits(at, limit)
        with at.console.status("looking") as status:
            forgetting = Forgetting(
                at.client,
                user_key(uid, tenant),
                limits=allowed,
                progress=lambda kind, count: status.update(f"{kind}: {count:,} deleted"),
            )
            done = forgetting.run(record)
        data = {"deleted": done.deleted, "kept": done.kept, "running": done.running}
        at.show(data, text.table("Deleted", "of,documents>", sorted(done.deleted.items())))
        if done.kept:
            until = text.stamp(done.kept.get("expireAt")) or "it is unblocked"
            at.say(f"the bare level stays until {until}, so that signing up anew does not fill it")
        if done.running:
            raise NotDone(f"{done.running} calls may be running and are kept: run it again in an hour")


def _limits(at: Session, given: int | None) -> Callable[[Seen], Limits]:
    """Finds a user's limits: the bucket's own, else what the operator says, else all that the settings could give."""
    percent = switched.percent(at)

    @cache
    def others() -> Limits:
        if given is not None:
            return Limits(tokens=frozenset({given}), by="--limit", percent=percent)
        try:
            found = by_settings(settings(at.target.project), percent=percent)
        except NotDone as error:
            raise NotDone(f"{error}; fix that, or name this user's --limit") from error
        if len(found.tokens) > 1:
            at.say(f"by their sign-in a user has {found.least:,} to {found.most:,}: --limit names this one's")
        return found

    def find(seen: Seen) -> Limits:
        own = seen.mended().override
        return others() if own is None else Limits(tokens=frozenset({own}), by="override", percent=percent)

    return find


def _who(uid: str, tenant: str | None) -> str:
    return uid if tenant is None else f"{uid} of tenant {tenant}"


def _record(uid: str, tenant: str | None, what: str, reason: str, by: str | None) -> Record:
    if re.search(rf"(?<!\w){re.escape(uid)}(?!\w)", reason):
        # A record outlives the user.
        raise typer.BadParameter("the reason must not hold the uid: it is kept for a year")
    return Record(what=f"user.{what}", user=pseudonym(user_key(uid, tenant)), why=why(reason, by))


def _make(at: Session, key: str, record: Record, plan: Callable[[Seen], Change | None]) -> None:
    made = make(at.client, record, lambda: plan(see(at.client, key)))
    at.show({"changed": made}, text.lines("Changed", made.items()) if made else "nothing to change: it is so already")
