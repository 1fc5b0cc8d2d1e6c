"""Charts as SVG and PNG, drawn with matplotlib, which the extra `plots` brings.

One code draws every chart. matplotlib is imported when something is drawn.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.metadata import version
from importlib.resources import files
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


def tag(chart: Chart, form: str) -> str:
    """What tells the file that `draw` makes from any other, without drawing it: a digest of the
    chart, the form, and what draws. Needs matplotlib."""
    text = json.dumps([chart.as_dict(), form, _drawn_by()], allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@cache
def _drawn_by() -> list[str]:
    """matplotlib, what writes its PNG files, and these modules, in the versions that are here."""
    modules = sorted(each.name for each in files(__name__).iterdir() if each.name.endswith(".py"))
    ours = b"".join(files(__name__).joinpath(name).read_bytes() for name in modules)
    return [version("matplotlib"), version("pillow"), hashlib.sha256(ours).hexdigest()]
