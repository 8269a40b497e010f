"""What an input costs in CPU by its kind, per kilobyte: `python -m scripts.bench.inputs`; no network, no store."""

import base64
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
from google import genai
from google.genai import types
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request as HttpRequest

from firebreak.errors import Refused
from firebreak.gemini import estimate, messages
from firebreak.gemini.contents import Media
from firebreak.gemini.request import Bounds, parse, request_id
from firebreak.guard import body as request_body
from graph import operations, traverse

MOST_BYTES = 1_048_576
RUNS = 3
BOUNDS = Bounds(
    models=("m",),
    max_output_tokens=4096,
    default_output_tokens=1024,
    max_prompt_bytes=MOST_BYTES,
    allow_client_system=True,
    media=Media(types=("image/png",), most_bytes=MOST_BYTES),
)
USER = {"role": "user", "parts": [{"text": "x"}]}


def generate_inputs() -> Iterator[tuple[str, Any]]:
    """The `data` of a `generate`, each as much of one kind as the limits allow in about 100 kB."""
    yield "prompt, ASCII", {"prompt": "hello wor " * 10_000}
    yield "prompt, Chinese", {"prompt": "語" * 33_000}
    yield "prompt, every Hangul syllable", {"prompt": "".join(map(chr, range(0xAC00, 0xD7A4))) * 3}
    yield "prompt, combining marks", {"prompt": "a" + "\u0315" * 50_000}
    yield "prompt, escaped", {"prompt": "\\u0001" * 16_000}
    yield "system", {"prompt": "x", "system": "be kind " * 12_000}
    yield "1,000 texts", _contents(*[{"text": "x"}] * 1_000)
    yield "6,600 texts (refused)", _contents(*[{"text": "x"}] * 6_600)
    yield "64 turns", {"contents": [USER] * 64}
    yield "999 calls", {"contents": [_model(*[{"functionCall": {"name": "f"}}] * 999), USER]}
    yield "999 signatures", {"contents": [_model(*[{"text": "", "thoughtSignature": "QUJD" * 20}] * 999), USER]}
    yield "one signature of 64 kB", {"contents": [_model({"text": "", "thoughtSignature": "QUJD" * 16_384}), USER]}
    yield "a call with 10,000 args", {"contents": [_model(_call(dict.fromkeys(map(str, range(10_000)), 1))), USER]}
    yield "1,000 responses", _contents(*[{"functionResponse": {"name": "f", "response": {}}}] * 1_000)
    yield "an image of 75 kB", _contents(_image(75_000))
    yield "1,000 images of nothing", _contents(*[_image(0)] * 1_000)
    yield "2,500 declarations (refused)", {"prompt": "x", "tools": _declared(*[{"name": "f"}] * 2_500)}
    yield "1,600 declarations", {"prompt": "x", "tools": _declared(*[{"name": "f"}] * 1_600)}
    yield "1,600 tools", {"prompt": "x", "tools": [{"functionDeclarations": []}] * 1_600}
    yield "wide parameters", _parameters({"properties": {str(at): {"type": "string"} for at in range(2_400)}})
    yield "4,900 schemas", _parameters({"anyOf": [{}] * 4_900})
    yield "19,000 schemas (refused)", _parameters({"anyOf": [{}] * 19_000})
    yield "deep parameters", _parameters(_nested(25))
    yield "a response schema", {"prompt": "x", "responseSchema": {"enum": ["abcdefgh"] * 4_900}}
    yield "a deep response schema", {"prompt": "x", "responseSchema": _nested(28)}
    yield "an unknown field", {"x" * 100_000: 1}
    yield "a requestId of 100 kB (refused)", {"prompt": "x", "requestId": "_" * 100_000}


def graph_inputs() -> Iterator[tuple[str, Any, Callable[[Any], object]]]:
    """The `data` of the graph's callables."""
    node = {"op": "create_node", "label": "a", "properties": {"x": "y" * 900}}
    yield "mutate: 100 operations", {"operations": [node] * 100}, _operations
    yield "mutate: 10,000 operations (refused)", {"operations": [{}] * 10_000}, _operations
    yield "traverse: 10,000 starts (refused)", {"start": ["a"] * 10_000}, traverse.parse


def main() -> None:
    """Print the table."""
    print("| input | kB | JSON ms | checks ms | estimate ms | SDK ms | CPU ms per kB |")
    print("|---|---|---|---|---|---|---|")
    client = _client()
    for name, data in generate_inputs():
        _row(name, data, _checked, client)
    for name, data, check in graph_inputs():
        _row(name, data, check, None)


def _row(name: str, data: Any, check: Callable[[Any], object], client: genai.Client | None) -> None:  # noqa: ANN401
    body = json.dumps({"data": data}, ensure_ascii=False, separators=(",", ":")).encode()
    kilobytes = len(body) / 1_000
    read_ms, read = _timed(lambda: request_body.read(_http(body), max_bytes=MOST_BYTES))
    check_ms, request = _timed(lambda: check(data)) if read is not None else (0.0, None)
    estimate_ms = send_ms = 0.0
    if client is not None and request is not None:
        asked: Any = request
        estimate_ms, _ = _timed(lambda: estimate.prompt_bound(asked))
        send_ms, _ = _timed(lambda: _send(client, asked))
    whole = read_ms + check_ms + estimate_ms + send_ms
    cells = [f"{ms:.1f}" for ms in (read_ms, check_ms, estimate_ms, send_ms)]
    print(f"| {name} | {kilobytes:.0f} | {' | '.join(cells)} | {whole / kilobytes:.2f} |", flush=True)


def _timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """The least CPU of a few runs, in ms, and what the last gave; None if it was refused."""
    least, result = float("inf"), None
    for _ in range(RUNS):
        began = time.process_time()
        try:
            result = run()
        except Refused:
            result = None
        least = min(least, time.process_time() - began)
    return least * 1_000, result


def _http(body: bytes) -> Any:  # noqa: ANN401 - Flask's request, as far as it is read
    return HttpRequest(EnvironBuilder(method="POST", content_type="application/json", data=body).get_environ())


def _checked(data: Any) -> object:  # noqa: ANN401
    request_id(data)
    return parse(data, BOUNDS)


def _operations(data: Any) -> object:  # noqa: ANN401
    return operations.parse(data, lambda: "id")


def _client() -> genai.Client:
    answer = {"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}]}
    transport = httpx2.MockTransport(lambda _request: httpx2.Response(200, json=answer))
    options = types.HttpOptions(httpx_client=httpx2.Client(transport=transport))
    return genai.Client(vertexai=False, api_key="k", http_options=options)


def _send(client: genai.Client, request: Any) -> None:  # noqa: ANN401
    config = messages.generation(request, 1.0)
    client.models.generate_content(model="m", contents=messages.EMPTY, config=config)


def _contents(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": list(parts)}]}


def _model(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def _call(args: dict[str, Any]) -> dict[str, Any]:
    return {"functionCall": {"name": "f", "args": args}}


def _image(size: int) -> dict[str, Any]:
    return {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(b"x" * size).decode()}}


def _declared(*declarations: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"functionDeclarations": list(declarations)}]


def _parameters(schema: dict[str, Any]) -> dict[str, Any]:
    return {"prompt": "x", "tools": _declared({"name": "f", "parameters": schema})}


def _nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


if __name__ == "__main__":
    main()
