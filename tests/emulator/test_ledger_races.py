"""Many callers of one user, over threads, processes and instances: never beyond the bucket, and exactly what fits."""

import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from google.cloud import firestore

from firebreak import errors
from firebreak.bucket.ledger import Ledger
from firebreak.bucket.reserve import Ask, Hold
from scripts.local.client import client_at
from tests.emulator.books import books
from tests.fault_proxy import Fault, FaultProxy, Way

ROOT = Path(__file__).parents[2]
# Buys less than one token in the time that a test takes.
LIMIT = 1_000
PATIENCE_S = 240.0
pytestmark = pytest.mark.timeout(600)


def decide(ledger: Ledger, uid: str, request_id: str, estimate: int) -> str:
    """As a client would: where nobody decided, try again with the same id, and so learn if it was admitted.

    An id that is void is used up, and the call goes on under another.
    """
    end = time.monotonic() + PATIENCE_S
    unanswered = False
    while time.monotonic() < end:
        try:
            ledger.reserve(uid, request_id, Ask(estimate=estimate, limit=LIMIT, model="m"))
        except errors.Contention:
            continue
        except errors.StoreUnavailable:
            unanswered = True
            continue
        except errors.Duplicate as duplicate:
            if duplicate.details["status"] == "void":
                # On a busy machine an attempt of ours got no answer and was fenced: the call never ran.
                request_id, unanswered = f"{request_id}-again", False
                continue
            return "admitted" if unanswered and duplicate.details["status"] == "held" else "duplicate"
        except errors.Refused as refusal:
            return refusal.reason.value
        return "admitted"
    return "undecided"


def test_a_hundred_threads_are_admitted_exactly_as_far_as_the_bucket_goes(
    direct: firestore.Client, firestore_host: str, uid: str
) -> None:
    instances = [Ledger(client_at(firestore_host)) for _ in range(4)]
    with ThreadPoolExecutor(max_workers=100) as pool:
        outcomes = Counter(pool.map(lambda n: decide(instances[n % 4], uid, f"r{n}", 20), range(100)))

    seen = books(direct, uid)
    assert outcomes == {"admitted": 50, "tokens": 50}
    assert seen.charged == LIMIT
    assert seen.bucket is not None
    assert 0 <= seen.bucket["tokens"] < 20


def test_four_processes_are_admitted_exactly_as_far_as_the_bucket_goes(
    direct: firestore.Client, firestore_host: str, uid: str
) -> None:
    command = [sys.executable, "-m", "tests.emulator.race", firestore_host, uid]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "functions")])}
    racers = [subprocess.Popen([*command, str(n)], stdout=subprocess.PIPE, text=True, env=env) for n in range(4)]
    outcomes: Counter[str] = Counter()
    for racer in racers:
        outcomes.update(racer.communicate(timeout=PATIENCE_S)[0].split())

    assert outcomes == {"admitted": 50, "tokens": 50}
    assert books(direct, uid).charged == LIMIT


@pytest.mark.parametrize("lost", [False, True], ids=["replies-arrive", "replies-are-lost"])
def test_of_twenty_callers_with_one_request_id_one_runs(
    ledger: Ledger, direct: firestore.Client, faults: FaultProxy, uid: str, lost: bool
) -> None:
    if lost:
        faults.plan(Fault("Commit", Way.LOSE_REPLY, times=10))

    def call(_: int) -> Hold | str:
        try:
            return ledger.reserve(uid, "same", Ask(estimate=20, limit=LIMIT, model="m"))
        except errors.Refused as refusal:
            return refusal.reason.value

    with ThreadPoolExecutor(max_workers=20) as pool:
        outcomes = list(pool.map(call, range(20)))

    assert sum(isinstance(outcome, Hold) for outcome in outcomes) == 1
    assert {outcome for outcome in outcomes if isinstance(outcome, str)} <= {"duplicate", "contention"}
    assert books(direct, uid).charged == 20


def test_while_one_user_is_refused_another_is_admitted(ledger: Ledger, uid: str) -> None:
    ledger.reserve(uid, "all", Ask(estimate=LIMIT, limit=LIMIT, model="m"))

    assert decide(ledger, uid, "more", 20) == "tokens"
    assert decide(ledger, uid + "other", "first", 20) == "admitted"
