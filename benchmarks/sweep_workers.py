"""A sweep by one worker and by two, as operators start them, beside the planner alone; and what
memory they take."""

from __future__ import annotations

import argparse
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from advisor.catalog.loader import hardware_profile, model_profile
from advisor.core.plans import plan
from advisor.core.workload import PlanRequest
from advisor.jobs.queue import enqueue
from advisor.schemas.sweeps import loaded_sweep
from advisor.service import catalogue, sweeps
from advisor.service.database import Database
from advisor.store.migrate import upgrade
from tests.postgres import postgresql_server
from tests.servers import free_port, wait_until

ALONE = 2_000
"""Questions that the planner answers by itself, before and after."""


def grid(questions: int) -> Mapping[str, Any]:
    """A sweep of so many questions, in two hundreds."""
    return {
        "grid": {
            "models": ["meta-llama-3.1-8b", "qwen3-8b"],
            "hardware": ["h100-sxm-80gb", "l40s"],
            "workloads": [
                {
                    "request_rate_per_s": {"from": 1, "to": 16, "steps": 50, "scale": "log"},
                    "input_tokens": {"from": 200, "to": 6000, "steps": questions // 200},
                    "output_tokens": 250,
                }
            ],
            "slos": [{"ttft_p95_ms": 2000, "tpot_p95_ms": 60}],
            "precisions": [{"weights": ["fp8"], "kv_cache": ["fp8"]}],
            "limits": {"max_accelerators": 4},
        }
    }


def main() -> None:
    """Print questions a second, the speed-up, and memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=2_000)
    body = grid(parser.parse_args().questions)
    total = loaded_sweep(body)["questions"].total
    print(f"A sweep of {total:,} questions on PostgreSQL")
    before, rates = _alone(body), []
    for number in (1, 2):
        rate, peaks_mib = _swept(body, total, number)
        rates.append(rate)
        print(f"  {number} at once: {rate:.0f} a second; at most {max(peaks_mib):.0f} MiB each")
    alone = (before + _alone(body)) / 2
    print(f"  the planner alone, in one process: {alone:.0f} a second")
    print(f"  one worker over it: {rates[0] / alone:.2f}; two over one: {rates[1] / rates[0]:.2f}")


def _alone(body: Mapping[str, Any]) -> float:
    """Questions a second, the plan recommended known and nothing written."""
    models = {name: model_profile(name) for name in body["grid"]["models"]}
    devices = {name: hardware_profile(name) for name in body["grid"]["hardware"]}
    questions = loaded_sweep(body)["questions"]
    items = range(0, questions.total, max(1, questions.total // ALONE))
    begin = time.perf_counter()
    for item in items:
        ask = {**questions.ask(item), "max_candidates": 50}
        named = [devices[name] for name in ask["hardware"]]
        _ = plan(PlanRequest.from_mapping(ask, models[ask["model"]], named)).recommended
    return len(items) / (time.perf_counter() - begin)


def _swept(body: Mapping[str, Any], total: int, number: int) -> tuple[float, list[float]]:
    """Questions a second from the first chunk to the last by so many workers, and the most memory
    that each has taken [MiB]."""
    with postgresql_server() as server, ExitStack() as stack:
        url = server.url.format(database="postgres")
        upgrade(url)
        database = Database(url)
        stack.callback(database.close)
        catalogue.load(database)
        workers = [stack.enter_context(_worker(url)) for _ in range(number)]
        sweep, _ = sweeps.create(database, loaded_sweep(body), most_items=total, enqueue=enqueue)
        wait_until(lambda: sweeps.read(database, sweep.id).name == "done", 3600)
        rate = sweeps.read(database, sweep.id).rate_per_s
        assert rate is not None
        items = (row["item"] for chunk in sweeps.rows(database, sweep.id) for row in chunk)
        assert all(item == wanted for item, wanted in zip(items, range(total), strict=True))
        return rate, [_peak_mib(each.pid) for each in workers]


@contextmanager
def _worker(url: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker that waits for jobs, until the block ends."""
    port = free_port()
    environment = dict(os.environ) | {
        "ADVISOR_DATABASE_URL": url,
        "ADVISOR_WORKER_METRICS_PORT": str(port),
        "ADVISOR_LOG_LEVEL": "ERROR",
    }
    process = subprocess.Popen([sys.executable, "-m", "advisor", "worker"], env=environment)
    try:
        wait_until(lambda: _listens(port))
        yield process
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _peak_mib(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    (peak_kib,) = re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(peak_kib) / 1024


if __name__ == "__main__":
    main()
