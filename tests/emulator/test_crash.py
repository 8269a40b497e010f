"""A process killed between reserve and settle: the call stays held and charged, and a late settle is booked once."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from google.cloud import firestore

from firebreak.bucket.ledger import Ledger
from firebreak.bucket.reserve import Hold
from tests.emulator.books import books

ROOT = Path(__file__).parents[2]
LIMIT = 1_000
VICTIM = """
import sys, time
from scripts.local.client import client_at
from firebreak.bucket.ledger import Ledger
from firebreak.bucket.reserve import Ask

host, uid, settle = sys.argv[1:]
ledger = Ledger(client_at(host))
hold = ledger.reserve(uid, "r", Ask(estimate=100, limit=1_000, model="m"))
if settle == "settled":
    ledger.settle(hold, actual=40, counters={})
print("now", flush=True)
time.sleep(60)
"""


def kill_at(point: str, host: str, uid: str) -> None:
    """Run a process up to `point`, and kill it there."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "functions")])}
    command = [sys.executable, "-c", VICTIM, host, uid, point]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == "now\n"
        victim.send_signal(signal.SIGKILL)


def test_a_call_whose_process_was_killed_stays_held_and_charged(
    firestore_host: str, direct: firestore.Client, uid: str
) -> None:
    kill_at("held", firestore_host, uid)

    seen = books(direct, uid)
    assert seen.statuses() == ["held"]
    assert seen.bucket is not None
    assert seen.bucket["tokens"] == LIMIT - 100


def test_a_late_settle_from_elsewhere_is_booked_once(firestore_host: str, direct: firestore.Client, uid: str) -> None:
    kill_at("held", firestore_host, uid)
    call = direct.collection("token_buckets").document(uid).collection("calls").document("r").get()
    hold = Hold(user_key=uid, request_id="r", estimated=100, limit=LIMIT, held_at=call.update_time)

    settled = [Ledger(direct).settle(hold, actual=40, counters={"calls": 1}) for _ in range(3)]

    seen = books(direct, uid)
    assert all(each.booked for each in settled)
    assert seen.bucket is not None
    assert seen.bucket["tokens"] == LIMIT - 40
    assert seen.bucket["lifetime"] == {"calls": 1}


def test_a_process_killed_after_its_settle_changes_nothing(
    firestore_host: str, direct: firestore.Client, uid: str
) -> None:
    kill_at("settled", firestore_host, uid)

    seen = books(direct, uid)
    assert seen.charged == 40


@pytest.mark.parametrize("point", ["held"])
def test_calls_that_stay_held_are_found_by_operations(
    point: str, firestore_host: str, direct: firestore.Client, uid: str
) -> None:
    kill_at(point, firestore_host, uid)

    held = direct.collection_group("calls").where(filter=firestore.FieldFilter("status", "==", "held")).stream()

    assert uid in {call.reference.parent.parent.id for call in held}
