"""Charts as SVG and PNG, drawn with matplotlib, which the extra `plots` brings.

One code draws every chart. matplotlib is imported when something is drawn.
"""

from __future__ import annotations

from importlib.util import find_spec
from threading import Lock

from advisor.charts.chart import Chart

FORMATS = ("svg", "png")
_DRAWING = Lock()
"""matplotlib's settings are those of the whole process: one picture at a time."""
INSTALL = "pip install 'inference-advisor[plots]'"


class PlotsMissing(Exception):
    """matplotlib is not installed."""

    def __init__(self) -> None:
        super().__init__(f"Pictures need matplotlib, which is not installed: {INSTALL}.")


def available() -> bool:
    """Whether pictures can be drawn here."""
    return find_spec("matplotlib") is not None


def draw(chart: Chart, form: str) -> bytes:
    """The chart as a file of one of `FORMATS`, the same bytes each time. Raises `PlotsMissing`."""
    if not available():
        raise PlotsMissing
    from advisor.plots.output import rendered

    with _DRAWING:
        return rendered(chart, form)
