"""A request that would read or write without end, as deployed: where it is stopped, and what the client is told."""

import json
from pathlib import Path
from typing import Any

import pytest

from scripts.clients.tokens import headers as tokens_of
from scripts.local import wire
from scripts.local.deployed import deployed
from scripts.local.stack import Stack
from tests.e2e import spenders
from tests.e2e.spenders import READS, WRITES

SSE = {"Accept": "text/event-stream"}
UNBOUNDED = 7


class Tried:
    """What one call of a function was answered, and its audit event."""

    def __init__(self, stack: Stack, tmp_path: Path, function: str, *, streaming: bool = False) -> None:
        sent = tokens_of(stack.standins_url, "spender") | (SSE if streaming else {})
        env = {"MAX_REQUEST_READS": str(UNBOUNDED)}
        source = Path(spenders.__file__)
        with deployed(function, stack, tmp_path / "log", env=env, source=source) as server:
            answer = wire.call("POST", server.url, {"data": {}}, headers=sent)
            self.events = [json.loads(line) for line in answer.body.decode().replace("data: ", "").split("\n") if line]
            lines = [line for line in server.log.splitlines() if '"firebreak.request"' in line]
            self.unhandled = "firebreak.unhandled" in server.log
        self.audit: dict[str, Any] = json.loads(lines[-1])

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.events[-1]["error"]
        return error


@pytest.mark.parametrize("function", ["loop", "swallow", "disguise", "thread"])
def test_a_loop_of_reads_is_stopped_and_told_so_whatever_the_handler_makes_of_it(
    stack: Stack, tmp_path: Path, function: str
) -> None:
    tried = Tried(stack, tmp_path, function)

    assert tried.error["status"] == "RESOURCE_EXHAUSTED"
    assert tried.error["details"] == {"reason": "reads", "limit": READS, "remaining": 0}
    assert (tried.audit["reads"], tried.audit["writes"], tried.audit["outcome"]) == (READS, 0, "reads")


def test_an_error_in_which_the_excess_is_disguised_is_logged_as_well(stack: Stack, tmp_path: Path) -> None:
    assert Tried(stack, tmp_path, "disguise").unhandled


def test_a_stream_that_swallows_the_excess_ends_in_a_refusal(stack: Stack, tmp_path: Path) -> None:
    tried = Tried(stack, tmp_path, "stream", streaming=True)

    assert "message" in tried.events[0]
    assert tried.error["details"]["reason"] == "reads"
    assert not [event for event in tried.events if "result" in event]


@pytest.mark.parametrize(("function", "written"), [("queue", 10), ("write", 10)])
def test_a_loop_of_writes_is_stopped_even_if_it_only_queues_them(
    stack: Stack, tmp_path: Path, function: str, written: int
) -> None:
    tried = Tried(stack, tmp_path, function)

    assert tried.error["details"] == {"reason": "writes", "limit": WRITES, "remaining": 0}
    assert tried.audit["writes"] == written


def test_who_does_not_declare_firestore_reads_nothing(stack: Stack, tmp_path: Path) -> None:
    tried = Tried(stack, tmp_path, "undeclared")

    assert tried.error["details"]["reason"] == "reads"
    assert tried.audit["reads"] == 0


def test_a_callable_without_a_number_has_that_of_the_settings(stack: Stack, tmp_path: Path) -> None:
    assert Tried(stack, tmp_path, "by_default").audit["reads"] == UNBOUNDED


def test_a_request_may_spend_all_of_its_budget(stack: Stack, tmp_path: Path) -> None:
    tried = Tried(stack, tmp_path, "modest")

    assert tried.events[-1] == {"result": {"ok": True}}
    assert (tried.audit["reads"], tried.audit["writes"]) == (READS, WRITES)


def test_the_guards_own_operations_are_counted_apart(stack: Stack, tmp_path: Path) -> None:
    tried = Tried(stack, tmp_path, "undeclared")

    assert tried.audit["guard_reads"] >= 1
    assert tried.audit["reads"] == 0
