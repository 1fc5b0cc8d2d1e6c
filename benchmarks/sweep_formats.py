"""Rows written as JSON Lines, CSV and Parquet: how fast, and how much memory a million take."""

from __future__ import annotations

import time
from collections.abc import Iterator

from advisor.sweeps.formats import FORMATS, Row
from advisor.sweeps.rows import COLUMNS
from benchmarks.surroundings import alone, peak_mib

CHUNK_ROWS = 200
COUNTS = (10_000, 1_000_000)
EXAMPLES = {str: "h100-sxm-80gb", int: 8, float: 1 / 7, bool: True}


def chunks(count: int) -> Iterator[list[Row]]:
    """`count` rows, each with figures of its own."""
    alike = {name: EXAMPLES[kind] for name, kind in COLUMNS.items()}
    figures = [name for name, kind in COLUMNS.items() if kind is float]
    for first in range(0, count, CHUNK_ROWS):
        yield [
            {**alike, "item": i, **{name: (i + k) / 7 for k, name in enumerate(figures)}}
            for i in range(first, first + CHUNK_ROWS)
        ]


def _measure(form: str, count: int) -> tuple[float, float, float]:
    """Seconds, the bytes of the file [MB], and the most memory of the process [MiB]."""
    begin = time.perf_counter()
    size = sum(map(len, FORMATS[form](chunks(count), COLUMNS)))
    spent = time.perf_counter() - begin
    return spent, size / 1e6, peak_mib()


def main() -> None:
    """Print them for each format and number of rows, each in a process of its own."""
    print(f"Writing rows of {len(COLUMNS)} columns, {CHUNK_ROWS} at a time")
    for form in FORMATS:
        for count in COUNTS:
            spent, file_mb, most_mib = alone(_measure, form, count)
            print(
                f"  {form:8}{count:10,} rows: {count / spent:8,.0f} a second, {file_mb:6.1f} MB, "
                f"the process {most_mib:5.0f} MiB at most"
            )


if __name__ == "__main__":
    main()
