"""The scenarios of the edge: the layers of a request in process, and the first chunk of a stream as deployed."""

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from scripts.bench.emulator import Own
from scripts.bench.figures import Block, Tally
from scripts.bench.shape import Scenario
from scripts.clients.tokens import headers
from scripts.local import environment, processes, wire
from scripts.local.deployed import FUNCTIONS, deployed
from scripts.local.dotenv import dotenv
from scripts.local.layout import PROJECT, ROOT, Layout

MODEL_S = 0.05
WARM_UP = 5
SCRIPT = {"chunks": ["a", "b"], "delayMs": round(MODEL_S * 1000), "usage": {"totalTokenCount": 5}}

type Tallies = dict[tuple[str, str], Tally]


def guard(own: Own, folder: Path, calls: int, tallies: Tallies) -> None:
    """All layers of `@guarded`, without a network: keys are there after the first call."""
    path = [str(ROOT / "scripts" / "local" / "inject"), str(ROOT / "functions"), str(ROOT)]
    env = {**environment.scrubbed(os.environ), **dotenv(FUNCTIONS, PROJECT)}
    env |= {
        "FUNCTIONS_EMULATOR": "true",
        "FIREBREAK_STANDINS": own.standins,
        "FIREBASE_AUTH_EMULATOR_HOST": own.stack.auth_host,
        "FIRESTORE_EMULATOR_HOST": own.stack.firestore_host,
        "GCLOUD_PROJECT": PROJECT,
        "GOOGLE_APPLICATION_CREDENTIALS": str(Layout().service_account),
        "PYTHONPATH": os.pathsep.join(path),
    }
    command = [sys.executable, "-m", "scripts.bench.guard_probe", str(calls)]
    done = subprocess.run(command, cwd=ROOT, env=processes.mark(env, folder), check=True, stdout=subprocess.PIPE)
    all_ms: list[float] = json.loads(done.stdout)
    _add(tallies, Scenario.GUARD, "firebreak", all_ms)


def first_chunk(own: Own, folder: Path, calls: int, tallies: Tallies) -> None:
    """A stream through the deployed function, and the same stream from the model's stand-in, in turns.

    FIRST_CHUNK counts from the time at which the stand-in sends the first chunk, FROM_REQUEST from the request, less
    the time that the model takes.
    """
    sent = headers(own.standins) | {"Accept": "text/event-stream"}
    path = "/v1beta/models/gemini-3.5-flash:streamGenerateContent?alt=sse"
    ask = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    mark = {processes.MARK: str(folder)}
    with deployed("generate", own.stack, folder / "generate.log", env=mark) as server:
        for number in range(calls + WARM_UP):
            ours = _first(own, server.url, {"data": {"prompt": "hi", "maxOutputTokens": 10}}, sent)
            bare = _first(own, own.standins + path, ask, {"x-goog-api-key": "local"})
            if number >= WARM_UP:
                for name, (passed_ms, whole_ms) in {"firebreak": ours, "floor": bare}.items():
                    _add(tallies, Scenario.FIRST_CHUNK, name, [passed_ms])
                    _add(tallies, Scenario.FROM_REQUEST, name, [whole_ms])


def _first(own: Own, url: str, body: object, sent: Mapping[str, str]) -> tuple[float, float]:
    """Milliseconds to the first chunk: since the stand-in sent it, and since the request less the model's time."""
    wire.call("POST", f"{own.standins}/_reset")
    wire.call("POST", f"{own.standins}/_script/gemini", [SCRIPT])
    at = urlsplit(url)
    connection = http.client.HTTPConnection(at.netloc, timeout=30)
    began = time.time()
    target = f"{at.path or '/'}?{at.query}"
    connection.request("POST", target, json.dumps(body), {"Content-Type": "application/json", **sent})
    response = connection.getresponse()
    line = response.readline()
    while line == b"\n":
        line = response.readline()
    came = time.time()
    response.read()
    connection.close()
    assert b'"a"' in line, line
    asked: float = wire.call("GET", f"{own.standins}/_log/gemini").json[-1]["at"]
    return (came - asked - MODEL_S) * 1000, (came - began - MODEL_S) * 1000


def _add(tallies: Tallies, scenario: Scenario, contender: str, all_ms: list[float]) -> None:
    block = Block(latencies_ms=all_ms, seconds=sum(all_ms) / 1000, admitted=len(all_ms))
    tallies.setdefault((scenario, contender), Tally()).add(block, should_admit=len(all_ms))
