"""What is compared: something that can prepare the calls of a shape and then make them."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import ClassVar

from firebreak.metering.meter import unmetered
from scripts.bench.figures import Block
from scripts.bench.shape import Scenario, Shape

# True: admitted, or booked; False: refused; None: neither could be said.
type Job = Callable[[], bool | None]


class Contender(ABC):
    """One of those compared, on one emulator."""

    name: ClassVar[str]
    lacks: ClassVar[frozenset[Scenario]] = frozenset()
    refuses_in_process: ClassVar[bool] = False

    @abstractmethod
    def prepare(self, shape: Shape) -> None:
        """Do what has to be there before the calls; it is not measured."""

    @abstractmethod
    def run(self) -> Block:
        """Make the calls of the prepared shape."""


class InProcess(Contender):
    """A contender in this process: subclasses say how one call is reserved and settled."""

    def __init__(self) -> None:
        self._jobs: list[Job] = []
        self._threads = 1

    def prepare(self, shape: Shape) -> None:
        with unmetered("a benchmark"):
            self._prepare(shape)

    def _prepare(self, shape: Shape) -> None:
        if shape.known:
            for user in dict.fromkeys(shape.users):
                self.reserve(user, shape.limit)()
        jobs = [self.reserve(user, shape.limit) for user in shape.users]
        if shape.settles:
            # What earlier shapes reserved is not settled any more.
            self.settles()
            for reserve in jobs:
                reserve()
            jobs = self.settles()
        self._jobs, self._threads = jobs, shape.threads

    def run(self) -> Block:
        return drive(self._jobs, self._threads)

    @abstractmethod
    def reserve(self, user: str, limit: int) -> Job:
        """One call of `user`, who may make `limit`."""

    @abstractmethod
    def settles(self) -> list[Job]:
        """The settling of all calls reserved since the last time it was asked for."""


def drive(jobs: Sequence[Job], threads: int) -> Block:
    """Make the calls, each caller its share one after the other, and time each of them."""
    shares = [jobs[first::threads] for first in range(threads)]
    gate = Barrier(threads + 1)
    with ThreadPoolExecutor(max_workers=threads) as pool:
        callers = [pool.submit(partial(_calls, share, gate)) for share in shares]
        gate.wait()
        began = time.perf_counter()
        done = [timed for caller in callers for timed in caller.result()]
        seconds = time.perf_counter() - began
    return Block(
        latencies_ms=[ns / 1e6 for ns, _ in done],
        seconds=seconds,
        admitted=sum(answer is True for _, answer in done),
        undecided=sum(answer is None for _, answer in done),
    )


def _calls(jobs: Sequence[Job], gate: Barrier) -> list[tuple[int, bool | None]]:
    clock = time.perf_counter_ns
    done = []
    gate.wait()
    with unmetered("a benchmark"):
        for job in jobs:
            began = clock()
            answer = job()
            done.append((clock() - began, answer))
    return done
