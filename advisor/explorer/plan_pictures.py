"""The pictures of a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dash import html

from advisor.charts.chart import Chart
from advisor.charts.pareto import pareto
from advisor.explorer import parts

CHARTS: tuple[Callable[[Mapping[str, Any]], Chart | None], ...] = (pareto,)


def pictures(answer: Mapping[str, Any]) -> list[Any]:
    """A panel with every chart that the answer has the figures for."""
    found = [chart for make in CHARTS if (chart := make(answer)) is not None]
    if not found:
        return []
    return [html.Section([html.H2("Pictures"), *(parts.picture(each) for each in found)],
                         className="panel pictures")]  # fmt: skip
