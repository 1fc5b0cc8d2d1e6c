"""Which charts there are, by the answer they show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from advisor.charts import economics, limits, load_curves
from advisor.charts.chart import Chart
from advisor.charts.pareto import pareto
from advisor.charts.self_host import self_host_vs_api

Maker = Callable[[Mapping[str, Any]], Chart | None]

OF_A_PLAN: Mapping[str, Maker] = {
    "pareto": pareto,
    "load_curve": load_curves.load_curve,
    "replicas_vs_tensor_parallel": load_curves.replicas_vs_tensor_parallel,
    "memory": limits.memory,
    "step_time": limits.step_time,
    "roofline": limits.roofline,
}
"""Of the answer of a plan with its `figures`."""

OF_BREAK_EVEN: Mapping[str, Maker] = {
    "break_even": economics.break_even,
    "break_even_over_time": economics.break_even_over_time,
}
OF_SELF_HOST: Mapping[str, Maker] = {"self_host_vs_api": self_host_vs_api}
OF_SENSITIVITY: Mapping[str, Maker] = {"tornado": economics.tornado}
OF_ECONOMICS: Mapping[str, Maker] = {**OF_BREAK_EVEN, **OF_SELF_HOST, **OF_SENSITIVITY}
"""Of the answer of an economic question."""


def charts(answer: Mapping[str, Any], makers: Mapping[str, Maker]) -> list[Chart]:
    """Every chart that the answer has the figures of."""
    made = (make(answer) for make in makers.values())
    return [chart for chart in made if chart is not None]


NEEDS_FIGURES: Mapping[str, tuple[str, ...]] = {
    "load_curve": ("load_curve",),
    "replicas_vs_tensor_parallel": ("ways", "crossing_loads"),
    "roofline": ("roofline",),
}
"""Charts of a plan that show what its answer alone does not carry, and which figures those are."""

_WHY_NOT = {
    "pareto": "No candidate carries this load, so none has a latency.",
    "replicas_vs_tensor_parallel": "There is one way to spend these accelerators.",
    "break_even_over_time": "Without calls_per_month there are no months.",
    "tornado": "No input, lowered or raised, gives a break-even.",
}


def why_not(name: str, answer: Mapping[str, Any]) -> str:
    """Why the answer of an economic question, or of a plan with its figures, has not this chart."""
    if name in OF_A_PLAN and not answer["candidates"]:
        return "No layout can serve this: there is no plan to show."
    return _WHY_NOT[name]
