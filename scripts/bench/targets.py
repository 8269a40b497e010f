"""What the bucket is to reach, as ratios of one run."""

from collections.abc import Iterator
from dataclasses import dataclass

from scripts.bench.figures import Results

OURS = "firebreak"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One figure and its bound: at most, or with `least` at least."""

    text: str
    value: float
    bound: float
    least: bool = False

    @property
    def met(self) -> bool:
        return self.value >= self.bound if self.least else self.value <= self.bound


def targets(results: Results, *, cache_bytes: float | None = None) -> list[Target]:
    """Those that the scenarios of this run can tell."""
    found = list(_bucket(results))
    if cache_bytes is not None:
        found.append(Target(text="what an instance remembers of a user, bytes", value=cache_bytes, bound=1024))
    return found + list(_metered(results)) + list(_edge(results))


def _bucket(results: Results) -> Iterator[Target]:
    for scenario, bound in (("hot", 1.15), ("cold", 2.5), ("settle", 1.15)):
        if _has(results, scenario, "floor"):
            text = f"{scenario}: times the floor's median"
            yield Target(text=text, value=_ratio(results, scenario, "floor", "p50_ms"), bound=bound)
    if _has(results, "refused"):
        ours = results["refused"][OURS]
        yield Target(text="refused: a second, in process", value=_value(ours, "per_second"), bound=100_000, least=True)
        yield Target(text="refused: round trips", value=_value(ours, "rpcs"), bound=0)
    if _has(results, "contended", "transactional"):
        value = _ratio(results, "contended", "transactional", "per_second")
        text = "contended: times as many calls a second as transactional"
        yield Target(text=text, value=value, bound=20, least=True)
        ours = results["contended"][OURS]
        off = abs(_value(ours, "admitted") - _value(ours, "should_admit"))
        yield Target(text="contended: calls admitted too many or too few", value=off, bound=0)
    if _has(results, "hot", "rate_limiter"):
        value = 1 / _ratio(results, "hot", "rate_limiter", "p50_ms")
        yield Target(text="a check: times faster than rate_limiter's median", value=value, bound=3, least=True)


def _metered(results: Results) -> Iterator[Target]:
    for operation in ("get", "set", "batch", "query"):
        scenario = f"metered_{operation}"
        if _has(results, scenario, "raw"):
            text = f"{scenario}: times the SDK's own client's median"
            yield Target(text=text, value=_ratio(results, scenario, "raw", "p50_ms"), bound=1.05)


def _edge(results: Results) -> Iterator[Target]:
    if _has(results, "guard"):
        value = _value(results["guard"][OURS], "p50_ms")
        yield Target(text="guard: all layers of a request, ms at the median", value=value, bound=0.5)
    if _has(results, "first_chunk", "floor"):
        both = results["first_chunk"]
        value = _value(both[OURS], "p50_ms") - _value(both["floor"], "p50_ms")
        yield Target(text="first_chunk: added to the model's own, ms at the median", value=value, bound=10)


def _has(results: Results, scenario: str, *others: str) -> bool:
    return {OURS, *others} <= results.get(scenario, {}).keys()


def _ratio(results: Results, scenario: str, other: str, figure: str) -> float:
    return _value(results[scenario][OURS], figure) / _value(results[scenario][other], figure)


def _value(figures: dict[str, float | int | None], name: str) -> float:
    value = figures[name]
    if value is None:
        raise ValueError(f"{name} was not measured")
    return value
