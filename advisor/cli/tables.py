"""Text and tables that read the same with and without colour."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

WIDTH_OF_FILES = 100
"""Columns of output that goes to no terminal, unless the variable COLUMNS is set."""

Row = Sequence[str]


def console() -> Console:
    """Standard output."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = None if known else WIDTH_OF_FILES
    return Console(width=width, highlight=False, markup=False, emoji=False)


def heading(text: str) -> Text:
    """The title of a part of the output."""
    return Text(text, style="bold")


@dataclass(frozen=True)
class Indented:
    """A paragraph whose every line starts `columns` further in."""

    text: str
    columns: int = 2

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        margin = " " * self.columns
        yield Text(
            textwrap.fill(
                self.text, options.max_width, initial_indent=margin, subsequent_indent=margin,
                break_on_hyphens=False,
            )
        )  # fmt: skip


class Figures:
    """A table of figures that gives up lines for columns where it is too wide.

    Then the second column goes below the first, the fourth below the third and so on, as far as
    needed. The first `texts` columns are flush left, the others flush right; the row numbered
    `strong` is emphasised.
    """

    def __init__(
        self, headers: Row, rows: Iterable[Row], *, texts: int = 1, strong: int | None = None
    ) -> None:
        self.headers, self.rows, self.texts, self.strong = headers, list(rows), texts, strong

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        unbounded = options.update(width=10_000)
        for pairs in range(len(self.headers) // 2 + 1):
            table = self._table(pairs)
            if Measurement.get(console, unbounded, table).maximum <= options.max_width:
                break
        yield table

    def _table(self, pairs: int) -> Table:
        """The table with this many pairs of columns put together."""
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
        for index, header in enumerate(_paired(self.headers, pairs)):
            left = min(index, pairs) + index < self.texts
            table.add_column(header, justify="left" if left else "right", vertical="top")
        for index, row in enumerate(self.rows):
            table.add_row(*_paired(row, pairs), style="bold" if index == self.strong else None)
        return table


def _paired(row: Row, pairs: int) -> list[str]:
    """The first `pairs` times two cells, each over the next one, and the others as they are."""
    over, under = row[: 2 * pairs : 2], row[1 : 2 * pairs : 2]
    return [*(f"{a}\n{b}" for a, b in zip(over, under, strict=True)), *row[2 * pairs :]]
