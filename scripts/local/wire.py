"""HTTP to this machine: one request, one answer, never through a proxy."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from typing import Any

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back, whatever its status."""

    status: int
    body: bytes
    headers: Message = field(default_factory=Message)

    @property
    def json(self) -> Any:  # noqa: ANN401
        return json.loads(self.body)


def call(
    method: str,
    url: str,
    body: object = None,
    *,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = 10,
) -> Answer:
    """Send one request, with `body` as JSON unless it is None.

    Raises:
        OSError: nobody answered.
    """
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method, headers=dict(headers or {}))  # noqa: S310
    if data is not None:
        request.add_header("Content-Type", "application/json")
    try:
        with _DIRECT.open(request, timeout=timeout_s) as response:
            return Answer(status=response.status, body=response.read(), headers=response.headers)
    except urllib.error.HTTPError as error:
        with error:
            return Answer(status=error.code, body=error.read(), headers=error.headers)
