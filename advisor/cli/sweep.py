"""`advisor sweep`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import BinaryIO, TextIO

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from advisor.cli import ask
from advisor.sweeps.formats import FORMATS
from advisor.sweeps.rows import STATUSES, Row


@click.command(no_args_is_help=True)
@click.option(
    "--request", "request_file", type=click.File("rb"), metavar="FILE|-", required=True,
    help="A grid or a list of plan requests as JSON, as POST /v1/sweeps takes it.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(list(FORMATS)), default="csv", show_default=True,
    help="Form of the rows.",
)  # fmt: skip
@click.option(
    "--out", type=click.File("w", encoding="utf-8", lazy=False), default="-", metavar="FILE",
    help="Where the rows go; without it, to standard output.",
)  # fmt: skip
def sweep(request_file: BinaryIO, form: str, out: TextIO) -> None:
    """Plan many questions, with the shipped catalogue: a row of figures for each.

    Nothing is kept, and one core is used; the service keeps sweeps.

    \b
    advisor sweep --request sweep.json --out rows.csv
    """
    document = ask.parsed(request_file.read(), "--request")
    total, rows = ask.sweep(document)
    terminal, seen = Console(stderr=True), Counter[str]()
    for text in FORMATS[form](_shown(rows, total, terminal, seen)):
        out.write(text)
    terminal.print(", ".join(f"{seen[status]:,} {status}" for status in STATUSES))


def _shown(
    rows: Iterable[Row], total: int, terminal: Console, seen: Counter[str]
) -> Iterator[list[Row]]:
    """The rows one by one, with a bar on standard error where that is a terminal."""
    columns = (
        TextColumn("planning"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    )  # fmt: skip
    with Progress(
        *columns, console=terminal, transient=True, disable=not terminal.is_terminal
    ) as bar:
        task = bar.add_task("planning", total=total)
        for row in rows:
            seen[row["status"]] += 1
            bar.advance(task)
            yield [row]
