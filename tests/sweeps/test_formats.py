"""Rows as files, each read back by a reader that is not ours."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from collections.abc import Iterator

import pyarrow.parquet
import pytest

from advisor.sweeps import formats
from advisor.sweeps.formats import FORMATS, GROUP_ROWS, Columns, MissingParquet, Row

COLUMNS: Columns = {
    "item": int, "status": str, "rate_per_s": float, "cost_per_hour": str, "met": bool,
    "detail": str,
}  # fmt: skip
ROWS: list[Row] = [
    dict(zip(COLUMNS, values, strict=True))
    for values in (
        (0, "planned", 0.1, "12.50", True, None),
        (1, "planned", 1e-300, "100000000000000000000.01", False, None),
        (2, "no_plan", 16.0, None, None, 'Two lines,\n"quoted", and a comma'),
        (3, "refused", None, None, None, "naïve, 模型, 🙂"),
    )
]
CHUNKS = [ROWS[:1], [], ROWS[1:]]


def written(form: str, chunks=CHUNKS) -> bytes:
    return b"".join(FORMATS[form](chunks, COLUMNS))


def read(form: str, file: bytes) -> list[Row]:
    if form == "jsonl":
        return [json.loads(line) for line in file.split(b"\n")[:-1]]
    if form == "parquet":
        rows: list[Row] = pyarrow.parquet.read_table(io.BytesIO(file)).to_pylist()
        return rows
    read_as = {name: json.loads if kind is bool else kind for name, kind in COLUMNS.items()}
    return [
        {name: read_as[name](cell) if cell else None for name, cell in row.items()}
        for row in csv.DictReader(io.StringIO(file.decode(), newline=""))
    ]


def many(count: int) -> Iterator[list[Row]]:
    """`count` rows in chunks of 100, each made when it is asked for."""
    for first in range(0, count, 100):
        yield [{**ROWS[i % 4], "item": i, "rate_per_s": i / 7} for i in range(first, first + 100)]


@pytest.mark.parametrize("form", FORMATS)
def test_what_was_written_is_read_back(form: str):
    assert read(form, written(form)) == ROWS


@pytest.mark.parametrize("form", FORMATS)
def test_columns_come_in_their_order_whatever_that_of_a_row(form: str):
    turned = [dict(reversed(list(row.items()))) for row in ROWS]
    assert written(form, [turned]) == written(form, [ROWS])
    assert list(read(form, written(form, [turned]))[0]) == list(COLUMNS)


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_without_rows_can_be_read(form: str):
    assert read(form, written(form, [])) == read(form, written(form, [[]])) == []


def test_without_rows_csv_and_parquet_still_name_their_columns():
    assert written("csv", []) == (",".join(COLUMNS) + "\r\n").encode()
    assert pyarrow.parquet.read_schema(io.BytesIO(written("parquet", []))).names == list(COLUMNS)


@pytest.mark.parametrize("form", FORMATS)
def test_a_row_that_lacks_a_column_is_never_written_as_if_it_were_null(form: str):
    with pytest.raises(KeyError):
        written(form, [[{"item": 1}]])


def test_parquet_has_the_types_of_the_columns():
    schema = pyarrow.parquet.read_schema(io.BytesIO(written("parquet")))
    assert [str(each) for each in schema.types] == [
        "int64", "string", "double", "string", "bool", "string",
    ]  # fmt: skip


def test_small_chunks_become_row_groups_that_are_worth_listing():
    file = pyarrow.parquet.ParquetFile(io.BytesIO(written("parquet", many(3 * GROUP_ROWS))))
    sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert sum(sizes) == -(-3 * GROUP_ROWS // 100) * 100
    assert all(GROUP_ROWS <= size < GROUP_ROWS + 100 for size in sizes[:-1])
    assert len(sizes) == 3


def test_parquet_whose_rows_end_in_an_error_cannot_be_taken_for_a_whole_file():
    def broken() -> Iterator[list[Row]]:
        yield from many(GROUP_ROWS)
        raise ConnectionError

    got: list[bytes] = []
    with pytest.raises(ConnectionError):
        got.extend(FORMATS["parquet"](broken(), COLUMNS))
    with pytest.raises(pyarrow.ArrowInvalid):
        read("parquet", b"".join(got))


@pytest.mark.parametrize("form", FORMATS)
def test_five_times_the_rows_take_no_more_memory(form: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(formats, "GROUP_ROWS", 1_000)
    arrow = pyarrow.default_memory_pool()

    def most_bytes(count: int) -> tuple[int, int]:
        """Of Python's own memory and of Arrow's, while the pieces are given out."""
        tracemalloc.start()
        try:
            pieces = FORMATS[form](many(count), COLUMNS)
            of_arrow = max(arrow.bytes_allocated() for piece in pieces if piece)
            return tracemalloc.get_traced_memory()[1], of_arrow
        finally:
            tracemalloc.stop()

    most_bytes(2_000)  # what is imported is counted for neither
    few, more = most_bytes(4_000), most_bytes(20_000)
    assert more[0] < 1.1 * few[0]
    assert more[1] <= 1.1 * few[1]


def test_without_pyarrow_parquet_is_refused_before_a_row_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(formats, "find_spec", lambda _: None)

    chunks = iter(CHUNKS)
    with pytest.raises(MissingParquet):
        FORMATS["parquet"](chunks, COLUMNS)
    assert list(chunks) == CHUNKS
    assert read("jsonl", written("jsonl")) == ROWS
