"""Everything a stranger can send: the answer is a callable error in JSON, and no log holds what was sent."""

import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
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
def test_a_body_of_another_shape_is_a_callable_error(name: str, url: str) -> None:
    answer = send(url, SHAPES[name])

    assert (answer.status, refusal(answer)) == (400, "shape")


@pytest.mark.parametrize("name", HEADERS)
def test_another_content_type_is_a_callable_error(name: str, url: str) -> None:
    answer = send(url, data("{}"), HEADERS[name])

    assert (answer.status, refusal(answer)) == (400, "shape")


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_another_method_is_a_callable_error(method: str, url: str) -> None:
    answer = send(url, data("{}"), method=method)

    assert (answer.status, refusal(answer)) == (400, "shape")


def test_a_body_in_chunks_is_bounded_without_a_length(generate: Deployed) -> None:
    answer = send(generate.url, data('"' + "x" * 3_000_000 + '"'), chunked=True)

    assert (answer.status, refusal(answer)) == (400, "shape")


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_client_that_sends_too_much_gets_to_read_why(accept: str, generate: Deployed) -> None:
    answer = send(generate.url, data('"' + "x" * 9_000_000 + '"'), JSON | {"Accept": accept})

    assert b'"reason":"shape"' in answer.body.replace(b" ", b"")


def test_a_client_that_drips_is_let_go(generate: Deployed) -> None:
    """Each byte comes in time, but the body never ends: without a limit on the whole a few would hold all threads."""
    at = urlsplit(generate.url)
    with socket.create_connection((at.hostname, at.port), timeout=60) as connection:
        head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
        connection.sendall(f"{head}Origin: {ORIGIN}\r\n\r\n".encode())
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


def test_a_type_that_is_none_is_left_as_it_is(generate: Deployed) -> None:
    assert refusal(send(generate.url, data('{"@type":[],"value":"' + MARK + '"}'))) == "app-check"


def test_nesting_up_to_the_bound_passes(generate: Deployed) -> None:
    assert refusal(send(generate.url, data("[" * 63 + "]" * 63))) == "app-check"
    assert refusal(send(generate.url, data(json.dumps("[" * 100 + '"' + "{" * 100)))) == "app-check"


def test_a_64_bit_integer_of_a_mobile_sdk_is_one(generate: Deployed, headers: Headers) -> None:
    wrapped = '{"@type":"type.googleapis.com/google.protobuf.Int64Value","value":"64"}'

    answer = send(generate.url, data('{"prompt":"hi","maxOutputTokens":' + wrapped + "}"), JSON | headers)

    assert answer.status == 200


@pytest.mark.parametrize("path", ["/robots.txt", "/favicon.ico"])
def test_only_paths_that_the_framework_keeps_are_not_ours(path: str, generate: Deployed) -> None:
    """They never reach a function; their 404 holds nothing of the request."""
    assert send(generate.url + path, method="GET").status == 404


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

    assert answer.status == 200
    assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN
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
