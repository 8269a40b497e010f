"""One page of a list, as Google's APIs page."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass

from scripts.local.standins.google import GoogleError


@dataclass(frozen=True, slots=True)
class Page[T]:
    """`next` is what the answer says of a page to come: nothing, if this is the last one."""

    items: list[T]
    next: dict[str, str]


def cut[T](items: Sequence[T], size: int, token: str, *, most: int) -> Page[T]:
    """The page that begins at `token`; a size of 0, or above `most`, is `most`.

    Raises:
        GoogleError: 400, the size is negative or the token is not from here.
    """
    start = _start(token)
    if size < 0 or not 0 <= start <= len(items):
        raise GoogleError(400, "Request contains an invalid argument.")
    end = start + (min(size, most) or most)
    following = {"nextPageToken": _token(end)} if end < len(items) else {}
    return Page(list(items[start:end]), following)


def _token(start: int) -> str:
    return base64.urlsafe_b64encode(f"from:{start}".encode()).decode()


def _start(token: str) -> int:
    if not token:
        return 0
    try:
        return int(base64.urlsafe_b64decode(token).decode().removeprefix("from:"))
    except (binascii.Error, ValueError):
        return -1
