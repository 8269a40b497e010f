"""The Firestore client of handlers: it counts on the meters of the request under way, and stops where they end."""

from functools import cached_property
from typing import Any, NoReturn

import grpc
from google.cloud import firestore
from google.cloud.firestore_v1.base_transaction import MAX_ATTEMPTS
from google.cloud.firestore_v1.services.firestore import FirestoreClient
from google.cloud.firestore_v1.services.firestore import client as firestore_client
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcTransport

from firebreak.metering.api import Api
from firebreak.metering.batch import Batch, Transaction
from firebreak.metering.meter import unsupported

# gRPC waits up to 120 s between two attempts to connect, and 20 s for one that gets no answer.
RECONNECT = [
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.min_reconnect_backoff_ms", 5_000),
]
# An emulator's answers are as large as the real ones: the SDK's own channels have no bound either.
ANY_SIZE = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]


class Reconnecting(FirestoreGrpcTransport):
    """The SDK's transport, whose channel is back soon after an outage."""

    @classmethod
    def create_channel(cls, *where: Any, **how: Any) -> grpc.Channel:  # noqa: ANN401 - the SDK's own
        """As the SDK makes it; `options` are the channel's."""
        return super().create_channel(*where, **how | {"options": [*how.get("options", ()), *RECONNECT]})


class Metered(firestore.Client):
    """The SDK's client, metered: every read and write of its documents, queries, batches and transactions is counted.

    What is counted is what Firestore bills. A request never makes the server read more documents than its budget, nor
    write more; who asks for more gets `MeterExceeded`, and from then on with every operation. So:

    - Give every query a limit. Without one it sets aside all that is left until it is read to its end, and if the meter
      ends it, nobody can know whether there was more: it is refused after the last document allowed. Left before its
      end (`break`, `next`), it stays counted for all that it could have read.
    - A batch beyond 450 writes is sent in parts, and is not atomic then.
    - Nothing is retried, and a lost reply stays counted: each attempt is billed. Retry around the call.
    - A `BulkWriter` built by hand on it loses its writes: nothing is written, and nothing raised.
    - Outside a request it raises `NoMeter`: a thread of your own runs in a copy of the request's context, other work
      under `unmetered("why")`.

    Raises (all operations):
        MeterExceeded: the request would read or write more than it may.
        NoMeter: no request is under way.
        Unsupported: the operation cannot be metered.
    """

    _guard = False

    @cached_property
    def _firestore_api(self) -> Api:
        return Api(self._wire, guard=self._guard)

    @cached_property
    def _wire(self) -> FirestoreClient:
        wire: FirestoreClient = self._firestore_api_helper(Reconnecting, FirestoreClient, firestore_client)
        return wire

    def _emulator_channel(self, _transport: type[FirestoreGrpcTransport]) -> grpc.Channel:
        # The SDK makes this one past the transport.
        return grpc.insecure_channel(self._emulator_host, options=[*ANY_SIZE, *RECONNECT])

    def guards(self) -> "Metered":
        """The client of the guard itself: on the same connection, counted apart and without a limit."""
        return Guards(self)

    def batch(self) -> Batch:
        """A batch whose writes count when they are queued, and that is sent in parts beyond 450."""
        return Batch(self)

    def transaction(self, max_attempts: int = MAX_ATTEMPTS, read_only: bool = False) -> Transaction:
        """A transaction whose writes count when they are queued, anew with each attempt."""
        return Transaction(self, max_attempts=max_attempts, read_only=read_only)

    def bulk_writer(self, *_: object, **__: object) -> NoReturn:
        """Not metered: it sends from threads of its own, and again on errors."""
        unsupported("batch_write")

    def recursive_delete(self, *_: object, **__: object) -> NoReturn:
        """Not metered: it goes through `bulk_writer`."""
        unsupported("batch_write")

    def pipeline(self) -> NoReturn:
        """Not metered: no answer tells what a pipeline reads."""
        unsupported("execute_pipeline")


class Guards(Metered):
    """As `Metered`, on the connection of another and on the meters of the guard."""

    _guard = True

    def __init__(self, origin: Metered) -> None:
        vars(self).update({name: value for name, value in vars(origin).items() if name != "_firestore_api"})
        self._origin = origin

    @cached_property
    def _wire(self) -> FirestoreClient:
        return self._origin._wire  # noqa: SLF001 - of its own class
