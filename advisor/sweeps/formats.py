"""Rows as files: JSON Lines, CSV and Parquet, in pieces, so that their number takes no memory.

pyarrow, which the extra `parquet` brings, is imported when Parquet is written.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

PACKAGE = "inference-advisor[parquet]"
"""What brings pyarrow along."""
GROUP_ROWS = 8_192
"""Rows of a row group of Parquet, at least. Its end lists every group with every column: groups of
a few rows each would make that list, which is kept until then, larger than the rows."""

Row = Mapping[str, Any]
Chunks = Iterable[Sequence[Row]]
"""Rows as they come: some at a time."""
Columns = Mapping[str, type]
"""Names and types (int, float, bool or str) in their order; money is text. Any may be null, and
every row has each."""


class MissingParquet(Exception):
    """pyarrow, an extra of the package, is not installed."""


def json_lines(chunks: Chunks, columns: Columns) -> Iterator[bytes]:
    """A JSON object a row, and line."""
    for rows in chunks:
        objects = ({name: row[name] for name in columns} for row in rows)
        yield "".join(json.dumps(each, allow_nan=False) + "\n" for each in objects).encode()


def csv_lines(chunks: Chunks, columns: Columns) -> Iterator[bytes]:
    """A line of column names, and one for each row. null is an empty cell; flags are `true` and
    `false`, as in JSON."""
    yield _csv([columns])
    for rows in chunks:
        yield _csv([_cell(row[name]) for name in columns] for row in rows)


def parquet(chunks: Chunks, columns: Columns) -> Iterator[bytes]:
    """A Parquet file, a row group at a time. Raises `MissingParquet` at once.

    Where `chunks` raise, the end is never given, without which no reader takes the file.
    """
    if not parquet_available():
        raise MissingParquet
    return _parquet(chunks, columns)


def parquet_available() -> bool:
    """Whether Parquet can be written here."""
    return find_spec("pyarrow") is not None


FORMATS: Mapping[str, Callable[[Chunks, Columns], Iterator[bytes]]] = {
    "jsonl": json_lines,
    "csv": csv_lines,
    "parquet": parquet,
}


def _csv(lines: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(lines)
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, bool) else value


def _parquet(chunks: Chunks, columns: Columns) -> Iterator[bytes]:
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    types = {
        int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_(), str: pyarrow.string()
    }  # fmt: skip
    schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
    written = _Pieces()
    with ParquetWriter(written, schema, compression="zstd") as writer:
        for rows in _grouped(chunks):
            arrays = [pyarrow.array([row[f.name] for row in rows], f.type) for f in schema]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
            yield written.taken()
    yield written.taken()


def _grouped(chunks: Chunks) -> Iterator[list[Row]]:
    """Chunks put together to `GROUP_ROWS` or more; the last may be smaller, none is empty."""
    group: list[Row] = []
    for rows in chunks:
        group.extend(rows)
        if len(group) >= GROUP_ROWS:
            yield group
            group = []
    if group:
        yield group


class _Pieces(io.RawIOBase):
    """A file that holds only what was written since it was last asked."""

    def __init__(self) -> None:
        super().__init__()
        self._written: list[bytes] = []

    def writable(self) -> bool:
        """It is there to be written."""
        return True

    def write(self, piece: Any) -> int:
        """Keep a copy: the writer uses its buffer again."""
        self._written.append(bytes(piece))
        return len(self._written[-1])

    def taken(self) -> bytes:
        """What was written since the last time."""
        pieces, self._written = self._written, []
        return b"".join(pieces)
