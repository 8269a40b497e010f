"""The seam to the SDK, which builds and sends the request; every byte of the answer is ours. Fails if it changes."""

import gzip
import json
import socket
import socketserver
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Thread
from typing import Any

import pytest
from google.genai import _api_client as genai_client
from google.genai import errors
from tenacity import stop_after_attempt

from firebreak.errors import ModelInput, ModelPaused, ModelUnavailable, Refused
from firebreak.gemini import answer
from firebreak.gemini.answer import Chunk
from firebreak.gemini.client import Developer, Gemini, Upstream
from firebreak.gemini.failure import ModelFailure
from firebreak.gemini.request import Bounds, parse
from firebreak.waiting import Done

HI = parse(
    {"prompt": "hi"},
    Bounds(models=("gemini-3.8-flash",), max_output_tokens=100, default_output_tokens=100, max_prompt_bytes=100),
)
DEADLINE_S = 60.0
SAID = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"text": "yes", "thoughtSignature": "c2ln", "unheard": [1]}]},
            "finishReason": "A_NEW_ONE",
        }
    ],
    "usageMetadata": {"totalTokenCount": True},
}


class Server(socketserver.ThreadingTCPServer):
    """Answers each request with the same bytes, and keeps what it was asked."""

    daemon_threads = True

    def __init__(self, answer: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.asked: list[tuple[str, dict[str, Any]]] = []


class Handler(socketserver.StreamRequestHandler):
    server: Server

    def handle(self) -> None:
        path = self.rfile.readline().split()[1].decode()
        size = 0
        while (line := self.rfile.readline().strip()) != b"":
            if line.lower().startswith(b"content-length:"):
                size = int(line.split(b":")[1])
        self.server.asked.append((path, json.loads(self.rfile.read(size))))
        self.wfile.write(self.server.answer)
        self.request.shutdown(socket.SHUT_WR)


@contextmanager
def serving(answer: bytes) -> Iterator[tuple[Gemini, Server]]:
    with Server(answer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield Gemini(Developer(api_key="k"), host=f"127.0.0.1:{server.server_address[1]}"), server
        finally:
            server.shutdown()


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Gemini, Server]]:
    """One client for many answers: making one takes longer than all of them."""
    with serving(b"") as both:
        yield both


@pytest.fixture
def answering(served: tuple[Gemini, Server]) -> Callable[[bytes], tuple[Gemini, Server]]:
    gemini, server = served

    def answering(sent: bytes) -> tuple[Gemini, Server]:
        server.answer, server.asked = sent, []
        return gemini, server

    return answering


type Answering = Callable[[bytes], tuple[Gemini, Server]]


def http(body: bytes, status: int = 200, *headers: str, size: int | None = None) -> bytes:
    head = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body) if size is None else size}", *headers, "", ""]
    return "\r\n".join(head).encode() + body


def whole(gemini: Gemini) -> list[Chunk]:
    return [gemini.generate(HI, deadline_s=DEADLINE_S)]


def streamed(gemini: Gemini) -> list[Chunk]:
    return taken(gemini.stream(HI, deadline_s=DEADLINE_S))


def taken(upstream: Upstream) -> list[Chunk]:
    chunks = []
    while not isinstance(chunk := upstream.take(wait_s=DEADLINE_S), Done):
        assert chunk is not None
        chunks.append(chunk)
    return chunks


def said() -> tuple[bytes, bytes]:
    """The same answer whole and as a stream."""
    body = json.dumps(SAID).encode()
    return body, b"data: " + body + b"\r\n\r\n"


type Ask = Callable[[Gemini], list[Chunk]]
WAYS = pytest.mark.parametrize(("ask", "way"), [(whole, 0), (streamed, 1)], ids=["whole", "streamed"])


@WAYS
@pytest.mark.parametrize("pack", [None, "gzip", "deflate"])
def test_an_answer_reaches_us_as_it_was_sent(answering: Answering, ask: Ask, way: int, pack: str | None) -> None:
    body = said()[way]
    packed = {None: body, "gzip": gzip.compress(body), "deflate": zlib.compress(body)}[pack]

    gemini, server = answering(http(packed, 200, *([f"Content-Encoding: {pack}"] if pack else [])))

    (chunk,) = ask(gemini)

    assert chunk.content == SAID["candidates"][0]["content"]  # type: ignore[index]  # a literal
    assert chunk.finish_reason == "A_NEW_ONE"
    assert chunk.usage is not None
    assert chunk.usage.total == -1
    ((path, asked),) = server.asked
    assert path.split("?")[0].endswith(
        ["gemini-3.8-flash:generateContent", "gemini-3.8-flash:streamGenerateContent"][way]
    )
    assert asked["generationConfig"]["maxOutputTokens"] == 100


@WAYS
def test_what_follows_a_packed_answer_is_bounded_too(
    monkeypatch: pytest.MonkeyPatch, answering: Answering, ask: Ask, way: int
) -> None:
    monkeypatch.setattr(answer, "MAX_BYTES", 100_000)
    gemini, _ = answering(http(gzip.compress(said()[way]) + bytes(200_000), 200, "Content-Encoding: gzip"))

    with pytest.raises(ModelFailure) as caught:
        ask(gemini)

    assert (caught.value.refusal, caught.value.cause) == (ModelUnavailable, "NotAnAnswer")


def test_a_stream_is_given_event_by_event(answering: Answering) -> None:
    gemini, _ = answering(http(said()[1] * 3))

    assert len(streamed(gemini)) == 3


BAD: dict[str, tuple[bytes, type[Refused], bool]] = {
    "broken gzip": (http(b"no gzip", 200, "Content-Encoding: gzip"), ModelUnavailable, True),
    "a redirect": (http(b"", 302, "Location: http://127.0.0.1:9/"), ModelUnavailable, True),
    "a redirect to itself": (http(b"", 307, "Location: /"), ModelUnavailable, True),
    "cut off": (http(b'{"candidates": []', size=100), ModelUnavailable, True),
    "no HTTP": (b"hello\r\n\r\n", ModelUnavailable, True),
    "nothing": (b"", ModelUnavailable, True),
    "html": (http(b"<html>"), ModelUnavailable, True),
    "400": (http(b"{}", 400), ModelInput, False),
    "400 of nonsense": (http(b'"x"', 400), ModelInput, False),
    "402": (http(b"", 402), ModelPaused, False),
    "401 cut off": (http(b'{"error"', 401, size=100), ModelUnavailable, False),
    "404 in broken gzip": (http(b"no gzip", 404, "Content-Encoding: gzip"), ModelUnavailable, False),
    "503": (http(b"<html>", 503), ModelUnavailable, True),
    "204": (http(b"", 204), ModelUnavailable, True),
}


@WAYS
@pytest.mark.parametrize("name", BAD)
def test_whatever_comes_instead_of_an_answer_is_a_failure_of_the_model(
    name: str, answering: Answering, ask: Ask, way: int
) -> None:
    sent, kind, billed = BAD[name]
    gemini, server = answering(sent)

    with pytest.raises(ModelFailure) as caught:
        ask(gemini)

    assert (caught.value.refusal, caught.value.may_be_billed) == (kind, billed)
    assert len(server.asked) == 1


@WAYS
def test_an_answer_is_not_lost_to_what_the_sdk_makes_of_it(
    monkeypatch: pytest.MonkeyPatch, answering: Answering, ask: Ask, way: int
) -> None:
    def upgraded(_response: object) -> None:
        raise TypeError("an empty answer")

    monkeypatch.setattr(errors.APIError, "raise_for_response", upgraded)
    gemini, server = answering(http(said()[way]))

    assert ask(gemini)[0].finish_reason == "A_NEW_ONE"
    assert len(server.asked) == 1


@WAYS
def test_an_sdk_that_tries_again_sends_nothing_more(
    monkeypatch: pytest.MonkeyPatch, answering: Answering, ask: Ask, way: int
) -> None:
    monkeypatch.setattr(genai_client, "retry_args", lambda _: {"stop": stop_after_attempt(3), "reraise": True})
    with serving(b"") as (gemini, server):
        with pytest.raises(ModelFailure) as caught:
            ask(gemini)

        assert caught.value.may_be_billed
        assert len(server.asked) == 1


@pytest.mark.parametrize("key", ["", "k\u200b"], ids=["none", "not ASCII"])
@WAYS
def test_a_key_that_cannot_be_sent_costs_nobody_anything(key: str, ask: Ask, way: int) -> None:
    with pytest.raises(ModelFailure) as caught:
        ask(Gemini(Developer(api_key=key), host="127.0.0.1:9"))

    assert (caught.value.refusal, caught.value.may_be_billed, caught.value.ours) == (ModelUnavailable, False, True)
    assert caught.value.cause == "ValueError", way


def test_a_count_is_read_from_what_was_sent() -> None:
    with serving(http(b'{"totalTokens": 31}')) as (gemini, server):
        assert gemini.count(HI, deadline_s=DEADLINE_S) == 31

    assert server.asked[0][0].endswith("gemini-3.8-flash:countTokens")


@pytest.mark.parametrize("body", [b"", b"{}", b'{"totalTokens": true}', b"[1]"])
def test_what_is_no_count_is_a_failure(body: bytes) -> None:
    with serving(http(body)) as (gemini, _), pytest.raises(ModelFailure) as caught:
        gemini.count(HI, deadline_s=DEADLINE_S)

    assert caught.value.refusal is ModelUnavailable


def test_after_a_pause_is_known_nothing_is_sent() -> None:
    with serving(http(b"", 402)) as (gemini, server):
        for _ in range(3):
            with pytest.raises(ModelFailure):
                gemini.count(HI, deadline_s=DEADLINE_S)
        with pytest.raises(ModelFailure) as caught:
            gemini.look(replace(HI, model="another-model"))

    assert (caught.value.refusal, len(server.asked)) == (ModelPaused, 1)


def test_a_limit_on_counting_is_none_on_answers() -> None:
    with serving(http(b"", 429)) as (gemini, _):
        with pytest.raises(ModelFailure):
            gemini.count(HI, deadline_s=DEADLINE_S)

        gemini.look(HI)


SEARCHING = replace(HI, tools=({"googleSearch": {}}, {"functionDeclarations": []}))
QUOTES = b'{"error": {"message": "No access to fileSearchStores/spend cap"}}'


@pytest.mark.parametrize("refusal", [(b"", 429), (QUOTES, 403), (b"", 402)], ids=["limit", "quoted words", "unpaid"])
def test_what_a_paid_tool_is_refused_stops_that_tool_alone(refusal: tuple[bytes, int]) -> None:
    with serving(http(*refusal)) as (gemini, server):
        with pytest.raises(ModelFailure):
            gemini.generate(SEARCHING, deadline_s=DEADLINE_S)
        with pytest.raises(ModelFailure):
            gemini.look(SEARCHING)

        gemini.look(HI)
        gemini.look(replace(HI, tools=({"functionDeclarations": []},)))

    assert len(server.asked) == 1


def test_what_the_model_alone_is_refused_stops_its_tools_too() -> None:
    with serving(http(b"", 402)) as (gemini, _):
        with pytest.raises(ModelFailure):
            gemini.generate(replace(HI, tools=({"functionDeclarations": []},)), deadline_s=DEADLINE_S)

        with pytest.raises(ModelFailure) as caught:
            gemini.look(SEARCHING)

    assert caught.value.refusal is ModelPaused
