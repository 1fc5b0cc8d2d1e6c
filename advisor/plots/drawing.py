"""A chart drawn on axes of matplotlib: any chart, by what its series, lines and axes say."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan

from matplotlib.axes import Axes
from matplotlib.axis import Axis as PlotAxis
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from advisor.charts.chart import Axis, Chart, Figures, Line, Series
from advisor.plots.style import COLOURS, DASHES, GRID, HATCHES, MARKERS, MUTED, TEXT

_STACK_WIDTH = 0.5
_NARROW_DECADES = 2
"""A log axis over less has ticks between its powers of ten."""


def draw_on(axes: Axes, chart: Chart) -> None:
    """Axes, series, lines and legend."""
    _prepare(axes, chart)
    tops: dict[float, float] = {}
    bars = [one.name for one in chart.series if one.kind == "bars"]
    for number, series in enumerate(chart.series):
        if series.kind == "stack":
            _stack(axes, series, number, tops)
        elif series.kind == "bars":
            _bars(axes, series, number, bars)
        else:
            _curve(axes, series, number)
    for line in chart.lines:
        _line(axes, line)
    _margins(axes, chart)
    _label_lines(axes, chart.lines)
    if len(chart.series) > 1:
        axes.legend(
            loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, frameon=False, fontsize=9,
            reverse=any(series.kind == "stack" for series in chart.series),
        )  # fmt: skip


def _prepare(axes: Axes, chart: Chart) -> None:
    for axis, plotted in ((chart.x, axes.xaxis), (chart.y, axes.yaxis)):
        plotted.set_label_text(axis.label)
        if axis.categories:
            plotted.set_ticks(range(len(axis.categories)), axis.categories)
        else:
            _scale(axes, axis, plotted)
            plotted.grid(visible=True, color=GRID, linewidth=0.8)


def _scale(axes: Axes, axis: Axis, plotted: PlotAxis) -> None:
    if axis.scale == "log":
        (axes.set_xscale if plotted is axes.xaxis else axes.set_yscale)("log")
        plotted.set_major_locator(LogLocator(subs=(1.0,)))
        plotted.set_minor_formatter(NullFormatter())
    else:
        plotted.set_major_locator(MaxNLocator(7, steps=[1, 2, 2.5, 5, 10]))
    plotted.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _curve(axes: Axes, series: Series, number: int) -> None:
    """A line, steps or points, with its interval as a band or bars."""
    colour = COLOURS[number % len(COLOURS)]
    x, y = _numbers(series.x), _numbers(series.y)
    if series.kind == "points":
        size = 130 if series.emphasis else 90 if len(x) == 1 else 34
        axes.scatter(
            x, y, s=size, marker="*" if series.emphasis else MARKERS[number % len(MARKERS)],
            color=colour, edgecolors=TEXT if series.emphasis else "white", linewidths=0.6,
            label=series.name, zorder=4 if series.emphasis else 3,
        )  # fmt: skip
        if series.low is not None and series.high is not None:
            axes.vlines(x, _numbers(series.low), _numbers(series.high), color=colour, linewidth=1)
        return
    style = "steps-post" if series.kind == "step" else "default"
    axes.plot(
        x, y, color=colour, linestyle=DASHES[number % len(DASHES)], drawstyle=style,
        linewidth=3.2 if series.emphasis else 1.7, label=series.name, zorder=3,
        marker=MARKERS[number % len(MARKERS)] if len(x) > 1 and style == "default" else None,
        markevery=max(len(x) // 6, 1), markersize=4.5,
    )  # fmt: skip
    if series.low is not None and series.high is not None:
        low, high = _numbers(series.low), _numbers(series.high)
        axes.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0)


def _stack(axes: Axes, series: Series, number: int, tops: dict[float, float]) -> None:
    """Bars on top of each other. An interval of a part would move all above it: it is in words."""
    colour = COLOURS[number % len(COLOURS)]
    for place, size in zip(_numbers(series.x), _numbers(series.y), strict=True):
        bottom = tops.get(place, 0.0)
        axes.bar(
            place, size, _STACK_WIDTH, bottom=bottom, color=colour, edgecolor="white",
            hatch=HATCHES[number % len(HATCHES)],
            label=series.name if place == series.x[0] else None,
        )  # fmt: skip
        tops[place] = bottom + size


def _bars(axes: Axes, series: Series, number: int, names: Sequence[str]) -> None:
    """Bars beside each other."""
    width = 0.8 / len(names)
    offset = (names.index(series.name) - (len(names) - 1) / 2) * width
    x, y = [place + offset for place in _numbers(series.x)], _numbers(series.y)
    axes.bar(
        x, y, width, color=COLOURS[number % len(COLOURS)], edgecolor="white",
        hatch=HATCHES[number % len(HATCHES)], label=series.name,
    )  # fmt: skip
    if series.low is not None and series.high is not None:
        axes.vlines(x, _numbers(series.low), _numbers(series.high), color=TEXT, linewidth=1)


def _line(axes: Axes, line: Line) -> None:
    draw = axes.axvline if line.axis == "x" else axes.axhline
    draw(line.value, color=MUTED, linewidth=1.1, linestyle=(0, (4, 3)), zorder=2)


def _margins(axes: Axes, chart: Chart) -> None:
    stacked = any(series.kind == "stack" for series in chart.series)
    if chart.x.categories:
        spread = 0.5 + _STACK_WIDTH / 2
        axes.set_xlim(-spread, len(chart.x.categories) - 1 + spread)
    if chart.y.categories:
        axes.set_ylim(-0.6, len(chart.y.categories) - 0.4)
    if stacked:
        axes.set_ylim(0, max(_highest(chart) * 1.06, 1e-9))
    for axis, plotted in ((chart.x, axes.xaxis), (chart.y, axes.yaxis)):
        low, high = sorted(plotted.get_view_interval())
        if axis.scale == "log" and high < low * 10**_NARROW_DECADES:
            plotted.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))


def _highest(chart: Chart) -> float:
    """The highest stack."""
    tops: dict[float, float] = {}
    for series in chart.series:
        for place, size in zip(_numbers(series.x), _numbers(series.y), strict=True):
            tops[place] = tops.get(place, 0.0) + size
    return max(tops.values())


def _label_lines(axes: Axes, lines: Sequence[Line]) -> None:
    """The labels of lines inside the picture: of upright ones along them, side by side where they
    are close, of level ones above their right end."""
    taken: list[tuple[float, float]] = []
    for line in sorted(lines, key=lambda each: each.value):
        if line.axis == "x":
            at = _place(axes, line.value, "x")
            if 0 <= at <= 1:
                _upright(axes, line, at, taken)
        else:
            at = _place(axes, line.value, "y")
            axes.annotate(
                line.label, (0.995, at), (0, 3 if at < 0.93 else -3),
                xycoords="axes fraction", textcoords="offset points",
                ha="right", va="bottom" if at < 0.93 else "top", fontsize=8, color=TEXT,
                bbox=_BOX, zorder=6,
            )  # fmt: skip


_BOX = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.65}
_APART = 0.035
"""Least share of the width between the labels of two upright lines."""


def _upright(axes: Axes, line: Line, at: float, taken: list[tuple[float, float]]) -> None:
    side = -1 if at > 0.03 and not any(abs(at - 0.02 - x) < _APART for x, _ in taken) else 1
    x = at + side * 0.02
    taken.append((x, at))
    axes.annotate(
        line.label, (x, 0.98), xycoords="axes fraction", ha="center", va="top", rotation=90,
        fontsize=8, color=TEXT, bbox=_BOX, zorder=6,
    )  # fmt: skip


def _place(axes: Axes, value: float, axis: str) -> float:
    """Where a value lies on an axis, as a share of its length."""
    point = (value, axes.get_ylim()[0]) if axis == "x" else (axes.get_xlim()[0], value)
    x, y = axes.transAxes.inverted().transform(axes.transData.transform(point))
    return float(x if axis == "x" else y)


def _numbers(figures: Figures) -> list[float]:
    return [nan if each is None or not isfinite(each) else float(each) for each in figures]
