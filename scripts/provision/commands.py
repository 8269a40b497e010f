"""The commands, as they are typed: what each looks at, shows, asks and does."""

from dataclasses import asdict

import typer

from scripts.provision import apply as applying
from scripts.provision import lifting, present, show, show_status, status, suggest
from scripts.provision.options import FILE, Amount, AsJson, Cap, File, Local, Only, Paths, Yes, parts
from scripts.provision.plan_destroy import destroy as plan_destroy
from scripts.provision.running import FAILED, TO_DO, running
from scripts.provision.seen import Part
from scripts.provision.step import refusals, to_do

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def without_command(
    context: typer.Context, file: File = FILE, only: Only = None, local: Local = False, as_json: AsJson = False
) -> None:
    if context.invoked_subcommand is None:
        plan(context, file=file, only=only, local=local, as_json=as_json)
    elif (file, only, local, as_json) != (FILE, None, False, False):
        # They would be `plan`'s, and the command would go by another file than was named.
        raise typer.BadParameter(f"options stand behind the command: {context.invoked_subcommand} --file …")


@app.command()
def plan(
    context: typer.Context, file: File = FILE, only: Only = None, local: Local = False, as_json: AsJson = False
) -> None:
    """Look, and show what `apply` would do; the default. Changes nothing. Exit status 2 if there is something to do."""
    with running(context.obj, file, local=local, as_json=as_json) as run:
        planned = present.plan(run, parts(only))
        with run.terminal.busy():
            report = run.at.report()
        show.lines(run.terminal.person, "Not changed from here, but worth a look:", report)
        run.terminal.answer(present.answer(run, planned) | {"report": report})
        raise typer.Exit(FAILED if planned.refused else TO_DO if planned.to_do else 0)


@app.command(name="apply")
def apply_(
    context: typer.Context,
    file: File = FILE,
    only: Only = None,
    yes: Yes = False,
    local: Local = False,
    as_json: AsJson = False,
) -> None:
    """Do what `plan` shows, after asking; then look whether it is so."""
    with running(context.obj, file, local=local, as_json=as_json) as run:
        asked = parts(only)
        planned = present.plan(run, asked)
        present.check(planned)
        if planned.to_do:
            run.terminal.agree("Do this?", yes=yes)
            with run.terminal.busy():
                done = applying.carry_out(run.at, planned, asked)
            run.terminal.person.print(f"\ndone: {len(planned.to_do)} steps; a new look finds nothing left to do")
        else:
            done = planned
        names = {key: entry.name for key, entry in done.seen.alerts.items() if entry.name}
        # Who looked at neither knows of no budget, and would suggest to do without them.
        env = suggest.env(names, run.at.config) if asked & {Part.CAPS, Part.BUDGETS} else []
        show.lines(run.terminal.person, "For functions/.env, as a start; a deploy puts it into force:", env)
        run.terminal.answer(present.answer(run, planned) | {"done": True, "env": env})


@app.command(name="status")
def status_(context: typer.Context, file: File = FILE, local: Local = False, as_json: AsJson = False) -> None:
    """The state of each cap, and what the last notice of each alert budget said and set off."""
    with running(context.obj, file, local=local, as_json=as_json) as run:
        with run.terminal.busy():
            caps, alerts = status.caps(run.at), status.alerts(run.at)
        show_status.show(run.terminal.person, caps, alerts)
        run.terminal.answer(
            {"target": run.target, "caps": list(map(asdict, caps)), "budgets": list(map(asdict, alerts))}
        )


@app.command()
def lift(
    context: typer.Context, cap: Cap, file: File = FILE, yes: Yes = False, local: Local = False, as_json: AsJson = False
) -> None:
    """Let a paused service go on; its cap then stops nothing until the month ends, unless it is armed again."""
    with running(context.obj, file, local=local, as_json=as_json) as run:
        run.terminal.agree(f"Lift the cap {cap}? Nothing bounds it from then on.", yes=yes)
        with run.terminal.busy():
            found = lifting.lift(run.at, cap)
        present.tell(run, cap, found, "it may take an hour until the service answers; `rearm` bounds it again")


@app.command()
def rearm(
    context: typer.Context,
    cap: Cap,
    amount: Amount = None,
    file: File = FILE,
    yes: Yes = False,
    local: Local = False,
    as_json: AsJson = False,
) -> None:
    """Arm a lifted cap again in the same month, at a higher amount than it had."""
    with running(context.obj, file, local=local, as_json=as_json) as run:
        asked = amount or lifting.wanted_amount(run.at.config, cap)
        run.terminal.agree(f"Arm the cap {cap} at {asked}?", yes=yes)
        with run.terminal.busy():
            found = lifting.rearm(run.at, cap, asked)
        same = run.at.config.caps.get(cap) == asked
        advice = "" if same else f'write {cap} = "{asked}" into the file, or `plan` wants it changed back'
        present.tell(run, cap, found, advice)


@app.command()
def destroy(
    context: typer.Context,
    names: Paths = None,
    file: File = FILE,
    yes: Yes = False,
    local: Local = False,
    as_json: AsJson = False,
) -> None:
    """Delete caps and alert budgets that this tool made, all or some; topic, accounts, roles and TTL policies stay."""
    with running(context.obj, file, local=local, as_json=as_json) as run:
        only = frozenset({Part.CAPS, Part.BUDGETS})
        with run.terminal.busy():
            _, wanted = run.at.survey()
            seen = run.at.edges.look(wanted, only, by_hand=frozenset())
        steps = plan_destroy(wanted, seen, names or (), settle_s=run.at.edges.budgets.patience.settle_s)
        show.diff(run.terminal.person, steps)
        present.stop(refusals(steps))
        if to_do(steps):
            run.terminal.agree("Delete this? Nothing bounds the money from then on.", yes=yes)
            with run.terminal.busy():
                run.at.worker.take_away(to_do(steps), seen)
            run.terminal.person.print("done; topic, service accounts, roles and TTL policies stay (docs/adopting.md)")
        run.terminal.answer({"target": run.target, "steps": show.as_json(steps), "done": True})
