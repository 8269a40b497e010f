"""Functions under `@guarded` that would read and write without end, each in a way of its own."""

import contextlib
from collections.abc import Generator
from typing import Any

from firebreak import wiring
from firebreak.guard.callables import Call, guarded
from firebreak.waiting import within

READS, WRITES = 20, 10


def _read_on() -> None:
    while True:
        wiring.store().collection("graphs").document("nobody").get()


@guarded(reads=READS, writes=WRITES)
def loop(_call: Call) -> None:
    _read_on()


@guarded(reads=READS, writes=WRITES)
def swallow(_call: Call) -> dict[str, bool]:
    with contextlib.suppress(Exception):
        _read_on()
    return {"ok": True}


@guarded(reads=READS, writes=WRITES)
def disguise(_call: Call) -> None:
    try:
        _read_on()
    except Exception as error:
        raise RuntimeError("something else") from error


@guarded(reads=READS, writes=WRITES)
def thread(_call: Call) -> None:
    within(60, _read_on)


@guarded(reads=READS, writes=WRITES)
def stream(_call: Call) -> Generator[dict[str, int], None, dict[str, bool]]:
    for number in range(1_000):
        with contextlib.suppress(Exception):
            wiring.store().collection("graphs").document("nobody").get()
        if number % 10 == 0:
            yield {"number": number}
    return {"ok": True}


@guarded(reads=READS, writes=WRITES)
def queue(_call: Call) -> None:
    """Never commits: what it queues is to be stopped all the same."""
    batch = wiring.store().batch()
    while True:
        batch.set(wiring.store().collection("graphs").document(), {"n": 1})


@guarded(reads=READS, writes=WRITES)
def write(_call: Call) -> None:
    while True:
        wiring.store().collection("graphs").document("somebody").set({"n": 1})


@guarded(spends=("gemini",), reads=READS, writes=WRITES)
def undeclared(_call: Call) -> None:
    """Says that it spends nothing of Firestore."""
    wiring.store().collection("graphs").document("nobody").get()


@guarded()
def by_default(_call: Call) -> None:
    _read_on()


@guarded(reads=READS, writes=WRITES)
def modest(call: Call) -> dict[str, Any]:
    """Spends all that it may, and no more."""
    for _ in range(READS):
        wiring.store().collection("graphs").document("nobody").get()
    batch = wiring.store().batch()
    for number in range(WRITES):
        batch.set(wiring.store().collection("graphs").document(f"d{number}"), {"n": 1})
    batch.commit()
    return {"ok": True}
