"""What a chart is: axes, series, lines and the same figures as a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

Scale = Literal["linear", "log"]
Kind = Literal["line", "points", "step", "bars", "stack"]
Cell = str | float | int | None
Figures = tuple[float | None, ...]

SCALES: tuple[Scale, ...] = ("linear", "log")
KINDS: tuple[Kind, ...] = ("line", "points", "step", "bars", "stack")


@dataclass(frozen=True)
class Axis:
    """What an axis shows; with `categories` its values are their places, 0 for the first."""

    title: str
    unit: str | None = None
    scale: Scale = "linear"
    categories: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Title and unit."""
        return self.title if self.unit is None else f"{self.title} [{self.unit}]"


@dataclass(frozen=True)
class Series:
    """Figures that belong together. `y` has None where there is none.

    `low` and `high` are an interval about each `y`, `labels` say each point in plain words,
    `emphasis` marks the recommended one. Bars of one place stand beside each other, those of a
    `stack` on each other; a `step` keeps its value until the next `x`.
    """

    name: str
    kind: Kind
    x: Figures
    y: Figures
    low: Figures | None = None
    high: Figures | None = None
    labels: tuple[str, ...] = ()
    emphasis: bool = False

    def __post_init__(self) -> None:
        parts = [self.x, self.y, *(p for p in (self.low, self.high, self.labels or None) if p)]
        if len({len(part) for part in parts}) != 1:
            raise ValueError(f"the parts of series {self.name!r} differ in length")


@dataclass(frozen=True)
class Line:
    """A value that matters across the whole chart: a limit, a crossing, a saturation."""

    axis: Literal["x", "y"]
    value: float
    label: str


@dataclass(frozen=True)
class Column:
    """A column of a table; its figures are in `unit`."""

    name: str
    title: str
    unit: str | None = None

    @property
    def label(self) -> str:
        """Title and unit."""
        return self.title if self.unit is None else f"{self.title} [{self.unit}]"


@dataclass(frozen=True)
class Table:
    """The figures of a chart, every one."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def lines(self) -> Iterator[tuple[Cell, ...]]:
        """The names of the columns, with their units as in the API, and the rows."""
        yield tuple(column.name for column in self.columns)
        yield from self.rows


@dataclass(frozen=True)
class Chart:
    """A picture: `name` is its slug, `summary` one sentence with its main figures (the text for
    who does not see it), `notes` what is not shown and why."""

    name: str
    title: str
    summary: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    table: Table
    lines: tuple[Line, ...] = ()
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The chart as JSON-ready mapping."""
        return asdict(self)
