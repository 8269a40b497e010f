"""A store that sends documents without end and minds no limit: whoever stops reading cancels it, and nothing hangs."""

import contextvars
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from google.api_core.exceptions import GoogleAPICallError, ServiceUnavailable
from google.cloud.firestore_v1.types import (
    CommitResponse,
    Document,
    RunAggregationQueryResponse,
    RunQueryResponse,
    WriteResult,
)

from firebreak.errors import MeterExceeded, ReadsExceeded
from firebreak.metering.api import STREAM_S, UNARY_S
from firebreak.metering.client import Metered
from firebreak.metering.meter import metered
from scripts.local.client import metered_at
from scripts.local.layout import PROJECT

NAME = f"projects/{PROJECT}/databases/(default)/documents/notes/"
DEADLINE_S = 10


class Endless(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc ships no types
    """Answers every query with documents until it is cancelled."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.breaks: grpc.StatusCode | None = None
        """How a query ends after three documents, if at all."""

        self.left_s: float | None = None
        """How long the last caller would have waited."""

    def service(self, call: grpc.HandlerCallDetails) -> Any:
        if call.method.endswith("/Commit"):
            return grpc.unary_unary_rpc_method_handler(self._commit, response_serializer=CommitResponse.serialize)
        if call.method.endswith("/RunAggregationQuery"):
            answer = RunAggregationQueryResponse.serialize(RunAggregationQueryResponse())
            return grpc.unary_stream_rpc_method_handler(lambda _request, _context: iter([answer]))
        return grpc.unary_stream_rpc_method_handler(self._send, response_serializer=RunQueryResponse.serialize)

    def _commit(self, _: bytes, context: grpc.ServicerContext) -> CommitResponse:
        self.left_s = context.time_remaining()
        return CommitResponse(write_results=[WriteResult()])

    def _send(self, _: bytes, context: grpc.ServicerContext) -> Iterator[RunQueryResponse]:
        self.left_s = context.time_remaining()
        context.add_callback(self.cancelled.set)
        number = 0
        while context.is_active():
            number += 1
            yield RunQueryResponse(document=Document(name=f"{NAME}d{number}"))
            if number == 3 and self.breaks is not None:
                context.abort(self.breaks, "planned")


@pytest.fixture
def endless() -> Endless:
    return Endless()


@pytest.fixture
def client(endless: Endless) -> Iterator[Metered]:
    server = grpc.server(ThreadPoolExecutor(max_workers=4), handlers=[endless])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield metered_at(f"127.0.0.1:{port}")
    server.stop(grace=None).wait()


def left_by_break(client: Metered) -> None:
    for _ in client.collection("notes").limit(50).stream():
        break


def left_by_next(client: Metered) -> None:
    next(client.collection("notes").limit(50).stream())


def left_by_close(client: Metered) -> None:
    stream: Any = client.collection("notes").limit(50).stream()
    next(stream)
    stream.close()


def exceeded(client: Metered) -> None:
    with pytest.raises(ReadsExceeded):
        client.collection("notes").get()


def exceeded_meanwhile(client: Metered) -> None:
    stream = client.collection("notes").limit(50).stream()
    next(stream)
    with pytest.raises(MeterExceeded):
        client.collection("notes").add({})
    with pytest.raises(MeterExceeded):
        next(stream)


@pytest.mark.parametrize("leave", [left_by_break, left_by_next, left_by_close, exceeded, exceeded_meanwhile])
def test_a_query_that_nobody_reads_on_is_cancelled(
    leave: Callable[[Metered], None], client: Metered, endless: Endless
) -> None:
    with metered(reads=100, writes=0):
        leave(client)

        assert endless.cancelled.wait(DEADLINE_S)


def test_documents_past_the_limit_end_the_request(client: Metered, endless: Endless) -> None:
    seen: list[object] = []
    with metered(reads=100, writes=0) as meters, pytest.raises(ReadsExceeded):
        seen.extend(client.collection("notes").limit(10).stream())

    assert len(seen) == 10
    assert meters.reads.used == 10
    assert endless.cancelled.wait(DEADLINE_S)


def test_a_read_that_waits_for_such_a_query_is_refused_and_does_not_hang(client: Metered) -> None:
    with metered(reads=20, writes=0), ThreadPoolExecutor(max_workers=1) as pool:
        stream = client.collection("notes").limit(20).stream()
        next(stream)
        context = contextvars.copy_context()

        other = pool.submit(context.run, client.collection("notes").limit(1).get)

        with pytest.raises(ReadsExceeded):
            other.result(timeout=DEADLINE_S)
        with pytest.raises(ReadsExceeded):
            list(stream)


@pytest.mark.parametrize("status", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INVALID_ARGUMENT])
def test_a_query_that_breaks_off_stays_counted_for_all_it_asked_for_and_is_not_sent_again(
    status: grpc.StatusCode, client: Metered, endless: Endless
) -> None:
    endless.breaks = status
    seen: list[object] = []

    with metered(reads=100, writes=0) as meters, pytest.raises(GoogleAPICallError):
        seen.extend(client.collection("notes").limit(10).stream())

    assert len(seen) == 3
    assert meters.reads.used == 10


def test_what_broke_off_while_another_waited_is_told_to_the_one_who_reads_it(client: Metered, endless: Endless) -> None:
    endless.breaks = grpc.StatusCode.UNAVAILABLE
    seen: list[object] = []

    with metered(reads=20, writes=0):
        stream = client.collection("notes").limit(15).stream()
        seen.append(next(stream))
        with pytest.raises(ReadsExceeded):
            client.collection("notes").limit(10).offset(9).get()
        with pytest.raises(ServiceUnavailable):
            seen.extend(stream)

    assert len(seen) == 3


def test_a_call_without_a_timeout_gets_ours_and_another_keeps_its_own(client: Metered, endless: Endless) -> None:
    waits: list[float | None] = []
    with metered(reads=9, writes=9):
        for timeout in (None, 3.0):
            next(client.collection("notes").limit(1).stream(timeout=timeout))
            waits.append(endless.left_s)
            client.document("notes/d").set({}, timeout=timeout)
            waits.append(endless.left_s)

    # What the wire tells of a deadline is a little more than what was set.
    assert all(wait and wait < most + 1 for wait, most in zip(waits, (STREAM_S, UNARY_S, 3.0, 3.0), strict=True))


def test_an_aggregation_that_does_not_tell_its_entries_stays_counted_for_all_it_asked_for(client: Metered) -> None:
    some: Any = client.collection("notes").limit(4_000)

    with metered(reads=9, writes=0) as meters:
        some.sum("n").get()

    assert meters.reads.used == 4
