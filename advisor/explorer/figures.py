"""From a chart as data to a figure that plotly draws: one way for every chart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, Literal

from advisor.charts.chart import Axis, Chart, Line, Series

CONFIGURATION = {
    "displaylogo": False,
    "displayModeBar": False,
    "scrollZoom": False,
    "responsive": True,
}
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a6761d", "#56b4e9", "#7f7f7f", "#e69f00")
"""Okabe and Ito's colours, which people who see few colours tell apart; the two that are too
light on white are a brown and a grey here."""
MARKERS = ("circle", "square", "diamond", "cross", "triangle-up", "x", "star", "hexagon")
PATTERNS = ("", "/", ".", "x", "-", "+")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
TEXT = "#595f69"
GRID = "rgba(128,136,150,0.3)"
LIMIT = "#b3261e"
CLEAR = "rgba(0,0,0,0)"
VEIL = "rgba(255,255,255,0.8)"
"""Behind the labels of lines, to be read above curves; the page has its own when dark."""
HEIGHT_PX = 400
ROW_PX = 16
LABEL_LETTERS, NAME_LETTERS, TITLE_LETTERS, BESIDE_NAMES_LETTERS = 20, 26, 28, 12
"""After so many letters labels of lines, names, and titles of axes go on below, the last ones where
names of places take up the width: on a phone they would be cut off."""
NARROW_DECADES = 1.5
"""A logarithmic axis over less has labels between its powers of ten."""
SIDE_SHARE = 0.06
"""Of the stretch of the figures: what is left free on either side."""
MOST_MARKERS = 8
STACK_WIDTH = 0.5


def figure_of(chart: Chart) -> dict[str, Any]:
    """The figure, as the JSON that plotly takes. It says nothing of colours of the page behind."""
    traces = [trace for n, each in enumerate(chart.series) for trace in _traces(each, n, chart)]
    marks = list(_marks(chart))
    rows = sum(_rows(line) for line in chart.lines)
    letters = BESIDE_NAMES_LETTERS if chart.y.categories else TITLE_LETTERS
    layout = {
        "height": HEIGHT_PX,
        "margin": {"l": 56, "r": 16, "t": 16 + ROW_PX * rows, "b": 52},
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "font": {"color": TEXT, "family": "system-ui, sans-serif", "size": 13},
        "barmode": "stack" if any(s.kind == "stack" for s in chart.series) else "group",
        "hovermode": "closest",
        "hoverlabel": {"align": "left", "namelength": -1},
        "showlegend": len(chart.series) > 1,
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
        "xaxis": _axis(chart.x, _reached(chart, "x"), letters) | _across(chart),
        "yaxis": _axis(chart.y, _reached(chart, "y"), TITLE_LETTERS),
        "shapes": [shape for shape, _ in marks],
        "annotations": [note for _, note in marks],
    }
    return {"data": traces, "layout": layout, "config": CONFIGURATION}


def _reached(chart: Chart, letter: Literal["x", "y"]) -> list[float]:
    """The figures and lines that an axis reaches over."""
    figures = [v for s in chart.series for v in (s.x if letter == "x" else s.y) if v is not None]
    return [*figures, *(line.value for line in chart.lines if line.axis == letter)]


def _along(axis: Axis, values: Sequence[float]) -> list[float]:
    """Where values lie along an axis; those that are not positive have no place on a logarithm."""
    return [math.log10(v) for v in values if v > 0] if axis.scale == "log" else list(values)


def _axis(axis: Axis, values: Sequence[float], letters: int) -> dict[str, Any]:
    title = {"text": _broken(axis.label, letters), "standoff": 8, "font": {"size": 13}}
    drawn: dict[str, Any] = {
        "title": title,
        "type": axis.scale,
        "gridcolor": GRID,
        "linecolor": GRID,
        "zerolinecolor": GRID,
        "automargin": True,
        "fixedrange": True,
        "exponentformat": "none",
        "separatethousands": True,
    }
    if axis.scale == "log":
        drawn |= _between_powers(_along(axis, values)) or {"dtick": 1}
    if axis.categories:
        drawn |= {
            "tickmode": "array",
            "tickvals": list(range(len(axis.categories))),
            "ticktext": [_broken(each) for each in axis.categories],
        }
    return drawn


def _across(chart: Chart) -> dict[str, Any]:
    """The stretch that figures and lines need: plotly would make it longer for labels of lines."""
    places = _along(chart.x, _reached(chart, "x"))
    if chart.x.categories or not places or any(s.kind == "bars" for s in chart.series):
        return {}
    room = (max(places) - min(places)) * SIDE_SHARE
    return {"range": [min(places) - room, max(places) + room]} if room else {}


def _between_powers(decades: Sequence[float]) -> dict[str, Any]:
    """Ticks also at 2 and 5 times the powers of ten, where figures span few of these, written out:
    plotly would write the digit alone."""
    if not decades or max(decades) - min(decades) >= NARROW_DECADES:
        return {}
    powers = range(math.floor(min(decades)) - 1, math.ceil(max(decades)) + 1)
    ticks = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    return {"tickmode": "array", "tickvals": ticks, "ticktext": [f"{v:,.10g}" for v in ticks]}


def _traces(series: Series, number: int, chart: Chart) -> list[dict[str, Any]]:
    colour = PALETTE[number % len(PALETTE)]
    common: dict[str, Any] = {
        "name": _broken(series.name, NAME_LETTERS),
        "x": list(series.x),
        "y": list(series.y),
        "hovertext": [_broken(each, 60) for each in series.labels]
        or escape(series.name, quote=False),
        "hovertemplate": f"%{{hovertext}}<br>{_hover(chart)}<extra></extra>",
    }
    if series.kind in ("bars", "stack"):
        pattern = {"shape": PATTERNS[number % len(PATTERNS)], "fillmode": "overlay", "size": 8,
                   "solidity": 0.2, "fgcolor": "#ffffff"}  # fmt: skip
        width = {"width": STACK_WIDTH} if series.kind == "stack" else {}
        bar = {"type": "bar", "marker": {"color": colour, "pattern": pattern}}
        return [bar | common | width | _errors(series)]
    symbol = {"color": colour, "symbol": MARKERS[number % len(MARKERS)]}
    if series.kind == "points":
        edge = {"width": 2 if series.emphasis else 0, "color": TEXT}
        marker = symbol | {"size": 15 if series.emphasis else 8, "line": edge}
        drawn = {"type": "scatter", "mode": "markers", "marker": marker}
        return [drawn | common | _errors(series)]
    line = {"color": colour, "width": 4 if series.emphasis else 2,
            "dash": DASHES[number % len(DASHES)],
            "shape": "hv" if series.kind == "step" else "linear"}  # fmt: skip
    drawn = {"type": "scatter", "mode": "lines+markers", "line": line,
             "marker": symbol | {"size": 7, "maxdisplayed": MOST_MARKERS}}  # fmt: skip
    band = _band(series, colour) if series.low and series.high else []
    return [*band, drawn | common]


def _hover(chart: Chart) -> str:
    """Both figures with their units."""

    def said(axis: Axis, letter: str) -> str:
        unit = f" {axis.unit}" if axis.unit else ""
        return f"{axis.title}: %{{{letter}:.4g}}{unit}"

    parts = [said(axis, letter) for axis, letter in ((chart.x, "x"), (chart.y, "y"))
             if not axis.categories]  # fmt: skip
    return "<br>".join(parts)


def _errors(series: Series) -> dict[str, Any]:
    """The interval of each point as an error bar."""
    if series.low is None or series.high is None:
        return {}
    above = [_apart(h, y) for h, y in zip(series.high, series.y, strict=True)]
    below = [_apart(y, low) for y, low in zip(series.y, series.low, strict=True)]
    return {"error_y": {"type": "data", "symmetric": False, "array": above, "arrayminus": below,
                        "color": TEXT, "thickness": 1}}  # fmt: skip


def _apart(upper: float | None, lower: float | None) -> float | None:
    return None if upper is None or lower is None else max(0.0, upper - lower)


def _band(series: Series, colour: str) -> list[dict[str, Any]]:
    """The interval of a line as an area."""
    r, g, b = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    edge = {"type": "scatter", "mode": "lines", "x": list(series.x), "line": {"width": 0},
            "hoverinfo": "skip", "showlegend": False}  # fmt: skip
    low = edge | {"y": list(series.low or ())}
    fill = {"fill": "tonexty", "fillcolor": f"rgba({r},{g},{b},0.18)"}
    return [low, edge | {"y": list(series.high or ())} | fill]


def _marks(chart: Chart) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each line across the chart, with its label: of upright ones above it, each a row higher."""
    row = 0
    for line in sorted(chart.lines, key=lambda each: -each.value):
        yield _mark(line, chart, row)
        row += _rows(line)


def _rows(line: Line) -> int:
    """Rows above the chart that the label of a line takes."""
    return _broken(line.label, LABEL_LETTERS).count("<br>") + 1 if line.axis == "x" else 0


def _mark(line: Line, chart: Chart, row: int) -> tuple[dict[str, Any], dict[str, Any]]:
    along, across = ("x", "y") if line.axis == "x" else ("y", "x")
    shape = {
        "type": "line",
        f"{along}0": line.value,
        f"{along}1": line.value,
        f"{across}0": 0,
        f"{across}1": 1,
        f"{along}ref": along,
        f"{across}ref": "paper",
        "line": {"color": LIMIT, "width": 1.5, "dash": "dash"},
    }
    axis = chart.x if line.axis == "x" else chart.y
    note = {
        "text": escape(line.label, quote=False),
        "showarrow": False,
        "bgcolor": VEIL,
        "borderpad": 0,
        "font": {"color": LIMIT, "size": 12},
        f"{along}ref": along,
        f"{across}ref": "paper",
        # On a logarithmic axis plotly places lines by their value and notes by its logarithm.
        along: math.log10(line.value) if axis.scale == "log" else line.value,
    }
    if line.axis == "x":
        side = "right" if _is_far(line.value, chart) else "left"
        note |= {"text": _broken(line.label, LABEL_LETTERS), "align": side, "xanchor": side,
                 "y": 1, "yanchor": "bottom", "yshift": ROW_PX * row}  # fmt: skip
    else:
        note |= {"x": 1, "xanchor": "right", "yanchor": "bottom"}
    return shape, note


def _is_far(value: float, chart: Chart) -> bool:
    """Whether a value lies so far right that its label has more room on its left, where the names
    of the other axis stand below it."""
    places = _along(chart.x, _reached(chart, "x"))
    (at,) = _along(chart.x, [value])
    return at > min(places) + (max(places) - min(places)) / 3


def _broken(text: str, width: int = 18) -> str:
    """A long label in lines. Plotly reads markup in texts, so that of a name is escaped."""
    lines: list[str] = [""]
    for word in escape(text, quote=False).split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return "<br>".join(lines)
