"""Rows as text, a chunk at a time."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator

from advisor.sweeps.rows import COLUMNS, Row

Chunks = Iterable[list[Row]]


def json_lines(chunks: Chunks) -> Iterator[str]:
    """A JSON object a row, and line."""
    for rows in chunks:
        yield "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)


def csv_lines(chunks: Chunks) -> Iterator[str]:
    """A line of column names, and one for each row; null is an empty cell."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    for rows in chunks:
        writer.writerows(rows)
        yield text.getvalue()
        text.seek(0)
        text.truncate()
    yield text.getvalue()


FORMATS = {"jsonl": json_lines, "csv": csv_lines}
