"""Every chart becomes a figure of plotly that shows all of it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from advisor.charts.chart import Axis, Chart, Column, Line, Series, Table
from advisor.explorer.figures import figure_of

TABLE = Table((Column("x", "X"),), ((1.0,),))


def drawn(series: tuple[Series, ...], scale: Any = "linear", **others: Any) -> dict[str, Any]:
    return figure_of(
        Chart("name", "Title", "Summary.", Axis("Load", "1/s", scale), Axis("Time", "ms", scale),
              series, TABLE, **others)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "type_", "mode"),
    [
        ("line", "scatter", "lines+markers"),
        ("step", "scatter", "lines+markers"),
        ("points", "scatter", "markers"),
        ("bars", "bar", None),
        ("stack", "bar", None),
    ],
)
def test_each_kind_of_series_is_drawn_with_its_interval(kind: Any, type_: str, mode: str | None):
    series = Series("a <b>", kind, (1.0, 2.0), (10.0, None), (8.0, None), (13.0, None), ("p", "q"))
    figure = drawn((series,))
    shown = figure["data"][-1]
    assert (shown["type"], shown.get("mode")) == (type_, mode)
    assert (shown["x"], shown["y"]) == ([1.0, 2.0], [10.0, None])
    assert shown["name"] == "a &lt;b&gt;"
    if kind in ("line", "step"):
        low, high = figure["data"][:2]
        assert (low["y"], high["y"], high["fill"]) == ([8.0, None], [13.0, None], "tonexty")
        assert shown["line"]["shape"] == ("hv" if kind == "step" else "linear")
    else:
        assert shown["error_y"]["array"] == [3.0, None]
        assert shown["error_y"]["arrayminus"] == [2.0, None]
    assert figure["layout"]["barmode"] == ("stack" if kind == "stack" else "group")


def test_lines_across_stand_at_their_values_and_their_labels_too():
    series = Series("s", "line", (1.0, 1000.0), (1.0, 1000.0))
    lines = (Line("x", 100.0, "full"), Line("y", 50.0, "limit"))
    for scale in ("linear", "log"):
        layout = drawn((series,), scale, lines=lines)["layout"]
        assert sorted(s["x0"] for s in layout["shapes"]) == [0, 100.0]
        upright, level = layout["annotations"]
        assert upright["x"] == (2.0 if scale == "log" else 100.0)
        assert level["y"] == (math.log10(50) if scale == "log" else 50.0)
        assert (upright["text"], level["text"]) == ("full", "limit")


def test_series_are_told_apart_without_colours():
    several = tuple(Series(str(n), "line", (1.0,), (float(n),)) for n in range(6))
    traces = drawn(several)["data"]
    assert len({(t["line"]["dash"], t["marker"]["symbol"]) for t in traces}) == 6
    bars = tuple(Series(str(n), "stack", (0.0,), (float(n),)) for n in range(6))
    assert len({t["marker"]["pattern"]["shape"] for t in drawn(bars)["data"]}) == 6


def test_a_short_logarithmic_axis_has_whole_numbers_between_its_powers_of_ten():
    narrow = drawn((Series("s", "line", (3.0, 40.0), (0.02, 0.3)),), "log")["layout"]
    assert narrow["xaxis"]["tickvals"][3:9] == [1, 2, 5, 10, 20, 50]
    assert narrow["xaxis"]["ticktext"][3:9] == ["1", "2", "5", "10", "20", "50"]
    assert {"0.02", "0.05", "0.1", "0.2"} <= set(narrow["yaxis"]["ticktext"])
    wide = drawn((Series("s", "line", (1.0, 1000.0), (1.0, 1000.0)),), "log")["layout"]
    assert (wide["xaxis"]["dtick"], wide["xaxis"].get("tickvals")) == (1, None)


def test_long_labels_go_on_below_and_have_the_room_they_need():
    series = Series("2 replicas x TP2 on h100-sxm-80gb", "line", (1.0, 9.0), (1.0, 9.0))
    lines = (Line("x", 4.0, "crossing within the SLOs 6.349"), Line("x", 2.0, "this load 4"))
    figure = drawn((series,), lines=lines)
    first, second = figure["layout"]["annotations"]
    assert first["text"] == "crossing within the<br>SLOs 6.349"
    assert (first["yshift"], second["yshift"]) == (0, 32)
    assert figure["layout"]["margin"]["t"] == 16 + 3 * 16
    assert max(map(len, figure["data"][-1]["name"].split("<br>"))) <= 26


def test_an_axis_reaches_over_figures_and_lines_and_not_over_labels():
    series = Series("s", "line", (1.0, 100.0), (1.0, 2.0))
    lines = (Line("x", 1000.0, "a label that is much longer than the axis it stands above"),)
    low, high = drawn((series,), "log", lines=lines)["layout"]["xaxis"]["range"]
    assert (low, high) == (pytest.approx(0 - 0.06 * 3), pytest.approx(3 + 0.06 * 3))
    low, high = drawn((series,), lines=lines)["layout"]["xaxis"]["range"]
    assert (low, high) == (pytest.approx(1 - 0.06 * 999), pytest.approx(1000 + 0.06 * 999))
    idle = Series("s", "line", (0.0, 1.0, 100.0), (0.0, 1.0, 2.0))
    assert drawn((idle,), "log")["layout"]["xaxis"]["range"] == pytest.approx([-0.12, 2.12])
    one = Series("s", "points", (1.0,), (1.0,))
    assert "range" not in drawn((one,))["layout"]["xaxis"]
