from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from advisor.jobs.queue import enqueue
from advisor.schemas.sweeps import loaded_sweep
from advisor.service import catalogue, sweeps
from advisor.service.database import Database
from advisor.store.migrate import upgrade
from tests.postgres import PostgreSQL, postgresql_server
from tests.servers import ROOT, free_port, wait_until

GRID = {
    "models": ["qwen3-32b"],
    "hardware": ["h100-sxm-80gb", "mi300x"],
    "workloads": [
        {
            "request_rate_per_s": {"from": 1, "to": 16, "steps": 60, "scale": "log"},
            "input_tokens": 500,
            "output_tokens": [100, 250],
        }
    ],
    "precisions": [{"weights": ["fp8"], "kv_cache": ["fp8"]}],
}
QUESTIONS = 2 * 60 * 2


@dataclass
class Started:
    """A worker in a process of its own."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def answered(self) -> int:
        """Questions, by its metrics; 0 before it serves any."""
        assert self.process.poll() is None, self.log.read_text()
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
                text = answer.read().decode()
        except OSError:
            return 0
        (found,) = re.findall(r"^advisor_sweep_items_total (\S+)$", text, re.MULTILINE)
        return int(float(found))


@contextmanager
def worker(url: str, folder: Path, name: str = "one") -> Iterator[Started]:
    """An impatient worker, until the block ends."""
    port, log = free_port(), folder / f"{name}.log"
    environment = dict(os.environ) | {
        "ADVISOR_DATABASE_URL": url,
        "ADVISOR_WORKER_METRICS_PORT": str(port),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.jobs.impatient"],
            env=environment, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield Started(process, port, log)
    finally:
        process.kill()
        process.wait()


@contextmanager
def loaded(url: str) -> Iterator[Database]:
    database = Database(url)
    catalogue.load(database)
    yield database
    database.close()


@pytest.fixture
def database(postgresql_url: str) -> Iterator[Database]:
    with loaded(postgresql_url) as database:
        yield database


def taken(database: Database, **grid: Any) -> str:
    """A sweep that the service has just taken."""
    body = loaded_sweep({"grid": GRID | grid})
    return sweeps.create(database, body, most_items=1_000, enqueue=enqueue)[0].id


def done(database: Database, sweep_id: str) -> int:
    return sweeps.read(database, sweep_id).progress.done


def is_over(database: Database, sweep_id: str) -> bool:
    return sweeps.read(database, sweep_id).name == "done"


def items(database: Database, sweep_id: str) -> list[int]:
    return [row["item"] for chunk in sweeps.rows(database, sweep_id) for row in chunk]


def test_two_workers_share_a_sweep(database: Database, postgresql_url: str, tmp_path: Path):
    sweep_id = taken(database)
    with ExitStack() as stack:
        both = [stack.enter_context(worker(postgresql_url, tmp_path, each)) for each in "ab"]
        wait_until(lambda: is_over(database, sweep_id), 90)
        answered = [each.answered() for each in both]
    assert sum(answered) == QUESTIONS
    assert min(answered) > 0
    assert items(database, sweep_id) == list(range(QUESTIONS))


def test_what_a_killed_worker_had_begun_is_answered_once(
    database: Database, postgresql_url: str, tmp_path: Path
):
    sweep_id = taken(database)
    with worker(postgresql_url, tmp_path, "killed") as killed:
        wait_until(lambda: done(database, sweep_id) > 0, 60)
        killed.process.kill()
        killed.process.wait()
        left_behind = QUESTIONS - done(database, sweep_id)
    assert left_behind > 0
    with worker(postgresql_url, tmp_path, "next") as following:
        wait_until(lambda: is_over(database, sweep_id), 90)
        assert following.answered() == left_behind
    assert items(database, sweep_id) == list(range(QUESTIONS))


def test_a_worker_told_to_end_finishes_its_chunk_and_leaves_no_other(
    database: Database, postgresql_url: str, tmp_path: Path
):
    sweep_id = taken(database)
    with worker(postgresql_url, tmp_path) as ending:
        wait_until(lambda: done(database, sweep_id) > 0, 60)
        ending.process.send_signal(signal.SIGTERM)
        assert ending.process.wait(timeout=30) == 0, ending.log.read_text()
    state = sweeps.read(database, sweep_id)
    assert state.sweep.taken == state.progress.done < QUESTIONS


def test_workers_go_on_by_themselves_once_their_database_is_back(tmp_path: Path):
    # One that keeps what it has said it has through a crash.
    with postgresql_server(durable=True) as server:
        url = server.url.format(database="postgres")
        upgrade(url)
        with (
            loaded(url) as database,
            worker(url, tmp_path, "one") as one,
            worker(url, tmp_path, "two") as two,
        ):
            sweep_id = taken(database)
            wait_until(lambda: done(database, sweep_id) > 0, 60)
            restart(server)
            wait_until(lambda: is_over(database, sweep_id), 90)
            # More would have been answered twice; what it kept without saying so counts for nobody.
            assert one.answered() + two.answered() <= QUESTIONS
            assert items(database, sweep_id) == list(range(QUESTIONS))


def test_a_worker_waits_until_the_database_is_migrated(
    unmigrated_postgresql_url: str, tmp_path: Path
):
    with worker(unmigrated_postgresql_url, tmp_path) as waiting:
        wait_until(lambda: "lacks migrations" in waiting.log.read_text(), 60)
        upgrade(unmigrated_postgresql_url)
        with loaded(unmigrated_postgresql_url) as database:
            sweep_id = taken(database, hardware=["mi300x"])
            wait_until(lambda: is_over(database, sweep_id), 90)


def restart(server: PostgreSQL) -> None:
    server.stop()
    server.start()
