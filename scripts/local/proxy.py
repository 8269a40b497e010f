"""A gRPC proxy between Firestore clients and the emulator: it forwards bytes, for a subclass to watch or to break."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Self

import grpc

from scripts.local.layout import HOST

SERVICE = "/google.firestore.v1.Firestore/"
STREAMS = frozenset({"BatchGetDocuments", "RunQuery", "RunAggregationQuery", "ListDocuments"})
FORWARDED = frozenset({"authorization", "google-cloud-resource-prefix", "x-goog-request-params"})


class Proxy:
    """A proxy in front of the emulator at `target`."""

    forward_s = 20.0

    def __init__(self, target: str) -> None:
        self._channel = grpc.insecure_channel(target, options=[("grpc.max_receive_message_length", -1)])
        self._server = grpc.server(ThreadPoolExecutor(max_workers=64), handlers=[_Handlers(self)])
        self.address = f"{HOST}:{self._server.add_insecure_port(f'{HOST}:0')}"

    @contextmanager
    def running(self) -> Iterator[Self]:
        """It takes calls until the end of the block."""
        self._server.start()
        try:
            yield self
        finally:
            self._server.stop(grace=None).wait()
            self._channel.close()

    def serve(self, method: str, request: bytes, context: grpc.ServicerContext) -> list[bytes]:
        """Answer one call: with the emulator's messages, or with its error."""
        try:
            return self.forward(method, request, context)
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())
        raise AssertionError("abort raises")

    def forward(self, method: str, request: bytes, context: grpc.ServicerContext) -> list[bytes]:
        """The emulator's messages.

        Raises:
            grpc.RpcError: its error.
        """
        metadata = [(key, value) for key, value in context.invocation_metadata() if key in FORWARDED]
        if method in STREAMS:
            stream = self._channel.unary_stream(SERVICE + method)
            return list(stream(request, metadata=metadata, timeout=self.forward_s))
        return [self._channel.unary_unary(SERVICE + method)(request, metadata=metadata, timeout=self.forward_s)]


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc ships no types
    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy

    def service(self, handler_call_details: Any) -> grpc.RpcMethodHandler:  # noqa: ANN401 - grpc ships no types
        method = str(handler_call_details.method).removeprefix(SERVICE)
        if method in STREAMS:
            return grpc.unary_stream_rpc_method_handler(lambda r, c: iter(self._proxy.serve(method, r, c)))
        return grpc.unary_unary_rpc_method_handler(lambda r, c: self._proxy.serve(method, r, c)[0])
