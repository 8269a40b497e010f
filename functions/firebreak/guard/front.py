"""What stands before the framework: every path leads to the function, bounded in silence, size and time."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

import flask
from werkzeug.wsgi import ClosingIterator

from firebreak.guard.client_timeouts import SILENCE_S, hang_up
from firebreak.guard.incoming import Environ, Incoming

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication


class _Answer(Protocol):
    """The server's side of an answer; gunicorn lets no application set the `Connection` header."""

    def force_close(self) -> None: ...
    def should_close(self) -> bool: ...


class Front:
    """Keeps bodies from the framework, and closes the connection of a client whose body was not read to its end."""

    def __init__(self, app: "WSGIApplication") -> None:
        self._app = app

    def __call__(self, environ: Environ, start_response: "StartResponse") -> Iterable[bytes]:
        # A callable has one address; of other paths the framework redirects some, and answers some in HTML.
        environ |= {"PATH_INFO": "/", "SCRIPT_NAME": ""}
        # And what the framework cannot read as a host it refuses in HTML.
        for name in ("HTTP_HOST", "HTTP_UPGRADE"):
            environ.pop(name, None)
        incoming = Incoming.take(environ)
        answer: _Answer | None = getattr(start_response, "__self__", None)
        connection = incoming.connection
        if answer is None or connection is None:
            return self._app(environ, start_response)
        connection.settimeout(SILENCE_S)

        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:  # noqa: ANN401 - as WSGI has it
            if not incoming.ended:
                answer.force_close()
            return start_response(status, headers, *more)

        def end() -> None:
            if answer.should_close():
                hang_up(connection)

        return ClosingIterator(self._app(environ, start), end)


def stand_before(function: str) -> None:
    """Put a `Front` before the application that serves `function`, if it is the one that is being made."""
    if flask.has_app_context() and flask.current_app.name == function:
        app: Any = flask.current_app
        if not isinstance(app.wsgi_app, Front):
            app.wsgi_app = Front(app.wsgi_app)
