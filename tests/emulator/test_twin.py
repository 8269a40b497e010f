"""The store in memory answers as the emulator does, operation by operation."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from firebreak.metering.client import Metered
from firebreak.metering.meter import unmetered
from scripts.local.client import metered_at
from tests.emulator.histories import History, Side, outcome, shown
from tests.twin.client import metered_on
from tests.twin.clock import Virtual
from tests.twin.store import Twin

OPERATIONS = 100
AT_ONCE = 4


@pytest.fixture
def database() -> str:
    return f"twin-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def emulator(firestore_host: str, database: str) -> Metered:
    return metered_at(firestore_host, database=database)


def play(emulator: Metered, database: str, seed: int) -> None:
    """Play one history on the emulator and on a fresh twin."""
    history, virtual = History(seed), Virtual()
    sides = [Side(client, history.root) for client in (emulator, metered_on(Twin(virtual.now_us), database=database))]
    done, told = 0, []
    with unmetered("holds the twin to the emulator"):
        while done < OPERATIONS:
            operations, what, step = history.step()
            done += operations
            told.append(what)
            real, twin = (outcome(step, side) for side in sides)
            assert twin == real, "\n".join([f"seed {seed}: {twin} on the twin, {real} on the emulator after", *told])
            virtual.move(0.001)
        real, twin = (_all(side) for side in sides)
    assert twin == real, f"seed {seed}: not the same is left"


def _all(side: Side) -> list[object]:
    """Everything that is left, as it is stored."""
    return [shown(side, snapshot) for snapshot in side.collection().get()]


def played(emulator: Metered, database: str, seeds: range) -> None:
    """Several histories at once: each has documents of its own, and one waits for the emulator while another plays."""
    with ThreadPoolExecutor(max_workers=AT_ONCE) as threads:
        for _ in threads.map(lambda seed: play(emulator, database, seed), seeds):
            pass


@pytest.mark.timeout(900)  # twenty seconds, unless the machine is busy
def test_ten_thousand_operations_come_to_the_same_on_both(emulator: Metered, database: str) -> None:
    played(emulator, database, range(100))


@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_a_million_operations_come_to_the_same_on_both(emulator: Metered, database: str) -> None:
    played(emulator, database, range(100, 10_100))
