"""docs/bench.png: one panel a scenario; lengths start at nothing and are to scale within a panel."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scripts.bench.figures import Figures, Results
from scripts.bench.report import number

TIMED = ("hot", "cold", "refused", "settle")
AT_ONCE = ("contended", "many_users")
COLOURS = {"firebreak": "#d9480f", "floor": "#adb5bd", "transactional": "#1c7ed6", "rate_limiter": "#7048e8"}


def draw(results: Results, file: Path) -> None:
    """Medians of single calls; where many callers call at once, calls a second, and how many were admitted."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    panels = iter(figure.subplots(2, 3).flat)
    for scenario in (*TIMED, *AT_ONCE):
        _panel(next(panels), scenario, results.get(scenario, {}))
    figure.suptitle("Firestore emulator, one run, side by side", fontsize=11)
    figure.savefig(file, dpi=110, metadata={"Software": None})


def _panel(panel: Any, scenario: str, contenders: Mapping[str, Figures]) -> None:  # noqa: ANN401 - of matplotlib
    names = [name for name in reversed(COLOURS) if name in contenders]
    figure = "per_second" if scenario in AT_ONCE else "p50_ms"
    values = [float(contenders[name][figure] or 0) for name in names]
    bars = panel.barh(names, values, color=[COLOURS[name] for name in names])
    labels = [number(value) for value in values]
    if scenario == "contended":
        labels = [f"{label}, admits {_share(contenders[name])}" for name, label in zip(names, labels, strict=True)]
    panel.bar_label(bars, labels=labels, padding=3, fontsize=8)
    panel.set_title(f"{scenario}: {'calls a second' if scenario in AT_ONCE else 'ms a call, median'}", fontsize=10)
    panel.set_xlim(0, max([1e-9, *values]) * (1.6 if scenario == "contended" else 1.2))
    panel.tick_params(labelsize=8)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)


def _share(figures: Figures) -> str:
    """What was admitted of what should have been."""
    return f"{(figures['admitted'] or 0) / (figures['should_admit'] or 1):.0%}"
