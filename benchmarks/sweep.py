"""What a question of a sweep takes, in one process and in two, beside the planner alone."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from advisor.catalog.loader import hardware_profile, model_profile
from advisor.core.plans import plan
from advisor.core.workload import PlanRequest
from advisor.schemas.sweeps import loaded_sweep
from advisor.service import catalogue, sweeps
from advisor.service.database import Database
from advisor.service.sweep_work import Worker
from advisor.store.migrate import upgrade
from advisor.sweeps.grid import Questions
from benchmarks.timing import least_cpu_ms
from tests.postgres import postgresql_server

SWEEP: Mapping[str, Any] = {
    "grid": {
        "models": ["qwen3-32b", "meta-llama-3.1-70b"],
        "hardware": ["h100-sxm-80gb", "h200-sxm-141gb", "mi300x"],
        "workloads": [
            {
                "request_rate_per_s": {"from": 1, "to": 16, "steps": 50, "scale": "log"},
                "input_tokens": [500, 4000],
                "output_tokens": 250,
            }
        ],
        "slos": [{"ttft_p95_ms": 2000, "tpot_p95_ms": 60}],
        "precisions": [{"weights": ["fp8"], "kv_cache": ["fp8"]}],
    }
}
QUESTIONS: Questions = loaded_sweep(SWEEP)["questions"]


def main() -> None:
    """Print the CPU of a question, that of the planner alone over it, and questions a second."""
    print(f"A sweep of {QUESTIONS.total} questions (CPU, so that other processes do not count)")
    _planned(answer=True)  # what is read and imported at first is counted for nobody
    alone = _cpu_ms(lambda: _planned(answer=False))
    whole = _cpu_ms(lambda: _planned(answer=True))
    print(f"  the planner alone: {alone:.1f} ms a question; with its whole answer {whole:.1f} ms")
    with tempfile.TemporaryDirectory() as folder, postgresql_server() as server:
        databases = {
            "SQLite": f"sqlite:///{Path(folder) / 'advisor.sqlite3'}",
            "PostgreSQL": server.url.format(database="postgres"),
        }
        for name, url in databases.items():
            upgrade(url)
            for processes in (1, 2):
                took_s, spent = _swept(url, processes)
                cpu = 1e3 * sum(spent) / QUESTIONS.total
                print(
                    f"  {name}, {processes} at once: {cpu:.1f} ms; the planner alone "
                    f"{alone / cpu:.2f} times that, with its whole answer {whole / cpu:.2f}; "
                    f"{QUESTIONS.total / took_s:.0f} a second, the most of one process "
                    f"{max(spent) / sum(spent):.0%}"
                )


def _planned(*, answer: bool) -> None:
    """Each question planned, and the plan recommended known; with `answer`, all written down."""
    models = {name: model_profile(name) for name in SWEEP["grid"]["models"]}
    devices = {name: hardware_profile(name) for name in SWEEP["grid"]["hardware"]}
    for item in range(QUESTIONS.total):
        ask = {**QUESTIONS.ask(item), "max_candidates": 50}
        named = [devices[name] for name in ask["hardware"]]
        found = plan(PlanRequest.from_mapping(ask, models[ask["model"]], named))
        _ = found.as_dict() if answer else found.recommended


def _swept(url: str, processes: int) -> tuple[float, list[float]]:
    """Seconds from the first chunk to the end, and of CPU of each of so many processes, all of
    which have planned before."""
    database = Database(url)
    catalogue.load(database)
    sweep, _ = sweeps.create(
        database, loaded_sweep(SWEEP), most_items=QUESTIONS.total, enqueue=lambda *_: None
    )
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        pool.map(_warm, range(processes), 1)
        begin = time.perf_counter()
        spent = pool.starmap(_advance, [(url, sweep.id)] * processes, 1)
        took_s = time.perf_counter() - begin
    assert sweeps.read(database, sweep.id).name == "done"
    # Otherwise the next would be this one.
    with database.writing() as session:
        session.connection().exec_driver_sql("DELETE FROM sweep_chunks")
        session.connection().exec_driver_sql("DELETE FROM sweeps")
    database.close()
    return took_s, spent


def _warm(_: int) -> None:
    _planned(answer=True)


def _advance(url: str, sweep_id: str) -> float:
    begin = time.process_time()
    database = Database(url)
    worker = Worker(database, loaded_sweep)
    while worker.advance(sweep_id):
        pass
    database.close()
    return time.process_time() - begin


def _cpu_ms(call: Callable[[], object]) -> float:
    """Of a question [ms]."""
    return least_cpu_ms(call, 2) / QUESTIONS.total


if __name__ == "__main__":
    main()
