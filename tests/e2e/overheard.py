"""The deployed functions, telling in their log of every connection that Python opens."""

import sys

from main import generate, usage

__all__ = ["generate", "usage"]


def _tell(event: str, arguments: tuple[object, ...]) -> None:
    if event in {"socket.connect", "socket.getaddrinfo", "socket.sendto"}:
        print("overheard:", event, arguments[-1], flush=True)


sys.addaudithook(_tell)
