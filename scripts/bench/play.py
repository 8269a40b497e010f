"""One run: every scenario, its contenders side by side in interleaved rounds, then what they cost at the wire."""

import gc
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from scripts.bench import edge, emulator, rate_limiter
from scripts.bench.contender import Contender
from scripts.bench.counting import CountingProxy
from scripts.bench.figures import Results, Tally, results
from scripts.bench.firebreak_ledger import Firebreak
from scripts.bench.floor import Floor
from scripts.bench.metered import metered_beside_raw
from scripts.bench.shape import COUNTED, Amount, Scenario, rounds, shape
from scripts.bench.transactional import Transactional
from scripts.local.client import client_at, metered_at

BUCKET = (
    Scenario.HOT,
    Scenario.COLD,
    Scenario.REFUSED,
    Scenario.SETTLE,
    Scenario.CONTENDED,
    Scenario.MANY_USERS,
)
GUARD_CALLS_EACH = 20
# Contended transactions wait for each other's locks until they time out: one round takes minutes.
ONE_ROUND = (Scenario.CONTENDED, "transactional")

type Say = Callable[[str], None]


def play(amount: Amount, folder: Path, say: Say) -> Results:
    """Start what is needed, measure, end it; `folder` is for what it writes and installs.

    Raises:
        Unavailable: something is missing or did not come up.
    """
    tallies: edge.Tallies = {}
    say("installing the npm limiter to compare with")
    packages = rate_limiter.install(folder / "limiter")
    say("starting a Firestore emulator and the stand-ins")
    with emulator.running(folder) as own:
        with _contenders(own.firestore, packages, folder) as measured:
            _warm_up(measured, say)
            for scenario in BUCKET:
                _measure(scenario, amount, measured, tallies, say)
        with CountingProxy(own.firestore).running() as proxy, _contenders(proxy.address, packages, folder) as counted:
            for scenario in BUCKET:
                _count(scenario, counted, proxy, tallies, say)
        say("metered: the SDK's own client beside the metered one")
        metered_beside_raw(own.firestore, amount.metered, tallies)
        say("guard: all layers of a request, in process")
        edge.guard(own, folder, amount.edge * GUARD_CALLS_EACH, tallies)
        say("first_chunk: streams through the deployed function")
        edge.first_chunk(own, folder, amount.edge, tallies)
    return results(tallies)


@contextmanager
def _contenders(host: str, packages: Path, folder: Path) -> Iterator[list[Contender]]:
    client = client_at(host)
    with rate_limiter.served(packages, host, folder) as node:
        yield [Firebreak(metered_at(host).guards()), Floor(client), Transactional(client), node]


def _warm_up(contenders: Sequence[Contender], say: Say) -> None:
    """The emulator's first calls are slow, and so are each client's."""
    for scenario in (Scenario.HOT, Scenario.COLD, Scenario.SETTLE):
        for contender in contenders:
            if scenario not in contender.lacks:
                say(f"warming up: {scenario}, {contender.name}")
                contender.prepare(shape(scenario, COUNTED))
                contender.run()


def _measure(
    scenario: Scenario, amount: Amount, contenders: Sequence[Contender], tallies: edge.Tallies, say: Say
) -> None:
    taking_part = [each for each in contenders if scenario not in each.lacks]
    for contender in taking_part:
        tallies[scenario, contender.name] = Tally()
    for number in range(rounds(scenario, amount)):
        for contender in random.sample(taking_part, len(taking_part)):
            if number and (scenario, contender.name) == ONE_ROUND:
                continue
            patience = " (waits for locks: minutes)" if (scenario, contender.name) == ONE_ROUND else ""
            say(f"{scenario}: round {number + 1} of {rounds(scenario, amount)}, {contender.name}{patience}")
            asked = shape(scenario, amount, refuses_in_process=contender.refuses_in_process)
            contender.prepare(asked)
            gc.collect()
            block = contender.run()
            tallies[scenario, contender.name].add(block, asked.should_admit)


def _count(
    scenario: Scenario, contenders: Sequence[Contender], proxy: CountingProxy, tallies: edge.Tallies, say: Say
) -> None:
    for contender in contenders:
        if scenario not in contender.lacks:
            say(f"{scenario}: counting at the wire, {contender.name}")
            asked = shape(scenario, COUNTED)
            contender.prepare(asked)
            proxy.clear()
            contender.run()
            tallies[scenario, contender.name].counted = proxy.count(len(asked.users))
