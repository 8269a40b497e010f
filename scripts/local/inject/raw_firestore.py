"""Fails every Firestore call past the metered client, with the file and line it comes from.

The tests' process and, where FIREBREAK_METERED_ONLY is set, the local functions guard the SDK's own clients with this.
A client that may do without meters says why: `raw(client, "looks at the store")`.
"""

import sys
from types import FrameType, ModuleType
from typing import Any

CLIENTS = {"google.cloud.firestore_v1.client": "Client", "google.cloud.firestore_v1.async_client": "AsyncClient"}
# All calls that have failed in this process, for who wants to know of those that were swallowed.
FAILED: list[str] = []
_REASON = "_firebreak_raw_because"
_GUARDED = "_firebreak_guarded"


class RawFirestore(RuntimeError):
    """Firestore was called past the metered client."""


def raw[C](client: C, reason: str) -> C:
    """Let this client call Firestore without meters."""
    if not reason.strip():
        raise ValueError("a raw client wants a reason")
    setattr(client, _REASON, reason)
    return client


def guard(module: ModuleType) -> None:
    """Guard the client that the module defines, one of `CLIENTS`: whatever it does goes through one property."""
    kind = getattr(module, CLIENTS[module.__name__])
    if hasattr(kind, _GUARDED):
        return
    connected = kind._firestore_api.fget  # noqa: SLF001 - the one place where a client reaches the wire

    def checked(client: Any) -> Any:  # noqa: ANN401 - the SDK's own
        if not hasattr(client, _REASON):
            _fail(type(client).__name__)
        return connected(client)

    kind._firestore_api = property(checked)  # noqa: SLF001 - as above
    setattr(kind, _GUARDED, True)


def _fail(kind: str) -> None:
    message = (
        f"{_caller()}: a Firestore call of the SDK's own {kind}, past the meters. Handlers use "
        'wiring.store(); tests and scripts mark theirs: raw(client, "why")'
    )
    FAILED.append(message)
    print(message, file=sys.stderr, flush=True)
    raise RawFirestore(message)


def _caller() -> str:
    """File and line of the innermost frame that is neither Google's nor ours."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - no other way is as direct
    while frame is not None and _inside(frame):
        frame = frame.f_back
    return "?" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _inside(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__"))
    return module == __name__ or module.startswith("google.")
