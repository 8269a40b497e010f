"""Any sequence of reserves, settles, faults, restarts, new limits and passing time keeps the promises of the bucket.

Time cannot be moved on the emulator. Instead the bucket's `updatedAt` is moved back, as a foreign writer could: to the
bucket that is the same as time passing.
"""

import time
import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import grpc
import pytest
from google.cloud import firestore
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test

from firebreak import errors
from firebreak.bucket.ledger import Ledger
from firebreak.bucket.reserve import Ask, Hold
from firebreak.store.times import DAY_US, SECOND_US, to_us
from firebreak.store.tries import Clock
from tests.emulator.books import Books, books
from tests.fault_proxy import Fault, FaultProxy, Way

LIMIT = 1_000
INSTANCES = 3
# What real time buys while an example runs, and what rounding to whole tokens can add.
SLACK = 3

STATUSES = st.sampled_from(
    [grpc.StatusCode.ABORTED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.INTERNAL]
)
FAULTS = st.lists(
    st.builds(
        Fault,
        method=st.sampled_from(["Commit", "Commit", "BatchGetDocuments"]),
        way=st.sampled_from(list(Way)),
        status=STATUSES,
        skip=st.integers(0, 2),
        times=st.integers(1, 3),
    ),
    max_size=2,
)


def sleepless() -> Clock:
    """Sleeping takes no time, but the clock says that it did."""
    slept = [0.0]

    def sleep(seconds: float) -> None:
        slept[0] += seconds

    return Clock(monotonic=lambda: time.monotonic() + slept[0], sleep=sleep)


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens reserved (or, negative, refunded) at a time of the bucket's own clock."""

    at_us: int
    tokens: int


class Promises(RuleBasedStateMachine):
    """One user, several instances; what happened is read from the documents after each step."""

    direct: firestore.Client
    through_proxy: firestore.Client
    proxy: FaultProxy

    held = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self.proxy.clear()
        self.uid = uuid.uuid4().hex
        self.limit = self.highest = self.lowest = LIMIT
        self.passed_us = 0
        self.began = time.monotonic()
        self.spent: list[Spent] = []
        self.seen = Books(bucket=None, calls={})
        self.instances = [self.instance() for _ in range(INSTANCES)]
        self.number = 0

    def instance(self) -> Ledger:
        return Ledger(self.through_proxy, sleepless())

    def look(self) -> None:
        """Take in what the documents say now, and note what was reserved or refunded since."""
        now = books(self.direct, self.uid)
        for name, call in now.calls.items():
            before = self.seen.calls.get(name)
            at_us = self.own_clock(now)
            if before is None and call["status"] != "void":
                self.spent.append(Spent(at_us, call["estimated"]))
            if call["status"] == "settled" and (before is None or before["status"] != "settled"):
                # What a call cost above its estimate was not reserved: it is a debt, and bounds what comes after.
                self.spent.append(Spent(at_us, min(0, call["actual"] - call["estimated"])))
        self.seen = now

    def own_clock(self, seen: Books) -> int:
        assert seen.bucket is not None
        return to_us(seen.bucket["updatedAt"]) + self.passed_us

    @rule(
        target=held,
        which=st.integers(0, INSTANCES - 1),
        estimate=st.integers(1, LIMIT),
        faults=FAULTS,
    )
    def reserve(self, which: int, estimate: int, faults: list[Fault]) -> Any:
        self.number += 1
        name, before = f"r{self.number}", self.seen
        self.proxy.plan(*faults)
        try:
            hold = self.instances[which].reserve(self.uid, name, Ask(estimate=estimate, limit=self.limit, model="m"))
        except errors.Refused as refusal:
            self.after()
            self.refused_rightly(name, before, refusal, faulty=bool(faults))
            return None
        self.after()
        call = self.seen.calls[name]
        assert (call["status"], call["estimated"]) == ("held", estimate)
        assert self.seen.bucket is not None
        if not faults:
            assert self.seen.bucket["tokens"] <= self.limit - estimate
        return hold

    def refused_rightly(self, name: str, before: Books, refusal: errors.Refused, *, faulty: bool) -> None:
        """A refusal writes nothing; but for a void, and a call that stays held where nobody answered."""
        if isinstance(refusal, errors.StoreUnavailable) and name in self.seen.calls:
            assert self.seen.calls[name]["status"] in {"void", "held"}
            return
        others = {key: call for key, call in self.seen.calls.items() if key != name}
        assert others == before.calls
        if not faulty:
            assert self.seen == before
        assert self.seen.calls.get(name, {"status": "void"})["status"] == "void"

    @rule(hold=consumes(held), share=st.floats(0, 2), faults=FAULTS, again=st.booleans())
    def settle(self, hold: Hold | None, share: float, faults: list[Fault], again: bool) -> None:
        if hold is None:
            return
        actual = round(hold.estimated * share)
        self.proxy.plan(*faults)
        instance = self.instances[self.number % INSTANCES]
        settled = instance.settle(hold, actual=actual, counters={"calls": 1})
        self.after()
        if hold.request_id not in self.seen.calls:
            return
        assert settled.booked
        assert self.seen.calls[hold.request_id]["actual"] == actual
        if again:
            before = self.seen
            instance.settle(hold, actual=0, counters={"calls": 1})
            self.look()
            assert self.seen == before

    @rule(hours=st.integers(1, 40))
    def time_passes(self, hours: int) -> None:
        bucket = self.direct.collection("token_buckets").document(self.uid)
        if self.seen.bucket is None:
            return
        moved = self.seen.bucket["updatedAt"] - timedelta(hours=hours)
        bucket.update({"updatedAt": moved, "version": firestore.Increment(1)})
        self.passed_us += hours * 3_600 * SECOND_US
        self.look()

    @rule(which=st.integers(0, INSTANCES - 1))
    def restart(self, which: int) -> None:
        self.instances[which] = self.instance()

    @rule(limit=st.integers(LIMIT // 2, LIMIT * 2))
    def limit_changes(self, limit: int) -> None:
        self.limit = limit
        self.highest = max(self.highest, limit)
        self.lowest = min(self.lowest, limit)

    @rule()
    def what_was_late_arrives(self) -> None:
        self.proxy.release()
        self.look()

    @rule()
    def the_user_is_forgotten(self) -> None:
        """Calls first, then the bucket (rule 9); what is still on its way arrives before."""
        self.after()
        bucket = self.direct.collection("token_buckets").document(self.uid)
        if "held" in self.seen.statuses():
            return
        for name in self.seen.calls:
            bucket.collection("calls").document(name).delete()
        bucket.delete()
        self.spent.clear()
        self.seen = Books(bucket=None, calls={})
        self.instances = [self.instance() for _ in range(INSTANCES)]

    def after(self) -> None:
        """What was planned and not met is off; what is late arrives."""
        self.proxy.forget()
        self.proxy.release()
        self.look()

    @invariant()
    def no_token_is_free(self) -> None:
        """What is in the bucket and what was charged is never more than it began with and what time has bought."""
        if self.seen.bucket is None:
            return
        elapsed_us = self.passed_us + round((time.monotonic() - self.began) * SECOND_US)
        bought = self.highest * elapsed_us // DAY_US
        assert self.seen.bucket["tokens"] + self.seen.charged <= self.highest + bought + SLACK

    @invariant()
    def no_token_is_charged_twice(self) -> None:
        """As long as no limit was ever lower, the level is at least what the calls have left of the first."""
        if self.seen.bucket is not None and self.lowest == LIMIT:
            assert self.seen.bucket["tokens"] >= LIMIT - self.seen.charged

    @invariant()
    def in_no_window_is_more_reserved_than_limit_and_refill(self) -> None:
        for first, start in enumerate(self.spent):
            total = 0
            for event in self.spent[first:]:
                total += event.tokens
                if event.tokens > 0:
                    window_us = max(0, event.at_us - start.at_us)
                    assert total * DAY_US <= self.highest * (DAY_US + window_us) + SLACK * DAY_US


@pytest.fixture
def machine(direct: firestore.Client, through_proxy: firestore.Client, faults: FaultProxy) -> type[Promises]:
    return type("Machine", (Promises,), {"direct": direct, "through_proxy": through_proxy, "proxy": faults})


def profile(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        suppress_health_check=list(HealthCheck),
    )


def test_any_sequence_keeps_the_promises(machine: type[Promises]) -> None:
    run_state_machine_as_test(machine, settings=profile(30, 25))


@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_a_hundred_thousand_steps_keep_the_promises(machine: type[Promises]) -> None:
    run_state_machine_as_test(machine, settings=profile(2_000, 50))
