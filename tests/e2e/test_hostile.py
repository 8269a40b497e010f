"""Everything a stranger can send: the answer is a callable error in JSON, and no log holds what was sent."""

import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firebreak.errors import KINDS
from scripts.local.deployed import Deployed
from scripts.local.stack import Stack
from tests.e2e.conftest import Headers

MARK = "a-mark-that-no-log-may-hold"
JSON = {"Content-Type": "application/json"}
ORIGIN = "https://app.example"
# What functions/.env gives a server.
THREADS = 8
STATUSES = {kind.code.name: kind.code.http_status for kind in KINDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: Message
    body: bytes


def send(
    url: str, body: bytes = b"", headers: Mapping[str, str] = JSON, method: str = "POST", chunked: bool = False
) -> Answer:
    """One raw request, with nothing put right by a client library."""
    at = urlsplit(url)
    connection = HTTPConnection(at.hostname or "", at.port, timeout=60)
    chunks: Iterator[bytes] | bytes = (body[i : i + 65_536] for i in range(0, len(body), 65_536)) if chunked else body
    try:
        connection.request(method, at.path or "/", chunks, {"Origin": ORIGIN, **headers}, encode_chunked=chunked)
        response = connection.getresponse()
        return Answer(status=response.status, headers=response.headers, body=response.read())
    finally:
        connection.close()


def refusal(answer: Answer) -> str:
    """The reason of a callable error; fails if the answer is anything else."""
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert b"Traceback" not in answer.body
    error = json.loads(answer.body)["error"]
    assert error.keys() == {"status", "message", "details"}
    assert STATUSES[error["status"]] == answer.status
    return str(error["details"]["reason"])


def data(value: str) -> bytes:
    return b'{"data":' + value.encode() + b"}"


SHAPES: dict[str, bytes] = {
    "empty": b"",
    "broken": b'{"data":{"prompt":"' + MARK.encode(),
    "trailing": b'{"data":{}} ' + MARK.encode(),
    "invalid UTF-8": b'{"data":{"prompt":"' + MARK.encode() + b'\xff"}}',
    "UTF-16": json.dumps({"data": {"prompt": MARK}}).encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + data("{}"),
    "null": b"null",
    "a number": b"5",
    "true": b"true",
    "a string": json.dumps(MARK).encode(),
    "the string data": b'"data"',
    "an array": b"[]",
    "an array of data": b'["data"]',
    "an empty object": b"{}",
    "no data": json.dumps({"prompt": MARK}).encode(),
    "an extra key": json.dumps({"data": {}, "more": MARK}).encode(),
    "NaN": data('{"temperature":NaN}'),
    "Infinity": data('{"temperature":-Infinity}'),
    "a number beyond floats": data('{"temperature":1e999}'),
    "an integer of 4,000 digits": data('{"maxOutputTokens":' + "9" * 4_000 + "}"),
    "an integer of 5,000 digits": data('{"maxOutputTokens":' + "9" * 5_000 + "}"),
    "a lone surrogate": data('{"prompt":"' + MARK + '\\ud800"}'),
    "a lone surrogate in a key": data('{"\\udfff":"' + MARK + '"}'),
    "nested 65 deep": data("[" * 64 + "]" * 64),
    "nested 100,000 deep": data("[" * 100_000 + "]" * 100_000),
    "opened 500,000 times": b"[" * 500_000,
    "quoted 500,000 times": b'\\"' * 500_000,
    "of 100,000 values": data("[" + '{"":0},' * 100_000 + "0]"),
    "a string that never ends": b'"' + b"\\\\" * 500_000,
    "larger than allowed": data('"' + "x" * 1_048_576 + '"'),
    "a wrapped integer that is none": data(
        '{"maxOutputTokens":{"@type":"type.googleapis.com/google.protobuf.Int64Value","value":"1e5"}}'
    ),
}
HEADERS: dict[str, dict[str, str]] = {
    "no content type": {},
    "text": {"Content-Type": "text/plain"},
    "a form": {"Content-Type": "application/x-www-form-urlencoded"},
    "almost JSON": {"Content-Type": "application/json-patch+json"},
}


@pytest.fixture(params=["as deployed", "emulator"])
def url(request: pytest.FixtureRequest, generate: Deployed, stack: Stack) -> str:
    return generate.url if request.param == "as deployed" else f"{stack.functions_url}/generate"


@pytest.mark.parametrize("name", SHAPES)
def test_a_body_of_another_shape_is_a_callable_error(name: str, url: str, headers: Headers) -> None:
    answer = send(url, SHAPES[name], JSON | headers)

    assert (answer.status, refusal(answer)) == (400, "shape")


@pytest.mark.parametrize("name", SHAPES)
def test_a_body_is_not_looked_at_before_app_check(name: str, generate: Deployed) -> None:
    """But for one that is announced as too large: its length is in the headers."""
    answer = send(generate.url, SHAPES[name])

    assert refusal(answer) == ("shape" if name == "larger than allowed" else "app-check")


@pytest.mark.parametrize("name", HEADERS)
def test_another_content_type_is_a_callable_error(name: str, url: str) -> None:
    answer = send(url, data("{}"), HEADERS[name])

    assert (answer.status, refusal(answer)) == (400, "shape")


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_another_method_is_a_callable_error(method: str, url: str) -> None:
    answer = send(url, data("{}"), method=method)

    assert (answer.status, refusal(answer)) == (400, "shape")


def test_a_body_in_chunks_is_bounded_without_a_length(generate: Deployed, headers: Headers) -> None:
    answer = send(generate.url, data('"' + "x" * 3_000_000 + '"'), JSON | headers, chunked=True)

    assert (answer.status, refusal(answer)) == (400, "shape")


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_client_that_sends_too_much_gets_to_read_why(accept: str, generate: Deployed) -> None:
    answer = send(generate.url, data('"' + "x" * 9_000_000 + '"'), JSON | {"Accept": accept})

    assert b'"reason":"shape"' in answer.body.replace(b" ", b"")


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_stranger_gets_to_read_why_whatever_is_sent(accept: str, chunked: bool, generate: Deployed) -> None:
    answer = send(generate.url, data('"' + "x" * 1_000_000 + '"'), JSON | {"Accept": accept}, chunked=chunked)

    assert b'"reason":"app-check"' in answer.body.replace(b" ", b"")


def head(method: str = "POST", path: str = "/", **headers: str | int) -> bytes:
    """A request up to its body."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in {"Host": "x", "Origin": ORIGIN, **headers}.items()]
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Content-Type: application/json", *lines, "", ""]).encode()


@contextmanager
def connected(server: Deployed) -> Iterator[socket.socket]:
    at = urlsplit(server.url)
    with socket.create_connection((at.hostname, at.port), timeout=60) as connection:
        yield connection


def rest(connection: socket.socket) -> bytes:
    """All that comes until the server closes."""
    received = bytearray()
    with suppress(ConnectionResetError):
        while piece := connection.recv(65_536):
            received += piece
    return bytes(received)


# What needs no token, each with a body that is announced and never comes.
SILENT = {
    "a call": (head(Content_Length=9), b"401"),
    "a call in chunks": (head(Transfer_Encoding="chunked"), b"401"),
    "a call that waits to be told to go on": (head(Content_Length=9, Expect="100-continue"), b"401"),
    "a call with a forged token": (head(Content_Length=9, X_Firebase_AppCheck="a.b.c"), b"401"),
    "a stream": (head(Content_Length=9, Accept="text/event-stream"), b"200"),
    "a preflight": (head("OPTIONS", Content_Length=9, Access_Control_Request_Method="POST"), b"204"),
    "a preflight in chunks": (head("OPTIONS", Transfer_Encoding="chunked"), b"204"),
    "another method": (head("PUT", Content_Length=9), b"400"),
    "HEAD": (head("HEAD", Content_Length=9), b"400"),
    "a path that the framework keeps": (head("GET", "/robots.txt", Content_Length=9), b"400"),
    "a path that the framework does not know": (head("GET", "/a%0ab", Content_Length=9), b"400"),
    "a path that the framework redirects": (head("GET", "//x", Content_Length=9), b"400"),
}


@pytest.mark.parametrize("name", SILENT)
def test_strangers_who_never_send_their_body_hold_no_thread(name: str, generate: Deployed, headers: Headers) -> None:
    """More of them than the server has threads: everyone else is answered, and they are too, and closed."""
    request, status = SILENT[name]
    with ExitStack() as open_still:
        strangers = [open_still.enter_context(connected(generate)) for _ in range(2 * THREADS)]
        for stranger in strangers:
            stranger.sendall(request)

        good = send(generate.url, data('{"prompt":"hi"}'), JSON | headers)
        answers = [rest(stranger).removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n") for stranger in strangers]

    assert good.status == 200
    assert all(answer.startswith(b"HTTP/1.1 " + status) for answer in answers)
    assert all(b"Connection: close" in answer for answer in answers)


def test_strangers_who_never_close_do_not_stop_the_thread_that_accepts(generate: Deployed, headers: Headers) -> None:
    """The server's own way to close is to wait 2 s for the client, in the thread that accepts everyone else."""
    with ExitStack() as open_still:
        strangers = [open_still.enter_context(connected(generate)) for _ in range(40)]
        for stranger in strangers:
            stranger.sendall(head("OPTIONS", Connection="close"))

        good = send(generate.url, data('{"prompt":"hi"}'), JSON | headers)
        answers = [rest(stranger) for stranger in strangers]

    assert all(answer.startswith(b"HTTP/1.1 204") for answer in answers)
    assert good.status == 200


def test_a_refused_request_is_the_last_of_its_connection(generate: Deployed) -> None:
    """What stands behind its head is its body, or another request: nobody looks."""
    hidden = head("OPTIONS", Access_Control_Request_Method="POST")
    with connected(generate) as connection:
        connection.sendall(head(Content_Length=len(hidden)) + hidden + hidden)
        answer = rest(connection)

    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"app-check" in answer


def test_an_answered_request_is_not_the_last_of_its_connection(generate: Deployed, headers: Headers) -> None:
    body = data('{"prompt":"hi"}')
    request = head(Content_Length=len(body), **headers) + body
    with connected(generate) as connection:
        connection.sendall(request + request + head("OPTIONS", Connection="close"))
        answer = rest(connection)

    assert answer.count(b"HTTP/1.1 200") == 2
    assert answer.count(b"HTTP/1.1 204") == 1


FRAMES = {
    "a size that is none": b"zz\r\n{}\r\n0\r\n\r\n",
    "a negative size": b"-1\r\n{}\r\n0\r\n\r\n",
    "no size": b"\r\n\r\n",
    "a size without an end": b"1" * 10_000,
    "a chunk longer than its size": b"2\r\n{}{}\r\n0\r\n\r\n",
    "a broken extension": b"2;\x01\r\n{}\r\n0\r\n\r\n",
    "a broken trailer": b'b\r\n{"data":{}}\r\n0\r\nno trailer\r\n\r\n',
    "a chunk that ends early": b"ff\r\n{}",
    "no last chunk": b'b\r\n{"data":{}}\r\n',
    "nothing": b"",
}


@pytest.mark.parametrize("name", FRAMES)
def test_broken_chunks_are_a_callable_error(name: str, generate: Deployed, headers: Headers) -> None:
    before = len(generate.log)
    with connected(generate) as connection:
        connection.sendall(head(Transfer_Encoding="chunked", **headers) + FRAMES[name])
        connection.shutdown(socket.SHUT_WR)
        answer = rest(connection)

    assert answer.startswith(b"HTTP/1.1 400")
    assert b'"reason":"shape"' in answer
    assert '"outcome": "shape"' in generate.log[before:]
    assert "ERROR" not in generate.log[before:]


@pytest.mark.parametrize("body", [b"", b'{"data":{}}', b'{"data":{"prompt":"hi"}}'])
def test_a_body_shorter_than_its_length_is_a_callable_error(body: bytes, generate: Deployed, headers: Headers) -> None:
    with connected(generate) as connection:
        connection.sendall(head(Content_Length=len(body) + 1, **headers) + body)
        connection.shutdown(socket.SHUT_WR)
        answer = rest(connection)

    assert answer.startswith(b"HTTP/1.1 400")
    assert b'"reason":"shape"' in answer


def test_large_headers_are_a_callable_error(generate: Deployed, headers: Headers) -> None:
    large = {f"X-{number}": "x" * 8_000 for number in range(5)}

    answer = send(generate.url, data('{"prompt":"hi"}'), JSON | headers | large)

    assert (answer.status, refusal(answer)) == (400, "shape")


def test_a_preflight_that_asks_for_everything_gets_nothing(generate: Deployed) -> None:
    """The server joins fields of one name: 800 KB took 0.3 s to answer, in 1.2 MB."""
    with connected(generate) as connection:
        request = head("OPTIONS", Connection="close", Access_Control_Request_Method="POST")
        connection.sendall(
            request[:-2] + (b"Access-Control-Request-Headers: " + b"a," * 4_000 + b"\r\n") * 90 + b"\r\n"
        )
        answer = rest(connection)

    assert answer.startswith(b"HTTP/1.1 204")
    assert b"Access-Control" not in answer


def test_an_origin_that_no_browser_sends_is_not_repeated(generate: Deployed) -> None:
    with connected(generate) as connection:
        request = head(Connection="close").replace(f"Origin: {ORIGIN}\r\n".encode(), b"")
        connection.sendall(request[:-2] + (b"Origin: " + b"a" * 8_000 + b"\r\n") * 90 + b"\r\n")
        answer = rest(connection)

    assert answer.startswith(b"HTTP/1.1 400")
    assert b"Access-Control" not in answer


def test_a_preflight_leaves_an_audit_event(generate: Deployed) -> None:
    before = generate.log.count('"outcome": "preflight"')

    send(generate.url, headers={"Access-Control-Request-Method": "POST"}, method="OPTIONS")

    assert generate.log.count('"outcome": "preflight"') == before + 1


def test_a_signed_in_client_that_drips_is_let_go(generate: Deployed, headers: Headers) -> None:
    """Each byte comes in time, but the body never ends: without a limit on the whole a few would hold all threads."""
    with connected(generate) as connection:
        connection.sendall(head(Content_Length=1000, **headers))
        end = time.monotonic() + 60
        connection.setblocking(False)
        answer = b""
        while not answer and time.monotonic() < end:
            with suppress(OSError):
                connection.send(b" ")
            with suppress(BlockingIOError):
                answer = connection.recv(65_536)
            time.sleep(0.2)

    assert answer.startswith(b"HTTP/1.1 400")


def test_a_body_in_chunks_is_read(generate: Deployed, headers: Headers) -> None:
    answer = send(generate.url, data('{"prompt":"hi"}'), JSON | headers, chunked=True)

    assert answer.status == 200


def test_a_content_type_with_a_charset_is_json(generate: Deployed) -> None:
    answer = send(generate.url, data("{}"), {"Content-Type": "application/json; charset=utf-8"})

    assert refusal(answer) == "app-check"


def test_a_type_that_is_none_is_left_as_it_is(generate: Deployed, headers: Headers) -> None:
    assert refusal(send(generate.url, data('{"@type":[],"value":"' + MARK + '"}'), JSON | headers)) == "field"


def test_nesting_up_to_the_bound_passes(generate: Deployed, headers: Headers) -> None:
    assert refusal(send(generate.url, data("[" * 63 + "]" * 63), JSON | headers)) == "field"
    assert refusal(send(generate.url, data(json.dumps("[" * 100 + '"' + "{" * 100)), JSON | headers)) == "field"


def test_a_64_bit_integer_of_a_mobile_sdk_is_one(generate: Deployed, headers: Headers) -> None:
    wrapped = '{"@type":"type.googleapis.com/google.protobuf.Int64Value","value":"64"}'

    answer = send(generate.url, data('{"prompt":"hi","maxOutputTokens":' + wrapped + "}"), JSON | headers)

    assert answer.status == 200


PATHS = [
    "/robots.txt",
    "/favicon.ico",
    "/__/health",
    "//x",
    "/a//b",
    "/../x",
    "/a%0ab",
    "/%00",
    "/%ff",
    "http://x/y",
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "POST", "TRACE"])
def test_every_path_is_the_functions(path: str, method: str, generate: Deployed) -> None:
    """The framework answers some itself, in HTML, and redirects others."""
    with connected(generate) as connection:
        connection.sendall(head(method, path, Connection="close"))
        answer = rest(connection)

    assert answer.startswith(b"HTTP/1.1 401" if method == "POST" else b"HTTP/1.1 400")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["details"]["reason"] in {"app-check", "shape"}


@pytest.mark.parametrize(
    "headers",
    [{"Upgrade": "websocket"}, {"Upgrade": "h2c"}, *({"Host": host} for host in ("[::1", "a/../b", "a..b", "x" * 64))],
)
def test_a_header_that_the_framework_looks_at_changes_nothing(headers: dict[str, str], generate: Deployed) -> None:
    with connected(generate) as connection:
        connection.sendall(head(Connection="Upgrade", **headers))
        connection.shutdown(socket.SHUT_WR)
        answer = rest(connection)

    assert answer.startswith(b"HTTP/1.1 401")
    assert b"app-check" in answer


BY_THE_SERVER = {
    "a head that is none": b"GARBAGE\r\n\r\n",
    "a path that is none": head(path="*"),
    "a field over 8 KB": head(X_Long="x" * 8_200),
    "more than 100 fields": head(**{f"X_{number}": "x" for number in range(101)}),
    "two lengths": head(Content_Length=1)[:-2] + b"Content-Length: 2\r\n\r\n",
    "a length and chunks": head(Content_Length=1, Transfer_Encoding="chunked"),
    "an expectation that nobody meets": head(Expect="200-ok"),
}


@pytest.mark.parametrize("name", BY_THE_SERVER)
def test_what_is_not_http_is_answered_by_the_server_in_html(name: str, generate: Deployed) -> None:
    """As docs/operating.md says: no code of ours sees it."""
    with connected(generate) as connection:
        connection.sendall(BY_THE_SERVER[name])
        answer = rest(connection)

    assert answer.startswith(b"HTTP/1.1 4")
    assert b"text/html" in answer
    assert b"Traceback" not in answer


@pytest.mark.parametrize(
    "value",
    ["", "Bearer", "Bearer ", "Basic x", "Bearer " + MARK, "Bearer a.b.c", "bearer x", "Bearer " + "x" * 8_000],
)
def test_any_authorization_header_is_a_callable_error(value: str, generate: Deployed, headers: Headers) -> None:
    answer = send(generate.url, data("{}"), JSON | headers | {"Authorization": value})

    assert (answer.status, refusal(answer)) == (401, "sign-in")


@pytest.mark.parametrize("value", ["", MARK, "a.b.c", "\u00e9", "x" * 8_000, "e30.e30.e30"])
def test_any_app_check_header_is_a_callable_error(value: str, generate: Deployed, headers: Headers) -> None:
    answer = send(generate.url, data("{}"), JSON | headers | {"X-Firebase-AppCheck": value})

    assert (answer.status, refusal(answer)) == (401, "app-check")


def test_preflight_allows_what_the_sdk_sends(generate: Deployed) -> None:
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}

    answer = send(generate.url, headers=asked, method="OPTIONS")

    assert answer.status == 204
    assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert answer.headers["Access-Control-Allow-Methods"] == "POST"
    assert "authorization" in answer.headers["Access-Control-Allow-Headers"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=12), children, max_size=4),
    max_leaves=12,
)
FIELDS = ["prompt", "contents", "model", "system", "maxOutputTokens", "temperature", "requestId", "role", "parts"]
ALMOST = st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=8), VALUES, max_size=6)
BODIES = (
    st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.builds(lambda value: json.dumps({"data": value}).encode(), ALMOST | VALUES)
    | st.builds(lambda value: json.dumps(value).encode(), VALUES)
)


def fuzz(cases: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        quiet = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
        return settings(max_examples=cases, suppress_health_check=quiet)(given(BODIES, st.booleans())(test))

    return decorate


def every_answer_is_a_callable_one(generate: Deployed, headers: Headers, body: bytes, attested: bool) -> None:
    answer = send(generate.url, body, JSON | (headers if attested else {}))

    if answer.status == 200:
        assert json.loads(answer.body).keys() == {"result"}
    else:
        assert answer.status < 500
        refusal(answer)


@fuzz(500)
def test_whatever_is_sent_the_answer_is_a_callable_one(
    generate: Deployed, headers: Headers, body: bytes, attested: bool
) -> None:
    every_answer_is_a_callable_one(generate, headers, body, attested)


@pytest.mark.long
@pytest.mark.timeout(1_800)
@fuzz(10_000)
def test_whatever_is_sent_ten_thousand_times(generate: Deployed, headers: Headers, body: bytes, attested: bool) -> None:
    every_answer_is_a_callable_one(generate, headers, body, attested)


def test_no_log_holds_what_was_sent(generate: Deployed, headers: Headers) -> None:
    for body in SHAPES.values():
        send(generate.url, body, JSON | headers)

    assert MARK not in generate.log
    assert "Traceback" not in generate.log
    assert all(value not in generate.log for value in headers.values())
