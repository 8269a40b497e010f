"""What a loop costs: against a spend cap alone, and against a bucket. Pure; money in whole micro-dollars."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scripts import prices

# List price assumed. Thoughts cost as output.
PRICED_MODEL = "gemini-3.8-flash"
INPUT_NANOUSD_PER_TOKEN = prices.models()[PRICED_MODEL].input_nanousd
OUTPUT_NANOUSD_PER_TOKEN = prices.models()[PRICED_MODEL].output_nanousd

# Lag assumed: AI Studio tells of "about 10 minutes"; for spend cap budgets no number of minutes is published.
CAP_LAG_S = 600

# Burn rate assumed: each worker waits for its answer, and a real model takes this long over a long one.
CALL_S = 8

NANO_PER_MICRO = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One runaway loop, with a cap alone and with a bucket in front of the model."""

    workers: int
    calls_until_cap: int
    call_microusd: int
    cap_alone_microusd: int
    bucket_calls: int
    bucket_microusd: int

    @property
    def calls_per_minute(self) -> int:
        return self.calls_until_cap * 60 // CAP_LAG_S

    @property
    def times(self) -> float:
        return self.cap_alone_microusd / max(1, self.bucket_microusd)


def cost_nanousd(usage: Mapping[str, int]) -> int:
    """Price of one call by its reported usage, tool prompts as input and thoughts as output."""
    read = usage.get("promptTokens", 0) + usage.get("toolTokens", 0)
    written = usage.get("outputTokens", 0) + usage.get("thoughtTokens", 0)
    return read * INPUT_NANOUSD_PER_TOKEN + written * OUTPUT_NANOUSD_PER_TOKEN


def compare(usages: Iterable[Mapping[str, int]], *, workers: int) -> Comparison:
    """Prices the calls that a bucket admitted, and the same calls going on until a cap acts."""
    costs = [cost_nanousd(usage) for usage in usages]
    calls_until_cap = workers * CAP_LAG_S // CALL_S
    mean = sum(costs) // max(1, len(costs))
    return Comparison(
        workers=workers,
        calls_until_cap=calls_until_cap,
        call_microusd=mean // NANO_PER_MICRO,
        cap_alone_microusd=calls_until_cap * mean // NANO_PER_MICRO,
        bucket_calls=len(costs),
        bucket_microusd=sum(costs) // NANO_PER_MICRO,
    )


def worst_case_microusd(*, users: int, limit: int) -> int:
    """Most that full buckets of `limit` tokens can spend: as if every token were output."""
    return users * limit * OUTPUT_NANOUSD_PER_TOKEN // NANO_PER_MICRO


def dollars(microusd: int) -> str:
    """`$1.23`, rounded up to the cent, so that no cost is shown as nothing."""
    cents = -(-microusd // 10_000)
    return f"${cents // 100:,}.{cents % 100:02}"


def assumptions(cost: Comparison) -> tuple[str, ...]:
    """What the comparison rests on, in words."""
    read, written = INPUT_NANOUSD_PER_TOKEN / 1_000, OUTPUT_NANOUSD_PER_TOKEN / 1_000
    return (
        f"assumed: list price of {PRICED_MODEL}, ${read:.2f} in and ${written:.2f} out per million tokens",
        f"assumed: {CALL_S} s an answer, so {cost.calls_per_minute} calls a minute, for {CAP_LAG_S // 60} minutes",
        f"measured: the tokens of its calls, ${cost.call_microusd / 1e6:.4f} each",
    )
