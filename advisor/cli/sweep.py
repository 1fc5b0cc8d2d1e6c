"""`advisor sweep`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from advisor.cli import ask
from advisor.sweeps.formats import FORMATS, PACKAGE, MissingParquet
from advisor.sweeps.rows import COLUMNS, STATUSES, Row


@click.command(no_args_is_help=True)
@click.option(
    "--request", "request_file", type=click.File("rb"), metavar="FILE|-", required=True,
    help="A grid or a list of plan requests as JSON, as POST /v1/sweeps takes it.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(list(FORMATS)), default=None,
    help="Form of the rows; without it the ending of --out says it, and csv where that does not.",
)  # fmt: skip
@click.option(
    "--out", type=click.File("wb", lazy=False), default="-", metavar="FILE",
    help="Where the rows go; without it, to standard output.",
)  # fmt: skip
def sweep(request_file: BinaryIO, form: str | None, out: BinaryIO) -> None:
    """Plan many questions, with the shipped catalogue: a row of figures for each.

    Nothing is kept, and one core is used; the service keeps sweeps.

    \b
    advisor sweep --request sweep.json --out rows.csv
    """
    document = ask.parsed(request_file.read(), "--request")
    total, rows = ask.sweep(document)
    terminal, seen = Console(stderr=True), Counter[str]()
    try:
        write = FORMATS[form or _ending(out.name)]
        pieces = write(_shown(rows, total, terminal, seen), COLUMNS)
    except MissingParquet:
        raise click.ClickException(f"Parquet needs pyarrow: pip install '{PACKAGE}'.") from None
    for piece in pieces:
        out.write(piece)
    terminal.print(", ".join(f"{seen[status]:,} {status}" for status in STATUSES))


def _ending(name: str) -> str:
    ending = Path(name).suffix.removeprefix(".").lower()
    return ending if ending in FORMATS else "csv"


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
