"""Time of simulating a benchmark on one replica, beside that of its steps one by one."""

from __future__ import annotations

import numpy as np

from advisor.catalog.loader import hardware_profile, model_profile
from advisor.core.engines import engine_settings
from advisor.core.layouts import Layout, Split
from advisor.core.replica import ReplicaModel, replica_model
from advisor.core.requests import sample_requests
from advisor.core.simulator import simulate
from advisor.core.workload import Length, Serving, Workload
from benchmarks.timing import least_cpu_ms

CLIENTS, COUNT = 64, 640
CASES = {
    "closed loop, equal lengths": Workload(Length(1000), Length(1000), concurrency=CLIENTS),
    "closed loop, log-normal lengths": Workload(
        Length(1000, 2000), Length(1000, 2000), concurrency=CLIENTS
    ),
    "2 requests a second": Workload(
        Length(1000, 2000), Length(1000, 2000), request_rate_per_s=2.0
    ),
}  # fmt: skip


def replica() -> ReplicaModel:
    """Llama-3.1-8B on one H100."""
    layout = Layout(hardware_profile("h100-sxm-80gb"), Split())
    settings = engine_settings(Serving(), layout.hardware, layout.split, 16_384)
    return replica_model(model_profile("meta-llama-3.1-8b"), layout, settings)


def main() -> None:
    """Print milliseconds, and how many times longer the step times alone would take."""
    print(f"Simulating {COUNT} requests of 1,000 and 1,000 tokens (least CPU of 10)")
    of = replica()
    columns = (CLIENTS, 1500, 0, 0, 0, 0)
    one_step = least_cpu_ms(lambda: [of.step(*columns) for _ in range(100)], 10) / 100
    for name, workload in CASES.items():
        requests = sample_requests(workload, COUNT, np.random.default_rng(0))
        spent = least_cpu_ms(lambda requests=requests: simulate(of, requests), 10)  # type: ignore[misc]
        steps = int(simulate(of, requests).iterations.count.sum())
        alone = steps * one_step
        print(
            f"  {name}: {spent:6.1f} ms for {steps} steps; their times one by one "
            f"{alone:6.1f} ms, {alone / spent:4.1f} times as long"
        )


if __name__ == "__main__":
    main()
