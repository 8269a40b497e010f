"""What each callable costs Firestore on each path, from its audit event and counted at the wire: docs/costs.md."""

import base64
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import grpc
import pytest
from google.cloud import firestore as google_firestore
from google.cloud.firestore_v1.types import CommitRequest, RunQueryResponse

from scripts.clients.tokens import headers as tokens_of
from scripts.local import wire
from scripts.local.deployed import Deployed, deployed
from scripts.local.inject.raw_firestore import raw
from scripts.local.stack import Stack
from tests.conftest import StandIn
from tests.e2e.wipe import wipe
from tests.fault_proxy import FaultProxy
from tests.record import recorded

HEAD = """\
| call | reads | writes | guard's reads | guard's writes | deletes later |
|---|---|---|---|---|---|
"""
# Of its own, so that what is tightened here tightens no other test, and every document is new.
PROJECT = "demo-costs"
BUDGET = "01D4EE-079462-DFD6EC/11111111-2222-3333-4444-555555555555"
HELLO = {"prompt": "hi", "maxOutputTokens": 10}


class Counted(FaultProxy):
    """Counts what Firestore bills of the calls that succeed, and calls kept, which expire one by one."""

    reads = writes = kept = 0

    def serve(self, method: str, request: bytes, context: grpc.ServicerContext) -> list[bytes]:
        replies = super().serve(method, request, context)
        if method == "BatchGetDocuments":
            self.reads += len(replies)
        elif method == "RunQuery":
            found = sum(RunQueryResponse.deserialize(reply).document.name != "" for reply in replies)
            self.reads += max(1, found)
        elif method == "Commit":
            writes = CommitRequest.deserialize(request).writes
            self.writes += len(writes)
            self.kept += sum("/calls/" in w.update.name and not w.update_mask.field_paths for w in writes)
        return replies


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Of one request: the handler's own reads and writes, the guard's, and documents that will be deleted later."""

    reads: int
    writes: int
    guard_reads: int
    guard_writes: int
    deletes: int


class Till:
    """Rings up requests: what the audit event of each says, held against what was seen at the wire."""

    def __init__(self, proxy: Counted) -> None:
        self._proxy = proxy
        self.bills: dict[str, Bill] = {}

    def ring(self, row: str, server: Deployed, call: Callable[[], object]) -> None:
        """Make one call, and enter it; a call that is made twice under one row must cost the same."""
        before = (self._proxy.reads, self._proxy.writes, self._proxy.kept)
        told = len(audits(server))
        call()
        after = (self._proxy.reads, self._proxy.writes, self._proxy.kept)
        reads, writes, kept = (now - was for now, was in zip(after, before, strict=True))
        audit = eventually(server, told)
        bill = Bill(
            reads=audit["reads"],
            writes=audit["writes"],
            guard_reads=audit["guard_reads"],
            guard_writes=audit["guard_writes"],
            deletes=kept,
        )
        assert (bill.reads + bill.guard_reads, bill.writes + bill.guard_writes) == (reads, writes), row
        assert self.bills.setdefault(row, bill) == bill, row

    def page(self) -> str:
        rows = [
            f"| {row} | {b.reads} | {b.writes} | {b.guard_reads} | {b.guard_writes} | {b.deletes} |\n"
            for row, b in self.bills.items()
        ]
        return HEAD + "".join(rows)


def audits(server: Deployed) -> list[dict[str, Any]]:
    return [json.loads(line) for line in server.log.splitlines() if '"firebreak.request"' in line]


def eventually(server: Deployed, told: int) -> dict[str, Any]:
    end = time.monotonic() + 10
    while len(audits(server)) == told:
        assert time.monotonic() < end
        time.sleep(0.02)
    return audits(server)[-1]


@pytest.fixture
def store(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> google_firestore.Client:
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", stack.firestore_host)
    return raw(google_firestore.Client(project=PROJECT), "gives a user what others have left")


@pytest.fixture(scope="module")
def proxy(stack: Stack) -> Iterator[Counted]:
    wipe(stack, PROJECT)
    with Counted(stack.firestore_host).running() as proxy:
        yield proxy


@pytest.fixture(scope="module")
def servers(stack: Stack, proxy: Counted, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Deployed]]:
    """Every callable, and the function on the topic; the switch is read once, and the pool costs a row of its own."""
    env: dict[str, str | None] = {
        "GCLOUD_PROJECT": PROJECT,
        "FIRESTORE_EMULATOR_HOST": proxy.address,
        "SWITCH_TTL_S": "300",
        "POOL_TOKENS_PER_HOUR": "0",
        "MAX_DAILY_TOKENS": "10000",
        "BUDGET_POLICIES": f"{BUDGET}: 50%=record 90%=tighten(99)",
    }
    folder = tmp_path_factory.mktemp("costs")
    special: dict[str, tuple[str, dict[str, str | None]]] = {
        "pooled": ("generate", {"POOL_TOKENS_PER_HOUR": "1000000000"}),
        "counted": ("generate", {"WRITE_REQUESTS_PER_HOUR": "1"}),
        "switched": ("generate", {}),
        "on_budget_alert": ("on_budget_alert", {"FUNCTION_SIGNATURE_TYPE": "cloudevent"}),
    }
    plain: dict[str, tuple[str, dict[str, str | None]]] = {
        name: (name, {}) for name in ("generate", "usage", "mutate", "traverse")
    }
    with ExitStack() as running:
        yield {
            name: running.enter_context(deployed(target, stack, folder / name, env=env | extra))
            for name, (target, extra) in (plain | special).items()
        }


@dataclass(frozen=True, slots=True)
class Caller:
    """One user of these servers."""

    stack: Stack
    uid: str

    def __call__(self, server: Deployed, data: Mapping[str, Any], *, status: int = 200) -> Any:
        answer = wire.call(
            "POST", server.url, {"data": data}, headers=tokens_of(self.stack.standins_url, self.uid, PROJECT)
        )
        assert answer.status == status, answer.body
        return answer.json.get("result")


def test_every_path_costs_what_the_page_says(
    stack: Stack,
    servers: dict[str, Deployed],
    proxy: Counted,
    gemini: StandIn,
    store: google_firestore.Client,
) -> None:
    till = Till(proxy)

    def new_user(tokens: int | None = None) -> Caller:
        """One whom no instance knows; with so many tokens, where that is said."""
        user = Caller(stack, f"user-{uuid.uuid4().hex[:12]}")
        if tokens is not None:
            fields = {"tokens": tokens, "updatedAt": google_firestore.SERVER_TIMESTAMP}
            store.document("token_buckets", user.uid).set(fields)
        return user

    _edge(till, servers, new_user())
    _generate(till, servers, new_user, gemini)
    _limits(till, servers, new_user)
    _usage(till, servers, new_user())
    _graph(till, servers, new_user())
    _alerts(till, servers["on_budget_alert"])

    recorded("costs.md", till.page())


type NewUser = Callable[..., Caller]


def _edge(till: Till, servers: dict[str, Deployed], user: Caller) -> None:
    server = servers["switched"]

    def post(body: object, sent: Mapping[str, str], method: str = "POST") -> Callable[[], object]:
        return lambda: wire.call(method, server.url, body, headers=sent)

    sent = tokens_of(user.stack.standins_url, user.uid, PROJECT)
    attested = {"X-Firebase-AppCheck": sent["X-Firebase-AppCheck"]}
    till.ring("refused: settings, headers, `KILL_SWITCH`", server, post({"data": {}}, sent, "PUT"))
    till.ring("the first of an instance, and one in each `SWITCH_TTL_S`: in addition", server, post({"data": {}}, {}))
    till.ring("refused: App Check, sign-in, the switch", server, post({"data": {}}, {}))
    till.ring("refused: App Check, sign-in, the switch", server, post({"data": {}}, attested))
    till.ring("the first of a user, then one in 8, of a busy one in 32: in addition", server, post({"data": {}}, sent))
    till.ring("refused: a body, a field", server, post({"no": "data"}, sent))
    till.ring("refused: a body, a field", server, post({"data": {}}, sent))


def _generate(till: Till, servers: dict[str, Deployed], new_user: NewUser, gemini: StandIn) -> None:
    server = servers["generate"]
    user, poor = new_user(), new_user(5)
    new_user()(server, HELLO)
    # The hourly requests have rows of their own: each user has leased some before.
    for each in (user, poor):
        each(server, {"prompt": 7}, status=400)
    till.ring("`generate`, admitted, user new to the instance", server, lambda: user(server, HELLO))
    again = HELLO | {"requestId": "first"}
    till.ring("`generate`, admitted, user known", server, lambda: user(server, again))
    till.ring("`generate`, the same `requestId` again", server, lambda: user(server, again, status=409))
    gemini.script({"text": "long", "usage": {"totalTokenCount": 300}})
    till.ring("`generate`, admitted, user known, used more than estimated", server, lambda: user(server, HELLO))
    counted = new_user()
    counted(server, {"prompt": 7}, status=400)
    long = {"prompt": "five words in every line\n" * 500, "maxOutputTokens": 10}
    till.ring("`generate`, admitted, user new, after the model has counted", server, lambda: counted(server, long))
    row = "`generate`, refused, user new: tokens, too-large, blocked"
    till.ring(row, server, lambda: poor(server, HELLO, status=429))
    row = "`generate`, refused, user known: tokens, too-large, blocked"
    till.ring(row, server, lambda: poor(server, HELLO, status=429))


def _limits(till: Till, servers: dict[str, Deployed], new_user: NewUser) -> None:
    counted, pooled, user = servers["counted"], servers["pooled"], new_user()
    user(counted, {"prompt": 7}, status=400)
    row = "refused: the user's requests of this hour are used up"
    till.ring(row, counted, lambda: user(counted, HELLO, status=429))
    user = new_user()
    user(pooled, {"prompt": 7}, status=400)
    row = "`generate`, admitted, user new, and the instance leases from the pool"
    till.ring(row, pooled, lambda: user(pooled, HELLO))
    till.ring("`generate`, admitted, user known", pooled, lambda: user(pooled, HELLO))


def _usage(till: Till, servers: dict[str, Deployed], user: Caller) -> None:
    server = servers["usage"]
    user(server, {})
    till.ring("`usage`, with no call to show", server, lambda: user(server, {}))
    for _ in range(10):
        user(servers["generate"], HELLO)
    till.ring("`usage`, with 10 calls to show", server, lambda: user(server, {}))


def _graph(till: Till, servers: dict[str, Deployed], user: Caller) -> None:
    mutate, traverse = servers["mutate"], servers["traverse"]
    user(mutate, {"operations": []}, status=400)
    user(traverse, {}, status=400)

    def rung(row: str, *operations: dict[str, Any]) -> None:
        till.ring(f"`mutate`, {row}", mutate, lambda: user(mutate, {"operations": list(operations)}))

    rung("create_node", {"op": "create_node", "id": "a", "label": "a"})
    rung("10 × create_node", *({"op": "create_node", "id": f"n{i}", "label": "n"} for i in range(10)))
    rung("create_edge", {"op": "create_edge", "id": "e", "from": "a", "to": "n0", "label": "to"})
    rung("update_node", {"op": "update_node", "id": "a", "label": "b"})
    rung("move_node", {"op": "move_node", "id": "a", "position": {"x": 1, "y": 2}})
    row = "`traverse`, a node and its one neighbour"
    till.ring(row, traverse, lambda: user(traverse, {"start": "a", "depth": 1}))
    rung("delete_edge", {"op": "delete_edge", "id": "e"})
    rung("delete_node without edges", {"op": "delete_node", "id": "a"})
    edges = [{"op": "create_edge", "id": f"e{i}", "from": "n0", "to": f"n{i}", "label": "to"} for i in range(1, 6)]
    user(mutate, {"operations": edges})
    rung("delete_node with 5 edges", {"op": "delete_node", "id": "n0"})


def _alerts(till: Till, server: Deployed) -> None:
    account, budget = BUDGET.split("/")
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    start = f"{datetime.now(UTC):%Y-%m}-01T08:00:00Z"

    def notice(number: int, threshold: float | None, budget: str = budget) -> Callable[[], object]:
        told = {"alertThresholdExceeded": threshold} if threshold is not None else {}
        data = {
            "budgetDisplayName": "firestore",
            "costAmount": 90.0 + number,
            "costIntervalStart": start,
            "budgetAmount": 100.0,
            "budgetAmountType": "SPECIFIED_AMOUNT",
            "currencyCode": "USD",
        }
        message = {
            "messageId": str(number),
            "publishTime": now,
            "attributes": {"billingAccountId": account, "budgetId": budget, "schemaVersion": "1.0"},
            "data": base64.b64encode(json.dumps(data | told).encode()).decode(),
        }
        event = {
            "ce-id": str(number),
            "ce-source": "//pubsub.googleapis.com/projects/demo-firebreak/topics/budget-alerts",
            "ce-specversion": "1.0",
            "ce-type": "google.cloud.pubsub.topic.v1.messagePublished",
        }
        return lambda: wire.call("POST", server.url, {"message": message, "subscription": "s"}, headers=event)

    till.ring(
        "`on_budget_alert`, of a budget that the settings do not name", server, notice(1, None, str(uuid.uuid4()))
    )
    till.ring("`on_budget_alert`, recorded", server, notice(2, None))
    till.ring("`on_budget_alert`, the same again", server, notice(2, None))
    till.ring("`on_budget_alert`, with one change of the switch", server, notice(3, 0.9))
