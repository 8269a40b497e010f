"""Times all layers of `@guarded` in a process of its own: `python -m scripts.bench.guard_probe CALLS`.

Prints the milliseconds of each call as a JSON list. The environment is that of a local function.
"""

import json
import os
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path

import flask
from werkzeug.datastructures import Headers
from werkzeug.test import EnvironBuilder

from firebreak.guard.callables import Call, guarded
from scripts.clients.tokens import headers

WARM_UP = 100
BODY = b'{"data":{"prompt":"hi"}}'


@guarded()
def probe(_call: Call) -> dict[str, bool]:
    return {"ok": True}


def timed(app: flask.Flask, sent: dict[str, str]) -> float:
    """Milliseconds from the request as the server has parsed it to the finished response."""
    environ = EnvironBuilder(method="POST", path="/", headers=Headers(sent), data=BODY).get_environ()
    with app.request_context(environ):
        request = flask.request._get_current_object()  # type: ignore[attr-defined]  # noqa: SLF001 - as Flask itself
        began = time.perf_counter()
        response = probe(request)
        taken = time.perf_counter() - began
    assert response.status_code == 200, response.data
    return taken * 1000


def main() -> None:
    app = flask.Flask(__name__)
    sent = headers(os.environ["FIREBREAK_STANDINS"]) | {"Content-Type": "application/json"}
    # Events are written as ever, to where they cost what a write costs.
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        all_ms = [timed(app, sent) for _ in range(int(sys.argv[1]) + WARM_UP)]
    print(json.dumps(all_ms[WARM_UP:]))


if __name__ == "__main__":
    main()
