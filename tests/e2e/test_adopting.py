"""docs/adopting.md, tried: its marked blocks are run on the emulators as they stand there, its numbers are counted."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.cloud import firestore as google_firestore

from scripts.local import environment, processes, wire
from scripts.local.deployed import FUNCTIONS, LOGS, Deployed, deployed
from scripts.local.layout import HOST, ROOT, Layout
from scripts.local.stack import Stack
from tests.conftest import SignedIn, StandIn
from tests.e2e.conftest import Headers
from tests.fault_proxy import Fault, FaultProxy, Way

PAGE = (ROOT / "docs" / "adopting.md").read_text()
PARTS = Path(__file__).parent / "adopting"
BLOCK = re.compile(r"<!-- block: (\S+) -->\n(?:```\w*\n(.*?)^```|((?:\|[^\n]*\n)+))", re.DOTALL | re.MULTILINE)
STANDINS = "127.0.0.1:9777"
LIMIT = 100_000
NOTE = "Milk, bread, and a firebreak."

type Json = Any
type Run = Callable[..., list[dict[str, Json]]]
type Client = Callable[..., google_firestore.Client]


@cache
def block(name: str) -> str:
    """A marked block of the page: what stands in the fence, or the table."""
    found = {match[1]: match[2] or match[3] for match in BLOCK.finditer(PAGE)}
    return str(found[name])


@pytest.fixture(scope="module")
def adopted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`main.py` with the page's own function added, as an adopter has it."""
    source = tmp_path_factory.mktemp("adopted") / "main.py"
    source.write_text(f"{(FUNCTIONS / 'main.py').read_text()}\n\n{block('guarded')}")
    return source


# An existing project


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, adopted: Path) -> Path:
    """A project that had one function, `hello`, beside a copy of this tree; the page's steps are done in it."""
    beside = tmp_path_factory.mktemp("projects")
    (beside / "firebreak").symlink_to(ROOT)
    shop = beside / "shop"
    (shop / "functions").mkdir(parents=True)
    (shop / "functions" / "main.py").write_text((PARTS / "hello.py").read_text())
    (shop / "functions" / "requirements.txt").write_text("firebase-functions\n")
    subprocess.run(["sh", "-ec", block("copy")], cwd=shop, check=True)
    shutil.copy(adopted, shop / "firebreak" / "main.py")
    for codebase in ("functions", "firebreak"):
        (shop / codebase / "venv").symlink_to(FUNCTIONS / "venv")
    return shop


def free_ports(count: int) -> list[int]:
    with ExitStack() as probes:
        sockets = [probes.enter_context(socket.socket()) for _ in range(count)]
        for probe in sockets:
            probe.bind((HOST, 0))
        return [probe.getsockname()[1] for probe in sockets]


@contextmanager
def emulated(shop: Path, stack: Stack) -> Iterator[str]:
    """The functions emulator on a project, with the page's environment; its address."""
    names = ("functions", "hub", "logging", "eventarc", "tasks")
    emulators: dict[str, Json] = {
        name: {"host": HOST, "port": port} for name, port in zip(names, free_ports(len(names)), strict=True)
    }
    config = json.loads(block("firebase.json")) | {"emulators": emulators | {"ui": {"enabled": False}}}
    (shop / "firebase.json").write_text(json.dumps(config))
    steps = block("emulators").replace(STANDINS, stack.standins_url.removeprefix("http://")).strip()
    env = processes.mark(environment.scrubbed(os.environ), Layout().root) | {
        "PATH": f"{Layout().cli.parent}{os.pathsep}{os.environ['PATH']}",
        "FIRESTORE_EMULATOR_HOST": stack.firestore_host,
        "FIREBASE_AUTH_EMULATOR_HOST": stack.auth_host,
        "FUNCTIONS_DISCOVERY_TIMEOUT": "60",
        "TMPDIR": str(shop),
        "XDG_CONFIG_HOME": str(shop / "config"),
    }
    log = shop / "log"
    LOGS.append(log)
    with log.open("wb") as out:
        # Firestore and Auth are running already.
        command = ["sh", "-ec", f"{steps} --only functions"]
        cli = subprocess.Popen(command, cwd=shop, env=env, stdout=out, stderr=out, start_new_session=True)
    try:
        end = time.monotonic() + 60
        while "All emulators ready" not in log.read_text(errors="replace"):
            assert cli.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < end, log.read_text()[-2000:]
            time.sleep(0.1)
        yield f"http://{HOST}:{emulators['functions']['port']}"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(cli.pid, signal.SIGKILL)
        cli.wait()


def test_an_existing_project_runs_it_as_a_codebase_beside_its_own(shop: Path, stack: Stack, headers: Headers) -> None:
    assert not (shop / "firebreak" / ".secret.local").exists()

    with emulated(shop, stack) as address:
        backends = wire.call("GET", f"{address}/backends").json["backends"]
        loaded = [(f["codebase"], f["name"]) for backend in backends for f in backend["functionTriggers"]]
        url = f"{address}/{stack.project}/us-central1"
        hello = wire.call("GET", f"{url}/hello", timeout_s=30)
        unattested = wire.call("POST", f"{url}/generate", {"data": {}}, timeout_s=30)
        answer = wire.call("POST", f"{url}/generate", {"data": {"prompt": "hi"}}, headers=headers, timeout_s=30)

    assert sorted(loaded) == [
        ("default", "hello"),
        ("firebreak", "generate"),
        ("firebreak", "mutate"),
        ("firebreak", "on_budget_alert"),
        ("firebreak", "summarize"),
        ("firebreak", "traverse"),
        ("firebreak", "usage"),
    ]
    assert hello.body == b"hello"
    assert unattested.json["error"]["details"] == {"reason": "app-check"}
    assert answer.json["result"]["charged"] > 0


def test_the_codebase_is_named_as_it_is_here() -> None:
    ours = json.loads((ROOT / "firebase.json").read_text())["functions"][0]
    copied = next(c for c in json.loads(block("firebase.json"))["functions"] if c["codebase"] == "firebreak")

    assert copied == ours | {"source": "firebreak"}


@pytest.fixture
def merged_rules(stack: Stack) -> Iterator[None]:
    """The page's rule as the rules of the emulator's project."""
    address = f"http://{stack.firestore_host}/emulator/v1/projects/{stack.project}:securityRules"

    def put(content: str) -> None:
        assert wire.call("PUT", address, {"rules": {"files": [{"name": "rules", "content": content}]}}).status == 200

    head = "rules_version = '2';\nservice cloud.firestore { match /databases/{database}/documents {\n"
    put(f"{head}{block('rules')}}}}}")
    yield
    put((ROOT / "firestore.rules").read_text())


@pytest.mark.usefixtures("merged_rules")
def test_a_rule_that_matched_everything_no_longer_opens_the_buckets(stack: Stack, user: SignedIn) -> None:
    documents = f"http://{stack.firestore_host}/v1/projects/{stack.project}/databases/(default)/documents"
    fields = {"fields": {"tokens": {"integerValue": "1000000"}}}

    def write(path: str) -> int:
        bearer = {"Authorization": f"Bearer {user.id_token}"}
        return wire.call("PATCH", f"{documents}/{path}", fields, headers=bearer).status

    assert [write(f"notes/{user.uid}"), write(f"users/{user.uid}/notes/a")] == [200, 200]
    ours = [
        "token_buckets/u/calls/a",
        "request_buckets/u",
        "pool/0",
        "ops/switch",
        "budget_notices/b",
        "graphs/u/nodes/a",
    ]
    assert [write(path) for path in ours] == [403] * len(ours)


# A function of one's own


@pytest.fixture(scope="module")
def summarize(stack: Stack, adopted: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed("summarize", stack, tmp_path_factory.mktemp("summarize") / "log", source=adopted) as server:
        yield server


@pytest.fixture
def note(firestore: Client, user: SignedIn) -> str:
    """The name of a note of the user's."""
    firestore().document("users", user.uid, "notes", "groceries").set({"text": NOTE})
    return "groceries"


def post(server: Deployed, data: Json, headers: Headers) -> tuple[int, dict[str, Json]]:
    answer = wire.call("POST", server.url, {"data": data}, headers=headers, timeout_s=30)
    return answer.status, answer.json


def test_a_guarded_function_reads_its_callers_own_data_and_charges_the_caller(
    summarize: Deployed, note: str, headers: Headers, gemini: StandIn, firestore: Client, user: SignedIn
) -> None:
    status, body = post(summarize, {"note": note, "requestId": "r1"}, headers)

    assert status == 200, body
    assert NOTE in json.dumps(gemini.log()[0]["body"])
    call = firestore().document("token_buckets", user.uid, "calls", "r1").get().to_dict() or {}
    assert call["actual"] == body["result"]["charged"] > 0


@pytest.mark.parametrize("data", [None, {}, {"note": 7}, {"note": "a/b"}, {"note": "unknown"}])
def test_a_guarded_function_refuses_as_ours_do(
    data: Json, summarize: Deployed, headers: Headers, gemini: StandIn
) -> None:
    status, body = post(summarize, data, headers)

    assert (status, body["error"]["details"]) == (400, {"reason": "field"})
    assert gemini.log() == []


def test_a_guarded_function_is_not_open_to_other_users_and_other_apps(
    summarize: Deployed, note: str, headers: Headers, mint: Callable[..., str], sign_up: Callable[[], SignedIn]
) -> None:
    other = {"Authorization": f"Bearer {sign_up().id_token}", "X-Firebase-AppCheck": mint()}

    assert post(summarize, {"note": note}, other)[1]["error"]["message"] == "there is no such note"
    assert post(summarize, {"note": note}, {"Authorization": headers["Authorization"]})[0] == 401


# The web client


@pytest.fixture
def web(stack: Stack, tmp_path: Path) -> Run:
    """An app with the page's client and the official SDK; runs calls, and returns what it says."""
    app = tmp_path / "web"
    shutil.copytree(PARTS, app, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    (app / "node_modules").mkdir()
    (app / "firebase").rename(app / "node_modules" / "firebase")
    (app / "node_modules" / "real-firebase").symlink_to(ROOT / "node_modules" / "firebase")
    config = {"projectId": stack.project, "apiKey": "local", "appId": "1:123456789012:web:f12eb12ea4f12eb12ea4f1"}
    (app / "package.json").write_text('{"type": "module"}')
    (app / "config.js").write_text(f"export const firebaseConfig = {json.dumps(config)};\nexport const siteKey = '';\n")
    (app / "backend.js").write_text(block("web"))

    def run(*calls: list[str], functions: str = stack.functions_url) -> list[dict[str, Json]]:
        env = environment.scrubbed(os.environ) | {
            "FUNCTIONS": functions,
            "AUTH": f"http://{stack.auth_host}",
            "MINT": f"{stack.standins_url}/appcheck/mint",
            "DOCUMENTS": f"http://{stack.firestore_host}/v1/projects/{stack.project}/databases/(default)/documents",
        }
        command = ["node", "run.mjs", json.dumps(calls)]
        done = subprocess.run(command, cwd=app, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    return run


def outcomes(events: list[dict[str, Json]]) -> list[dict[str, Json]]:
    return [event for event in events if "minted" not in event]


def test_the_web_client_is_answered_and_tells_its_user_when_tokens_are_used_up(web: Run, gemini: StandIn) -> None:
    gemini.script({"text": "A strip.", "usage": {"totalTokenCount": LIMIT - 100}})

    answered, refused = outcomes(web(["ask", "What is a firebreak?"], ["ask", "And a backburn?"]))

    assert answered["answered"]["text"] == "A strip."
    assert refused["refused"] == "tokens"
    assert re.fullmatch(r"Your tokens are used up; this fits again in [0-9]+ min\.", refused["told"])


def test_the_web_client_sends_the_same_request_again_where_that_is_safe(
    web: Run, stack: Stack, tmp_path: Path, gemini: StandIn
) -> None:
    bucket = Fault(
        "BatchGetDocuments",
        Way.BEFORE,
        status=grpc.StatusCode.PERMISSION_DENIED,
        matches=lambda request: b"/token_buckets/" in request,
    )
    with (
        FaultProxy(stack.firestore_host).running() as proxy,
        deployed("generate", stack, tmp_path / "log", env={"FIRESTORE_EMULATOR_HOST": proxy.address}) as server,
    ):
        proxy.plan(bucket)

        (event,) = outcomes(web(["ask", "hi"], functions=server.url))

        assert '"outcome": "store"' in server.log

    assert event["answered"]["charged"] > 0
    assert len(gemini.log()) == 1


def test_a_limited_use_token_is_good_for_one_call_of_the_web_client(
    web: Run, summarize: Deployed, headers: Headers
) -> None:
    ask = ["summarizeNote", "groceries"]

    events = web(["writeNote", "groceries", NOTE], ask, ask, functions=summarize.url)
    tokens = [event["minted"] for event in events if "minted" in event]
    replayed = post(summarize, {"note": "groceries"}, headers | {"X-Firebase-AppCheck": tokens[-1]})

    assert [event.keys() for event in outcomes(events)] == [{"answered"}] * 2
    assert len(tokens) == len(set(tokens)) >= 2
    assert (replayed[0], replayed[1]["error"]["details"]) == (401, {"reason": "app-check"})


# What a call costs


def operations(call: str) -> tuple[int, int, int]:
    """What docs/costs.md says of a call: all reads, all writes, later deletes."""
    rows = [line.strip("|").split("|") for line in (ROOT / "docs" / "costs.md").read_text().splitlines()[2:]]
    (row,) = (row for row in rows if row[0].strip() == call)
    reads, writes, guard_reads, guard_writes, deletes = map(int, row[1:])
    return reads + guard_reads, writes + guard_writes, deletes


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Dollars, as the Firebase CLI has them for a tier 1 region."""

    invocation: float
    vcpu_s: float
    idle_vcpu_s: float
    gib_s: float
    printed: float


@pytest.fixture
def rates() -> Rates:
    code = """
        const { V2_RATES: r, monthlyMinInstanceCost } = require("firebase-tools/lib/deploy/functions/pricing");
        const one = { platform: "gcfv2", region: "us-central1", cpu: 1, availableMemoryMb: 512, minInstances: 1 };
        console.log(JSON.stringify({ invocation: r.invocations, vcpu_s: r.vCpu[1], idle_vcpu_s: r.idleVCpu[1],
          gib_s: r.memoryGb[1], printed: monthlyMinInstanceCost([one]) }));
    """
    done = subprocess.run(["node", "-e", code], cwd=ROOT, check=True, capture_output=True, text=True)
    return Rates(**json.loads(done.stdout))


def test_the_pages_sums_follow_from_its_prices_and_counts(rates: Rates) -> None:
    read, write, delete = (float(price) for price in re.findall(r"[RWD] = (0\.[0-9]+)", PAGE)[:3])
    reads, writes, deletes = operations("`generate`, admitted, user new to the instance")
    million_of_3_s = 3e6 * (rates.vcpu_s + rates.gib_s / 2)

    for sum_in_dollars in (
        10 * (reads * read + writes * write + deletes * delete),
        10 * operations("`generate`, refused, user new: tokens, too-large, blocked")[0] * read,
        1e6 * rates.invocation,
        million_of_3_s,
        million_of_3_s / 8,
        30 * 86_400 * (rates.idle_vcpu_s + rates.gib_s / 2),
        rates.printed,
    ):
        assert f"${sum_in_dollars:.2f}" in PAGE
    assert (f"{rates.vcpu_s:.6f}", f"{rates.gib_s:.7f}") == ("0.000024", "0.0000025")
