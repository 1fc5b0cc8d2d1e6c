"""A sweep by one worker and by two, as operators start them, beside the planner alone; and what
memory they take."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from advisor.catalog.loader import hardware_profile, model_profile
from advisor.core.plans import plan
from advisor.core.workload import PlanRequest
from advisor.jobs.queue import enqueue
from advisor.schemas.sweeps import loaded_sweep
from advisor.service import sweeps
from advisor.service.database import Database
from benchmarks.surroundings import catalogued, peak_mib
from tests.postgres import postgresql_server
from tests.servers import free_port, wait_until

ALONE = 500
"""Questions that the planner answers by itself in each pause of the worker."""
FEWEST = 5_000
"""Questions of a sweep that lasts for a pause or more."""
PAUSE_EVERY_S = 10
"""A machine may be half as fast a minute later: what is compared is measured in turns."""


def grid(questions: int) -> Mapping[str, Any]:
    """A sweep of so many questions, in two hundreds up to 5,000 and in five thousands above."""
    slos = max(1, questions // 5_000)
    return {
        "grid": {
            "models": ["meta-llama-3.1-8b", "qwen3-8b"],
            "hardware": ["h100-sxm-80gb", "l40s"],
            "workloads": [
                {
                    "request_rate_per_s": {"from": 1, "to": 16, "steps": 50, "scale": "log"},
                    "input_tokens": {
                        "from": 200,
                        "to": 6000,
                        "steps": questions // 200 // slos,
                    },
                    "output_tokens": 250,
                }
            ],
            "slos": [{"ttft_p95_ms": 2000 + each, "tpot_p95_ms": 60} for each in range(slos)],
            "precisions": [{"weights": ["fp8"], "kv_cache": ["fp8"]}],
            "limits": {"max_accelerators": 4},
        }
    }


def main() -> None:
    """Print questions a second, the speed-up, and memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=20_000)
    questions = parser.parse_args().questions
    if questions < FEWEST:
        parser.error(f"--questions: {FEWEST:,} at least")
    body = grid(questions)
    total = loaded_sweep(body)["questions"].total
    print(f"A sweep of {total:,} questions on PostgreSQL")
    bare = Bare(body)
    one = _swept(body, total, 1, bare)
    two = _swept(body, total, 2, None)
    for number, (rate, peaks_mib) in ((1, one), (2, two)):
        print(f"  {number} at once: {rate:.0f} a second; at most {max(peaks_mib):.0f} MiB each")
    print(
        f"  the planner alone, in pauses of the one: {bare.rate_per_s:.0f} a second"
        f"; one worker over it {one[0] / bare.rate_per_s:.2f}; two over one {two[0] / one[0]:.2f}"
    )


class Bare:
    """The planner alone, in this process: the plan recommended known and nothing written."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._models = {name: model_profile(name) for name in body["grid"]["models"]}
        self._devices = {name: hardware_profile(name) for name in body["grid"]["hardware"]}
        self._questions = loaded_sweep(body)["questions"]
        self._answer()  # what is read and imported at first is counted for nobody
        self._answered, self.spent_s = 0, 0.0

    @property
    def rate_per_s(self) -> float:
        """Questions a second."""
        return self._answered / self.spent_s

    def answer(self) -> None:
        """`ALONE` questions from all over the sweep."""
        begin = time.perf_counter()
        self._answered += self._answer()
        self.spent_s += time.perf_counter() - begin

    def _answer(self) -> int:
        total = self._questions.total
        items = range(0, total, max(1, total // ALONE))
        for item in items:
            ask = {**self._questions.ask(item), "max_candidates": 50}
            named = [self._devices[name] for name in ask["hardware"]]
            _ = plan(PlanRequest.from_mapping(ask, self._models[ask["model"]], named)).recommended
        return len(items)


def _swept(
    body: Mapping[str, Any], total: int, number: int, bare: Bare | None
) -> tuple[float, list[float]]:
    """Questions a second from the first chunk to the last by so many workers, pauses for `bare`
    not counted, and the most memory that each has taken [MiB]."""
    with postgresql_server() as server, ExitStack() as stack:
        url = server.url.format(database="postgres")
        database = Database(catalogued(url))
        stack.callback(database.close)
        workers = [stack.enter_context(_worker(url)) for _ in range(number)]
        sweep, _ = sweeps.create(database, loaded_sweep(body), most_items=total, enqueue=enqueue)
        while not _is_done(database, sweep.id, PAUSE_EVERY_S):
            if bare is not None:
                _pause(workers, bare)
        rate = sweeps.read(database, sweep.id).rate_per_s
        assert rate is not None
        items = (row["item"] for chunk in sweeps.rows(database, sweep.id) for row in chunk)
        assert all(item == wanted for item, wanted in zip(items, range(total), strict=True))
        paused_s = 0.0 if bare is None else bare.spent_s
        return total / (total / rate - paused_s), [peak_mib(each.pid) for each in workers]


def _is_done(database: Database, sweep_id: str, within_s: float) -> bool:
    ends = time.monotonic() + within_s
    while time.monotonic() < ends:
        if sweeps.read(database, sweep_id).name == "done":
            return True
        time.sleep(0.2)
    return False


def _pause(workers: list[subprocess.Popen[bytes]], bare: Bare) -> None:
    for each in workers:
        each.send_signal(signal.SIGSTOP)
    bare.answer()
    for each in workers:
        each.send_signal(signal.SIGCONT)


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


if __name__ == "__main__":
    main()
