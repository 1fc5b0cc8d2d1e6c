"""Drawn charts: that they are whole, the same each time, and nothing in them is cut off."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

import pytest

from advisor import plots
from advisor.charts.catalogue import OF_A_PLAN
from advisor.charts.chart import Axis, Chart, Column, Line, Series, Table
from tests.charts.test_charts_of_plans import answer

SVG = "{http://www.w3.org/2000/svg}"


def chart(name: str) -> Chart:
    made = OF_A_PLAN[name](answer("two devices"))
    assert made is not None
    return made


ODD = Chart(
    name="odd", title='A <title> & "marks" $x_1$', summary="Nothing & <nothing>.",
    x=Axis("Kind", categories=("one", "two")), y=Axis("Share", "%"),
    series=(
        Series("a", "bars", (0, 1), (1.0, None), low=(0.5, None), high=(2.0, None)),
        Series("b", "bars", (0, 1), (2.0, 3.0)),
    ),
    lines=(Line("y", 2.5, "a limit"),),
    table=Table((Column("a", "A"),), ((1.0,), (None,))),
)  # fmt: skip


@pytest.mark.parametrize("shown", [*map(chart, OF_A_PLAN), ODD], ids=[*OF_A_PLAN, "odd"])
def test_a_picture_is_valid_and_names_what_it_shows(shown: Chart):
    text = plots.draw(shown, "svg")
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == shown.title
    assert root.findtext(f"{SVG}desc") == shown.summary
    assert b"<script" not in text


@pytest.mark.parametrize("form", plots.FORMATS)
def test_a_picture_is_the_same_each_time(form: str):
    drawn = plots.draw(ODD, form)
    assert drawn.startswith({"svg": b"<svg ", "png": b"\x89PNG\r\n\x1a\n"}[form])
    assert plots.draw(ODD, form) == drawn


@pytest.mark.parametrize("shown", [*map(chart, OF_A_PLAN), ODD], ids=[*OF_A_PLAN, "odd"])
def test_every_word_of_a_picture_lies_within_it(shown: Chart):
    from matplotlib import rc_context

    from advisor.plots.output import _figure
    from advisor.plots.style import RC

    with rc_context(RC):
        figure = _figure(shown)
        figure.draw_without_rendering()
        drawn, paper = figure.get_tightbbox(), figure.bbox_inches
    assert paper.x0 <= drawn.x0
    assert paper.y0 <= drawn.y0
    assert drawn.x1 <= paper.x1
    assert drawn.y1 <= paper.y1


def test_without_matplotlib_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plots, "find_spec", lambda _: None)
    with pytest.raises(plots.PlotsMissing, match=r"inference-advisor\[plots\]"):
        plots.draw(ODD, "svg")


def test_nothing_loads_matplotlib_before_something_is_drawn():
    code = "import sys, advisor.plots, advisor.cli.plot; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
