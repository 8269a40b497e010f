"""One HTTPS request to the owner's webhook; its URL is a secret and is in no message or log."""

import logging
from collections.abc import Mapping
from contextlib import suppress

import certifi
from urllib3 import PoolManager
from urllib3.exceptions import HTTPError
from urllib3.util import parse_url

from firebreak.deadline import Late, within

# Of the whole exchange, and of each wait in it.
TOTAL_S = 10.0
SILENCE_S = 5.0

# It warns of headers that it cannot parse, and names the URL.
logging.getLogger("urllib3.connection").setLevel(logging.ERROR)


class NotDelivered(Exception):
    """The webhook is not known to have taken the message; the text is for the log and holds nothing of the URL."""


def client(*, certificates: str | None = None) -> PoolManager:
    """The HTTP client to keep; it retries nothing."""
    return PoolManager(ca_certs=certificates or certifi.where(), retries=False, timeout=SILENCE_S)


def read(url: str) -> str | None:
    """The URL that a secret's value holds; None if it is empty or `none`.

    Raises:
        ValueError: it is not an https URL.
    """
    url = url.strip()
    if url in {"", "none"}:
        return None
    with suppress(HTTPError):
        parts = parse_url(url)
        if parts.scheme == "https" and parts.host:
            return url
    raise ValueError("must be an https URL, or none")


def send(url: str, body: Mapping[str, object], *, http: PoolManager, total_s: float = TOTAL_S) -> None:
    """Post `body` as JSON and wait for a 2xx; a redirect is not followed, and the answer's body is not read.

    Raises:
        NotDelivered: no 2xx came in time; the request may still arrive.
    """
    try:
        answer = within(total_s, lambda: http.request("POST", url, json=body, redirect=False, preload_content=False))
    except Late:
        raise NotDelivered("no answer in time") from None
    except HTTPError as error:
        # Its message names the URL, so it is not chained.
        raise NotDelivered(type(error).__name__) from None
    answer.close()
    if not 200 <= answer.status < 300:
        raise NotDelivered(f"status {answer.status}")
