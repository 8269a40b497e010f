"""docs/bench.md: every figure of a run, and which targets it met."""

from collections.abc import Iterator, Sequence

from scripts.bench.figures import Figures, Results
from scripts.bench.targets import Target

HEAD = """\
# The bucket beside its alternatives

Written by `make bench`: one run, one Firestore emulator, interleaved rounds, {cores} cores, no network. What
carries over to the real Firestore are the round trips, reads and writes of a call and the ratios, not the milliseconds.

![Firestore emulator](bench.png)

- `firebreak`: the ledger as deployed. `floor`: a bare commit of the same two writes; it decides nothing.
  `transactional`: the published pattern, a read-modify-write of the same documents under `@firestore.transactional`.
  `rate_limiter`: firebase-functions-rate-limiter 3.9.1 (npm) with its Firestore backend; it counts calls and settles
  nothing.
- `hot`: a user that the instance knows. `cold`: one that it does not. `refused`: an empty bucket. `settle`: the
  second half of a call. `contended`: 16 callers, one user, 10 calls each, a quarter of them too many. `many_users`: 16
  callers, 10,000 users, two calls each, with all others in between. Each of these but `settle` is a reserve alone.
- Round trips, reads and writes are an average call's, counted at the wire in a run of their own (`contended`: of two
  calls a caller). `undecided` calls got an error instead of an answer.
- `metered_…`: one operation of a handler on the metered client, beside the SDK's own (`raw`): a get, a set, a batch of
  10 sets, a query of 10 documents.
- `guard`: all layers of a request, in process. `first_chunk`: from when the model's stand-in sends the first chunk to
  when the client has it. `from_request`: from the request to the first chunk, less the model's own time.
"""


def page(results: Results, targets: Sequence[Target], *, cores: int) -> str:
    """The whole of it, as Markdown."""
    lines = [HEAD.format(cores=cores), *_targets(targets), "", *_figures(results)]
    return "\n".join(lines) + "\n"


def _targets(targets: Sequence[Target]) -> Iterator[str]:
    yield "| target | this run | bound | met |"
    yield "|---|---|---|---|"
    for target in targets:
        bound = f"{'≥' if target.least else '≤'} {number(target.bound)}"
        yield f"| {target.text} | {number(target.value)} | {bound} | {'yes' if target.met else '**no**'} |"


def _figures(results: Results) -> Iterator[str]:
    yield "| | contender | p50 ms | p95 ms | p99 ms | per second | RPCs | reads | writes | admitted | undecided |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for scenario, contenders in results.items():
        for contender, figures in contenders.items():
            cells = [number(figures[name]) for name in ("p50_ms", "p95_ms", "p99_ms", "per_second")]
            cells += [number(figures[name]) for name in ("rpcs", "reads", "writes")]
            cells += [_admitted(figures), number(figures["undecided"])]
            yield f"| {scenario} | {contender} | {' | '.join(cells)} |"


def _admitted(figures: Figures) -> str:
    return f"{number(figures['admitted'])} of {number(figures['should_admit'])}"


def number(value: float | None) -> str:
    """Three digits, whole from 100 on; a dash for what was not measured."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 100 else f"{value:.3g}"
