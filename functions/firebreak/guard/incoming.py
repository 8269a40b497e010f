"""The body of a request, out of the reach of server and framework: nothing of it is read before a layer asks for it."""

import io
import socket
from typing import IO, Any, Self

from werkzeug.wsgi import get_content_length

from firebreak.errors import Malformed
from firebreak.guard.client_timeouts import at_most

_HERE = "firebreak.incoming"

type Environ = dict[str, Any]


class Incoming:
    """What a client sends after its headers. `length` is what it announced; None: it sends chunks, or nothing."""

    def __init__(self, environ: Environ) -> None:
        self.length = get_content_length(environ)
        self.connection: socket.socket | None = environ.get("gunicorn.socket")
        self._stream: IO[bytes] = environ["wsgi.input"]
        chunked = "HTTP_TRANSFER_ENCODING" in environ
        # True once nothing of it is left on the connection, which can then be used again.
        self.ended = not chunked and not self.length

    @classmethod
    def take(cls, environ: Environ) -> Self:
        """The body of this request; anyone else finds it empty, because the framework reads what is left unbounded."""
        if _HERE not in environ:
            environ[_HERE] = cls(environ)
            environ |= {"wsgi.input": io.BytesIO(), "wsgi.input_terminated": True}
        incoming: Self = environ[_HERE]
        return incoming

    def read(self, *, max_bytes: int, seconds: float) -> bytes:
        """All of it, but of one that is too long no more than `max_bytes` and one.

        Raises:
            Malformed: it ended before its length or its last chunk, or was not there in `seconds`.
        """
        most = max_bytes + 1 if self.length is None else min(max_bytes + 1, self.length)
        if self.ended:
            return b""
        try:
            with at_most(seconds, self.connection):
                body = bytes(self._stream.read(most))
        except OSError as error:
            raise _early(seconds) from error
        # Each server has errors of its own for a chunk that it cannot read.
        except Exception as error:
            raise Malformed("The chunks of the body are broken.") from error
        if self.length is not None and len(body) < most:
            raise _early(seconds)
        self.ended = len(body) == self.length if self.length is not None else len(body) < most
        return body


def _early(seconds: float) -> Malformed:
    return Malformed(f"The body must be as long as it was announced, and arrive within {seconds:.0f} seconds.")
