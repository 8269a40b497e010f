"""What stands before the framework, on a connection of its own."""

import io
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from threading import Thread
from typing import Any

import flask
import pytest
from werkzeug.test import EnvironBuilder, run_wsgi_app

from firebreak.guard import client_timeouts
from firebreak.guard.front import Front, stand_before
from firebreak.guard.incoming import Environ, Incoming


class Answer:
    """What gunicorn keeps of an answer."""

    def __init__(self, *, closes: bool = False) -> None:
        self.closes = closes
        self.closes_as_announced = False

    def start_response(self, _status: str, _headers: list[tuple[str, str]], _error: object = None) -> None:
        self.closes_as_announced = self.closes

    def force_close(self) -> None:
        self.closes = True

    def should_close(self) -> bool:
        return self.closes


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The server's and the client's end of a connection."""
    server, client = socket.socketpair()
    client.settimeout(30)
    with server, client:
        yield server, client


def environ(connection: socket.socket, body: bytes = b"") -> Environ:
    return {"gunicorn.socket": connection, "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body)}


def answered(app: Callable[..., Iterable[bytes]], made: Environ, answer: Answer) -> bytes:
    """What an application behind a `Front` answers, to its end."""
    start: Any = answer.start_response
    steps: Any = Front(app)(made, start)
    body = b"".join(steps)
    steps.close()
    return body


def refuses(_environ: Environ, start_response: Callable[..., object]) -> list[bytes]:
    start_response("401 UNAUTHORIZED", [])
    return [b"no"]


def reads(made: Environ, start_response: Callable[..., object]) -> list[bytes]:
    body = Incoming.take(made).read(max_bytes=100, seconds=1)
    start_response("200 OK", [])
    return [body]


def open_still(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True


def test_a_body_that_was_not_read_closes_the_connection_as_announced(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    answer = Answer()

    assert answered(refuses, environ(ends[0], b"body"), answer) == b"no"
    assert answer.closes_as_announced
    assert not open_still(ends[1])


@pytest.mark.parametrize(("app", "body"), [(reads, b"body"), (reads, b""), (refuses, b"")])
def test_a_body_that_was_read_leaves_the_connection_as_it_is(
    app: Callable[..., Iterable[bytes]], body: bytes, ends: tuple[socket.socket, socket.socket]
) -> None:
    answer = Answer()

    answered(app, environ(ends[0], body), answer)

    assert not answer.closes
    assert open_still(ends[1])


def test_a_connection_that_closes_anyway_is_not_left_to_the_thread_that_accepts(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    answered(reads, environ(ends[0], b"body"), Answer(closes=True))

    # What gunicorn does next, in that thread: it reads until the client has closed as well.
    ends[0].settimeout(30)
    assert ends[0].recv(1) == b""


def test_a_silent_client_does_not_wait_for_ever(ends: tuple[socket.socket, socket.socket]) -> None:
    answered(reads, environ(ends[0], b"body"), Answer())

    assert ends[0].gettimeout() == client_timeouts.SILENCE_S


@pytest.mark.parametrize("host", ["a..b", ".", "a" * 64 + ".com", "xn--" + "a" * 70])
def test_a_host_that_the_framework_refuses_is_the_functions_all_the_same(host: str) -> None:
    app = flask.Flask("generate")
    app.add_url_rule("/", view_func=lambda: "answered")
    app.wsgi_app = Front(app.wsgi_app)  # type: ignore[method-assign]
    made = EnvironBuilder().get_environ() | {"HTTP_HOST": host, "SCRIPT_NAME": "/x", "PATH_INFO": "/y"}

    assert run_wsgi_app(app, made)[1] == "200 OK"


def test_another_server_than_gunicorn_is_left_alone() -> None:
    steps = Front(refuses)({"CONTENT_LENGTH": "4", "wsgi.input": io.BytesIO(b"body")}, lambda *_: None)  # type: ignore[arg-type]

    assert list(steps) == [b"no"]


def test_what_a_client_still_sends_is_thrown_away_and_it_reads_its_answer(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    server, client = ends
    sending = Thread(target=client.sendall, args=(b"x" * 3_000_000,))
    sending.start()
    server.sendall(b"answer")

    client_timeouts.hang_up(server)
    sending.join()

    assert client.recv(100) == b"answer"
    assert client.recv(100) == b""


def test_a_client_that_sends_for_ever_is_hung_up_on(ends: tuple[socket.socket, socket.socket]) -> None:
    server, client = ends

    def send() -> None:
        with suppress(OSError):
            while True:
                client.sendall(b"x" * 65_536)

    sending = Thread(target=send)
    sending.start()
    client_timeouts.hang_up(server)
    server.close()
    sending.join()


def test_a_watch_that_could_not_start_starts_with_the_next_client(
    ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = client_timeouts._Watch()

    def no_thread(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as exhausted:
        exhausted.setattr(client_timeouts, "Thread", no_thread)
        with pytest.raises(RuntimeError):
            watch.add(ends[0], 0.0)
    watch.add(ends[0], 0.0)

    ends[0].settimeout(30)
    assert ends[0].recv(1) == b""


def test_a_client_that_is_gone_is_hung_up_on(ends: tuple[socket.socket, socket.socket]) -> None:
    ends[1].close()

    client_timeouts.hang_up(ends[0])


def test_the_application_of_the_function_gets_a_front_once_and_no_other_does() -> None:
    mine, other = flask.Flask("generate"), flask.Flask("usage")

    for app in (mine, mine, other):
        with app.app_context():
            stand_before("generate")
    stand_before("generate")

    assert isinstance(mine.wsgi_app, Front)
    assert not isinstance(mine.wsgi_app._app, Front)
    assert not isinstance(other.wsgi_app, Front)
