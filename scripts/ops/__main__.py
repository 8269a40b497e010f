"""What an operator sees and changes: the kill switch, a user's tokens, calls, the pool.

Exit status: 0 done; 1 not done, and why; 2 wrong use, or the wrong target; 130 interrupted.
"""

import typer

from scripts.ops import calls, changes, pool, switch, user

app = typer.Typer(
    add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False, help=__doc__
)
app.add_typer(switch.app, name="switch")
app.add_typer(user.app, name="user")
app.add_typer(calls.app, name="calls")
app.add_typer(pool.app, name="pool")
app.add_typer(changes.app, name="changes")

if __name__ == "__main__":
    app()
