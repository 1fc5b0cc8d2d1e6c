"""The memory of who answers and who reads a sweep of 10,000 questions, and one of 1,000,000.

The planner is asked one question only, whose answer is then that of all: a million of its own take
two hours. Everything else is as in a worker: questions, chunks, their storing and their reading.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from advisor.schemas.sweeps import loaded_sweep
from advisor.service import sweep_work, sweeps
from advisor.service.database import Database
from advisor.sweeps.answers import answer
from advisor.sweeps.formats import FORMATS
from advisor.sweeps.rows import COLUMNS, Row
from benchmarks.surroundings import alone, catalogued, peak_mib
from benchmarks.sweep_workers import grid
from tests.postgres import postgresql_server

COUNTS = (10_000, 1_000_000)


def main() -> None:
    """Print it for either database, each sweep in processes of its own."""
    print("Memory of sweeps [MiB at most], their answers simulated")
    with TemporaryDirectory() as folder, postgresql_server() as server:
        databases = {
            "SQLite": f"sqlite:///{Path(folder) / 'advisor.sqlite3'}",
            "PostgreSQL": server.url.format(database="postgres"),
        }
        for name, url in databases.items():
            catalogued(url)
            for count in COUNTS:
                sweep_id, answering, a_second = alone(_answered, url, count)
                reading = alone(_read, url, sweep_id, count)
                print(
                    f"  {name:11}{count:10,} questions: who takes and answers them {answering:.0f}"
                    f" ({a_second:,.0f} a second), who reads all of them {reading:.0f}"
                )


def _answered(url: str, count: int) -> tuple[str, float, float]:
    """The id of the sweep, the most memory that its process has taken [MiB], and its questions a
    second."""
    answers = list[Row]()

    def simulated(item: int, *rest: Any) -> Row:
        if not answers:
            answers.append(answer(item, *rest))
        return {**answers[0], "item": item}

    database = Database(url)
    sweep, _ = sweeps.create(
        database, loaded_sweep(grid(count)), most_items=count, enqueue=lambda *_: None
    )
    begin = time.perf_counter()
    worker = sweep_work.Worker(database, loaded_sweep)
    with patch.object(sweep_work, "answer", simulated):
        while worker.advance(sweep.id):
            pass
    took_s = time.perf_counter() - begin
    assert sweeps.read(database, sweep.id).name == "done"
    database.close()
    return sweep.id, peak_mib(), count / took_s


def _read(url: str, sweep_id: str, count: int) -> float:
    """The most memory of a process that reads all rows, as a file and by pages [MiB]."""
    database = Database(url)
    lines = sum(
        part.count(b"\n") for part in FORMATS["jsonl"](sweeps.rows(database, sweep_id), COLUMNS)
    )
    assert lines == count
    _, cursor = sweeps.rows_page(database, sweep_id, 1_000, None)
    while cursor is not None:
        _, cursor = sweeps.rows_page(database, sweep_id, 1_000, cursor)
    database.close()
    return peak_mib()


if __name__ == "__main__":
    main()
