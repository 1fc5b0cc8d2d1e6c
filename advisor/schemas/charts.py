"""Charts as data."""

from __future__ import annotations

from advisor.charts.catalogue import OF_A_PLAN, OF_ECONOMICS
from advisor.charts.chart import KINDS, SCALES
from advisor.schemas.base import Answer
from advisor.schemas.common import AnyJson
from advisor.schemas.containers import ListOf, Section
from advisor.schemas.fields import Choice, Flag, Number, Text

NAMES = tuple(OF_A_PLAN)
MEDIA_TYPES = ("text/csv", "image/svg+xml", "image/png")
"""Of a chart, beside JSON."""


class ChartInShortAnswer(Answer):
    """A chart that the plan has, at `/v1/plans/{plan_id}/charts/{name}`."""

    name = Choice("", NAMES)
    title = Text()
    summary = Text("What it shows in a sentence, with its main figures.")


class NoChartAnswer(Answer):
    """A chart that the plan has not."""

    name = Choice("", NAMES)
    reason = Text("Why not.")


class ChartsAnswer(Answer):
    """The charts of a plan."""

    charts = ListOf(Section(ChartInShortAnswer))
    not_available = ListOf(Section(NoChartAnswer))


class AxisAnswer(Answer):
    """An axis."""

    title = Text("What it shows; empty where its categories say it.")
    unit = Text("null: a number without one.", allow_none=True)
    scale = Choice("", SCALES)
    categories = ListOf(Text(), "Named places: 0 is the first; empty: the axis is of numbers.")


class SeriesAnswer(Answer):
    """Figures that belong together, one for each `x`."""

    name = Text()
    kind = Choice(
        "`bars` of one place stand beside each other, those of a `stack` on each other; a `step` "
        "keeps its value until the next `x`.",
        KINDS,
    )  # fmt: skip
    x = ListOf(Number(allow_none=True))
    y = ListOf(Number(allow_none=True), "null: not defined there.")
    low = ListOf(Number(allow_none=True), "Lower end of each interval; null: there are none.",
                 allow_none=True)  # fmt: skip
    high = ListOf(Number(allow_none=True), "Upper end likewise.", allow_none=True)
    labels = ListOf(Text(), "Each point in words; may be empty.")
    emphasis = Flag("The recommended one.")


class LineAnswer(Answer):
    """A value that matters across the whole chart."""

    axis = Choice("Whose value it is.", ("x", "y"))
    value = Number()
    label = Text()


class ColumnAnswer(Answer):
    """A column of a table."""

    name = Text("As in the first line of the CSV.")
    title = Text()
    unit = Text("Of its figures.", allow_none=True)


class TableAnswer(Answer):
    """The figures of a chart."""

    columns = ListOf(Section(ColumnAnswer))
    rows = ListOf(ListOf(AnyJson("A number, a text, or null.")), "A value for each column.")


class ChartAnswer(Answer):
    """A chart as data, for any renderer."""

    name = Choice("", (*NAMES, *OF_ECONOMICS))
    title = Text()
    summary = Text("What it shows in a sentence, with its main figures.")
    x = Section(AxisAnswer)
    y = Section(AxisAnswer)
    series = ListOf(Section(SeriesAnswer))
    table = Section(TableAnswer)
    lines = ListOf(Section(LineAnswer))
    notes = ListOf(Text(), "What is not shown, and why.")
