"""The body of a request: read once, whole or not at all, and within bounds."""

import io
from typing import Any

import flask
import pytest

from firebreak.errors import Malformed
from firebreak.guard.incoming import Incoming

BOUND = 100


class Untouchable(io.RawIOBase):
    """A body that has not come: to read from it would wait for its client."""

    def read(self, size: int = -1) -> bytes:
        raise AssertionError(f"{size} bytes were asked for")


class Broken(io.RawIOBase):
    """A body whose reading fails as a server's does."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def read(self, _size: int = -1) -> bytes:
        raise self._error


def environ(body: bytes | io.RawIOBase, *, length: int | None = None, chunked: bool = False) -> dict[str, Any]:
    """As a server makes it."""
    made: dict[str, Any] = {"wsgi.input": io.BytesIO(body) if isinstance(body, bytes) else body}
    if length is not None:
        made["CONTENT_LENGTH"] = str(length)
    if chunked:
        made |= {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True}
    return made


def read(incoming: Incoming) -> bytes:
    return incoming.read(max_bytes=BOUND, seconds=1)


def test_a_body_is_read_up_to_its_length_and_not_into_the_next_request() -> None:
    incoming = Incoming.take(environ(b"bodyPOST / HTTP/1.1", length=4))

    assert not incoming.ended
    assert read(incoming) == b"body"
    assert incoming.ended
    assert read(incoming) == b""


def test_chunks_are_read_to_their_end() -> None:
    incoming = Incoming.take(environ(b"x" * BOUND, chunked=True))

    assert not incoming.ended
    assert read(incoming) == b"x" * BOUND
    assert incoming.ended


@pytest.mark.parametrize("length", [None, 0])
def test_a_request_without_a_body_is_not_waited_for(length: int | None) -> None:
    incoming = Incoming.take(environ(Untouchable(), length=length))

    assert incoming.ended
    assert read(incoming) == b""


@pytest.mark.parametrize("made", [{"length": BOUND + 50}, {"chunked": True}])
def test_a_body_that_is_too_long_is_read_one_byte_beyond_the_bound(made: dict[str, Any]) -> None:
    incoming = Incoming.take(environ(b"x" * (BOUND + 50), **made))

    assert len(read(incoming)) == BOUND + 1
    assert not incoming.ended


def test_a_body_as_long_as_the_bound_is_whole() -> None:
    incoming = Incoming.take(environ(b"x" * BOUND, length=BOUND))

    assert len(read(incoming)) == BOUND
    assert incoming.ended


FRAMES = {
    "shorter than its length": environ(b"x" * 7, length=8),
    "silent": environ(Broken(TimeoutError()), length=8),
    "reset": environ(Broken(ConnectionResetError()), length=8),
    "of a broken chunk": environ(Broken(Exception("gunicorn's InvalidChunkSize has no better base")), chunked=True),
}


@pytest.mark.parametrize("made", FRAMES.values(), ids=FRAMES)
def test_a_body_that_is_not_whole_is_malformed_and_its_connection_is_done(made: dict[str, Any]) -> None:
    incoming = Incoming.take(made)

    with pytest.raises(Malformed):
        read(incoming)
    assert not incoming.ended


def test_nobody_else_reads_a_body_that_was_taken() -> None:
    """The framework reads what a view has left, before it answers."""
    made = environ(Untouchable(), length=9)

    incoming = Incoming.take(made)

    assert flask.Request(made).get_data() == b""
    assert Incoming.take(made) is incoming
