"""The kill switch from a shell: what is switched off, by whom and until when; and switching it, without a deploy."""

from typing import Annotated

import typer

from firebreak.switch.change import Loosen, Reset, Tighten, Trip
from firebreak.switch.state import OWNERS, SCOPES, is_held_by, is_owner
from scripts.ops import duration, switched
from scripts.ops.failure import NotDone
from scripts.ops.options import AsJson, By, For, Project, Reason, ShownReason, Yes, one_of
from scripts.ops.session import session, why

OPERATOR, ANY = "operator", "any"


def _owner(text: str) -> str:
    if text != ANY and not is_owner(text):
        raise typer.BadParameter(f"must be one of {', '.join((*OWNERS, ANY))} or budget:ID, not {text!r}")
    return text


Scope = Annotated[str, typer.Option("--scope", parser=one_of(*SCOPES), metavar="|".join(SCOPES))]
Owner = Annotated[
    str,
    typer.Option(
        "--owner",
        parser=_owner,
        metavar="|".join((*OWNERS, ANY)),
        help="Whose; several may hold one thing, and it is over when none does. One budget is budget:ID.",
    ),
]

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=__doc__)


@app.command()
def show(project: Project, as_json: AsJson = False) -> None:
    """What is switched off and tightened, by whom, since when and until when; one read."""
    with session(project, as_json=as_json) as at:
        switched.show(at, switched.read(at))


@app.command()
def trip(
    project: Project,
    scope: Scope,
    reason: ShownReason,
    for_s: For = None,
    by: By = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Switch off: gemini, the model's calls; firestore, what handlers read and write; all, every callable."""
    with session(project, as_json=as_json) as at:
        how_long = f"for {duration.words(for_s)}" if for_s else "until it is reset"
        signed = why(reason, by)
        at.agree(f'switch {scope} off {how_long} and show "{reason}" to refused callers', yes=yes)
        until_us = switched.until_us(at, for_s)
        switched.apply(at, Trip(scope=scope, owner=OPERATOR, reason=signed.reason, by=signed.by, until_us=until_us))


@app.command()
def reset(
    project: Project,
    reason: Reason,
    scope: Annotated[str | None, typer.Option("--scope", parser=one_of(*SCOPES), metavar="|".join(SCOPES))] = None,
    every: Annotated[bool, typer.Option("--all", help="Every scope.")] = False,
    owner: Owner = OPERATOR,
    by: By = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Switch on again what an owner holds: one scope, or all of them."""
    if (scope is None) != every:
        raise typer.BadParameter("name one --scope, or say --all")
    with session(project, as_json=as_json) as at:
        whose = None if owner == ANY else owner
        signed = why(reason, by)
        held = [t for t in switched.read(at).state.trips if scope in {None, t.scope} and is_held_by(t.owner, whose)]
        if not held:
            raise NotDone(f"nothing is held by {owner}{f' in {scope}' if scope else ''}: nothing was changed")
        at.agree(f"switch {', '.join(f'{t.scope} ({t.owner})' for t in held)} on again", yes=yes)
        switched.apply(at, Reset(scope=scope, owner=whose, reason=signed.reason, by=signed.by))


@app.command()
def tighten(
    project: Project,
    percent: Annotated[int, typer.Option("--percent", min=1, max=100, help="What is left of every daily limit.")],
    reason: Reason,
    for_s: For = None,
    by: By = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Leave every user only some percent of their daily limit."""
    with session(project, as_json=as_json) as at:
        signed = why(reason, by)
        at.agree(f"tighten all daily limits to {percent} %", yes=yes)
        until_us = switched.until_us(at, for_s)
        asked = Tighten(owner=OPERATOR, percent=percent, reason=signed.reason, by=signed.by, until_us=until_us)
        switched.apply(at, asked)


@app.command()
def loosen(
    project: Project, reason: Reason, owner: Owner = OPERATOR, by: By = None, yes: Yes = False, as_json: AsJson = False
) -> None:
    """Take a tightening of the daily limits back, one that a budget made too."""
    with session(project, as_json=as_json) as at:
        signed = why(reason, by)
        whose = None if owner == ANY else owner
        held = [t.owner for t in switched.read(at).state.tightened if is_held_by(t.owner, whose)]
        if not held:
            raise NotDone(f"nothing is tightened by {owner}: nothing was changed")
        at.agree(f"loosen what {', '.join(held)} tightened", yes=yes)
        owners = held if whose is None else [whose]
        switched.apply(at, *(Loosen(owner=each, reason=signed.reason, by=signed.by) for each in owners))
