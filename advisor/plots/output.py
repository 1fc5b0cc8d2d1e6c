"""A whole picture: title, drawing, notes, and the words for who does not see it."""

from __future__ import annotations

import re
from io import BytesIO
from textwrap import fill
from xml.sax.saxutils import escape

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from advisor.charts.chart import Chart
from advisor.plots.drawing import draw_on
from advisor.plots.style import MUTED, PAPER, RC

_WIDTH_IN, _HEIGHT_IN, _DPI = 9.0, 5.2, 144
_NARROW_IN = 7.0
_LETTERS_PER_IN = 13.5


def rendered(chart: Chart, form: str) -> bytes:
    """The chart as SVG or PNG."""
    with rc_context(RC):
        figure = _figure(chart)
        target = BytesIO()
        if form == "svg":
            figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
            return _named(target.getvalue().decode("utf-8"), chart).encode("utf-8")
        metadata = {"Software": None, "Title": chart.title, "Description": chart.summary}
        figure.savefig(target, format="png", dpi=_DPI, metadata=metadata)
        return target.getvalue()


def _figure(chart: Chart) -> Figure:
    width = _NARROW_IN if chart.x.categories else _WIDTH_IN
    figure = Figure(figsize=(width, _HEIGHT_IN), layout="constrained", facecolor=PAPER)
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1)  # type: ignore[union-attr, call-arg]
    letters = int(width * _LETTERS_PER_IN)
    figure.suptitle(chart.title, fontsize=13, x=0.01, ha="left")
    small = fill(" ".join([chart.summary, *chart.notes]), letters)
    figure.supxlabel(small, fontsize=8, color=MUTED, x=0.01, ha="left")
    axes = figure.add_subplot(facecolor=PAPER)
    draw_on(axes, chart)
    return figure


def _named(svg: str, chart: Chart) -> str:
    """The SVG with its title and description, and without the prologue that a page around it
    could not hold."""
    words = f"<title>{escape(chart.title)}</title>\n <desc>{escape(chart.summary)}</desc>"
    body = svg[svg.index("<svg") :]
    return re.sub("(<svg[^>]*)>", lambda found: f'{found[1]} role="img">\n {words}', body, count=1)
