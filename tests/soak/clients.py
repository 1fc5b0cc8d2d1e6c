"""Clients that send a mixture of requests until a number or a time is reached."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from tests.servers import Server

PLAN = {
    "model": "meta-llama-3.1-8b",
    "hardware": ["h100-sxm-80gb", "l40s"],
    "workload": {"request_rate_per_s": 4, "input_tokens": 1000, "output_tokens": 250},
    "slo": {"ttft_p95_ms": 1000},
    "max_candidates": 5,
}
MIXTURE: tuple[tuple[int, str, str, Any], ...] = (
    (30, "GET", "/v1/hardware-profiles/h100-sxm-80gb", None),
    (20, "GET", "/v1/model-profiles?limit=20", None),
    (10, "GET", "/v1/plans?limit=5", None),
    (20, "POST", "/v1/terminology/checks", {"text": "Decode is memory-bound on this GPU."}),
    (10, "POST", "/v1/economics/break-even",
     {"training_cost": "1000000", "price_per_call": "0.01", "calls_per_month": 5_000_000}),
    (3, "POST", "/v1/plans", PLAN),
    (4, "POST", "/v1/plans", {"model": "none-such"}),
    (3, "GET", "/v1/none-such", None),
)  # fmt: skip
"""Weight, method, path and body."""


@dataclass
class Seen:
    """What clients saw: answers by status, and connections that gave none."""

    statuses: Counter[int] = field(default_factory=Counter)
    lost: int = 0

    @property
    def requests(self) -> int:
        return self.statuses.total() + self.lost

    @property
    def errors(self) -> int:
        """Answers that blame the service, and connections lost."""
        return self.lost + sum(n for status, n in self.statuses.items() if status >= 500)


def load(server: Server, clients: int, requests: int, seconds: float) -> Iterator[Seen]:
    """Run clients until so many requests are sent or so much time is over; what they have seen so
    far, once a second."""
    seen, numbers = Seen(), count()
    lock, end = threading.Lock(), time.monotonic() + seconds

    def run(seed: int) -> None:
        chance = random.Random(seed)
        weights = [weight for weight, *_ in MIXTURE]
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        while next(numbers) < requests and time.monotonic() < end:
            _, method, path, body = chance.choices(MIXTURE, weights)[0]
            status = _answer(connection, method, path, body)
            with lock:
                if status is None:
                    seen.lost += 1
                else:
                    seen.statuses[status] += 1

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(clients)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(1)
        yield seen


def _answer(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any
) -> int | None:
    """The status; None where the connection gave none, after one try on a new one: a server may
    close a connection that waits for a request."""
    text = None if body is None else json.dumps(body)
    headers = {} if body is None else {"Content-Type": "application/json"}
    for _ in range(1 if method == "POST" else 2):
        try:
            connection.request(method, path, text, headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status
        except (OSError, http.client.HTTPException):
            connection.close()
    return None


def resident_mib(process: int) -> float:
    """Memory of a process that is not shared with others [MiB]."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    private = [int(line.split()[1]) for line in lines if line.startswith("Private_")]
    return sum(private) / 1024
