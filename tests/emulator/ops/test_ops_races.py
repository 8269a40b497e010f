"""Operators change a bucket while its user calls: no token is lost, and none is made."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from google.cloud import firestore

from firebreak import errors
from firebreak.bucket.ledger import Ledger
from firebreak.bucket.reserve import Ask
from scripts.local.layout import PROJECT, ROOT
from tests.emulator.books import books
from tests.emulator.ops.conftest import Ops

# More than the workers can spend, however slow the commands in between are.
LIMIT = 5_000_000
COST = 20
WORKERS = 6
# What the workers' open calls can give back at once.
REFUNDS = sum(range(WORKERS))
WHY = ("--reason", "asked for it")
WITHIN_S = 60.0

type Records = Callable[[], list[dict[str, Any]]]


class Caller:
    """A user whose workers call without a pause; worker n's calls give back n tokens each."""

    def __init__(self, client: firestore.Client, uid: str) -> None:
        self._ledgers = [Ledger(client) for _ in range(2)]
        self._uid = uid
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self.settled = 0

    def stop(self) -> None:
        self._over.set()

    def work(self, worker: int) -> None:
        ledger, number = self._ledgers[worker % 2], 0
        while not self._over.is_set():
            number += 1
            try:
                hold = ledger.reserve(self._uid, f"w{worker}-{number}", Ask(estimate=COST, limit=LIMIT, model="m"))
            except (errors.Contention, errors.StoreUnavailable):
                continue
            ledger.settle(hold, actual=COST - worker, counters={"calls": 1})
            with self._lock:
                self.settled += 1

    def wait_for(self, calls: int) -> None:
        """Until so many more were settled."""
        until, end = self.settled + calls, time.monotonic() + WITHIN_S
        while self.settled < until:
            assert time.monotonic() < end, f"{self.settled} of {until} calls"
            time.sleep(0.01)

    def refilled(self, limit: int = LIMIT) -> int:
        """The most that can have been refilled since it began."""
        return int(limit * (time.monotonic() - self._began) / 86_400) + 1


@contextmanager
def calling(client: firestore.Client, uid: str) -> Iterator[Caller]:
    """A user who calls until the end of the block."""
    caller = Caller(client, uid)
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        working = [pool.submit(caller.work, worker) for worker in range(WORKERS)]
        try:
            yield caller
        finally:
            caller.stop()
        for work in working:
            work.result()


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Tokens charged and left together, and how often others than the ledger have written the bucket."""

    tokens: int
    others: int


def begin(client: firestore.Client, uid: str) -> None:
    """Make a full bucket, as of now."""
    bucket = client.collection("token_buckets").document(uid)
    bucket.set({"tokens": LIMIT, "updatedAt": firestore.SERVER_TIMESTAMP, "version": 0})


def account(client: firestore.Client, uid: str) -> Account:
    """Of the user's documents: a call that is held was one write of the bucket, a settled one two."""
    seen = books(client, uid)
    assert seen.bucket is not None
    ledgers = seen.statuses().count("held") + 2 * seen.statuses().count("settled")
    return Account(tokens=seen.charged + int(seen.bucket["tokens"]), others=seen.bucket["version"] - ledgers)


def test_grants_while_calls_run_are_all_there(ops: Ops, direct: firestore.Client, uid: str, records: Records) -> None:
    begin(direct, uid)
    with calling(direct, uid) as caller:
        for _ in range(5):
            caller.wait_for(8)
            assert ops("user", "grant", uid, "100", *WHY, "--limit", str(LIMIT)).status == 0

    seen = account(direct, uid)
    assert LIMIT + 500 <= seen.tokens <= LIMIT + 500 + caller.refilled()
    assert len(records()) == seen.others == 5


def test_a_limit_while_calls_run_loses_nothing(ops: Ops, direct: firestore.Client, uid: str, records: Records) -> None:
    limits = [6_000_000, 7_000_000, 8_000_000]
    begin(direct, uid)
    with calling(direct, uid) as caller:
        for limit in limits:
            caller.wait_for(8)
            assert ops("user", "limit", uid, str(limit), *WHY).status == 0

    seen = account(direct, uid)
    assert LIMIT <= seen.tokens <= LIMIT + caller.refilled(limits[-1])
    assert [record["after"]["override"] for record in records()] == limits
    assert seen.others == 3


def test_a_reset_while_calls_run_adds_what_was_missing_and_no_more(
    ops: Ops, direct: firestore.Client, uid: str, records: Records
) -> None:
    begin(direct, uid)
    with calling(direct, uid) as caller:
        for _ in range(3):
            caller.wait_for(8)
            assert ops("user", "reset", uid, *WHY, "--limit", str(LIMIT)).status == 0

    added = sum(record["after"]["tokens"] - record["before"]["tokens"] for record in records())
    # What open calls give back to a full bucket is cut.
    seen = account(direct, uid)
    assert LIMIT + added - 3 * REFUNDS <= seen.tokens <= LIMIT + added + caller.refilled()
    assert len(records()) == seen.others == 3


def test_a_block_while_calls_run_stops_each_of_them(ops: Ops, direct: firestore.Client, uid: str) -> None:
    def call_until_blocked(worker: int) -> bool:
        ledger, end, number = Ledger(direct), time.monotonic() + WITHIN_S, 0
        while time.monotonic() < end:
            number += 1
            try:
                ledger.reserve(uid, f"w{worker}-{number}", Ask(estimate=1, limit=10**9, model="m"))
            except (errors.Contention, errors.StoreUnavailable):
                continue
            except errors.Blocked:
                return True
        return False

    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        blocked = pool.map(call_until_blocked, range(WORKERS))
        assert ops("user", "limit", uid, "0", *WHY).status == 0
        after = books(direct, uid).bucket

    assert all(blocked)
    assert books(direct, uid).bucket == after


def test_two_operators_at_once_are_both_heard(
    direct: firestore.Client, firestore_host: str, uid: str, records: Records
) -> None:
    begin(direct, uid)
    Ledger(direct).reserve(uid, "r", Ask(estimate=LIMIT, limit=LIMIT, model="m"))
    command = [sys.executable, "-m", "scripts.ops", "user", "grant", uid, "100", *WHY, "--project", PROJECT]
    env = os.environ | {"FIRESTORE_EMULATOR_HOST": firestore_host}

    both = [subprocess.Popen([*command, "--by", name], cwd=ROOT, env=env) for name in ("ann", "ben")]

    assert [one.wait(WITHIN_S) for one in both] == [0, 0]
    seen = account(direct, uid)
    assert (LIMIT + 200 <= seen.tokens <= LIMIT + 202, seen.others) == (True, 2)
    assert sorted(record["by"] for record in records()) == ["ann", "ben"]
