"""What all users together can spend of the model in a day, in dollars: the pool, as if every token were the costliest.

`python -m scripts.worst_day PROJECT` tells it for the settings of that project.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping

from firebreak.settings.settings import Settings, load
from firebreak.settings.weights import ONE, Price, Weights
from scripts import prices
from scripts.local.dotenv import read, wrong
from scripts.local.layout import ROOT
from scripts.prices import ListPrice

HOUR_S, LEASE_S = 3_600, 300
# A full level, a day of refill, and what was leased just before (docs/bucket.md).
SECONDS_OF_POOL = HOUR_S + 24 * HOUR_S + LEASE_S
_NANO_PER_CENT = 10_000_000


def tokens(pool_per_hour: int) -> int:
    """Most tokens that the pool gives out in any 24 hours."""
    return -(-pool_per_hour * SECONDS_OF_POOL // HOUR_S)


def nanousd_per_million(listed: ListPrice, price: Price) -> int | None:
    """Most that a million tokens of the pool cost on a model; None if a kind of token takes none of them."""
    weights = [price.short, *([price.long] if price.long_from is not None else [])]
    kinds = [kind for each in weights for kind in _kinds(listed, each)]
    if any(weight == 0 for _, weight in kinds):
        return None
    return max(-(-nanousd * 1_000_000 * ONE // weight) for nanousd, weight in kinds)


def _kinds(listed: ListPrice, weights: Weights) -> Iterator[tuple[int, int]]:
    """The price and the weight of each kind of token; what is cached costs no more than the full price."""
    yield from ((listed.input_nanousd, weight) for weight in (weights.prompt, weights.cached, weights.tool))
    yield from ((listed.output_nanousd, weight) for weight in (weights.output, weights.thought))


def lines(
    pool_per_hour: int, models: Iterable[str], weights: Mapping[str, Price], listed: Mapping[str, ListPrice]
) -> list[str]:
    """What an owner is told: pure."""
    if not pool_per_hour:
        return ["POOL_TOKENS_PER_HOUR=0: there is no limit to what all users together can spend in a day"]
    told, known = [], {}
    for model in models:
        if model not in listed:
            told.append(
                f"scripts/prices.toml has no price for {model}, so the most that it can cost is unknown: add one"
            )
        elif (most := nanousd_per_million(listed[model], weights.get(model, Price()))) is None:
            told.append(
                f"WEIGHTS counts some tokens of {model} as nothing, so the pool does not limit what it can cost"
            )
        else:
            known[model] = most
    if not known:
        return told
    model = max(known, key=lambda name: known[name])
    most = tokens(pool_per_hour)
    cents = -(-most * known[model] // (1_000_000 * _NANO_PER_CENT))
    day = f"POOL_TOKENS_PER_HOUR={pool_per_hour} gives out {most:,} tokens in 24 hours, each as expensive as it can be"
    return [
        f"all users together can spend at most ${cents // 100:,}.{cents % 100:02} in 24 hours on {model}: {day}",
        f"assumed: {listed[model]}; change it in scripts/prices.toml",
        *told,
    ]


def of_settings(knobs: Settings) -> list[str]:
    """The same for a deployment."""
    return lines(knobs.pool_tokens_per_hour, knobs.models, knobs.weights, prices.models())


def of_project(project: str) -> list[str]:
    """The same for the settings files of this tree; settings that are wrong are named."""
    found = read(ROOT / "functions", project)
    if faults := wrong(ROOT / "functions", found):
        return [f"the cost of a day is unknown, because functions/.env is wrong: {'; '.join(faults)}"]
    return of_settings(load({**found.values, "GCLOUD_PROJECT": found.project}, connects=False))


if __name__ == "__main__":
    print("\n".join(of_project(sys.argv[1])))
