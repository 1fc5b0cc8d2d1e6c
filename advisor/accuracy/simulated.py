"""The simulation of a measured benchmark as a predictor: its burst, its waves and its drain."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from advisor.accuracy.closed_form import closed_form, evaluator_of
from advisor.accuracy.rows import Row, model_of
from advisor.core.replica import replica_model
from advisor.core.requests import Requests, Run, sample_requests
from advisor.core.simulator import simulate
from advisor.core.units import MS_PER_S
from advisor.core.workload import Length, Workload

SEED = 20_261_201
"""Every run draws the same lengths and arrivals."""

_REQUESTS_PER_CLIENT = 10
"""What public benchmarks send for each client, where a row does not say."""

_OPEN_REQUESTS = 1000


def simulated(row: Row) -> Mapping[str, float]:
    """The row's metrics, by name; in closed form where nothing arrives (static batches) and where
    the number of requests is not known (saturation). Refused when its layout is rejected."""
    if row.load == "static_batch" or (row.load == "saturated" and row.requests is None):
        return closed_form(row)
    evaluator = evaluator_of(row)
    layout, settings = evaluator.layouts[0], evaluator.settings[0]
    replica = replica_model(model_of(row), layout, settings, float(evaluator.front_end[0]))
    return _metrics(simulate(replica, _requests(row)), row)


def _requests(row: Row) -> Requests:
    lengths = Length(row.input_tokens), Length(row.output_tokens)
    if row.load == "open":
        rate = (row.request_rate_per_s or 0.0) / row.replicas
        load = Workload(*lengths, request_rate_per_s=rate)
        count = row.requests or _OPEN_REQUESTS
    else:
        clients = row.concurrency or row.requests or 1
        load = Workload(*lengths, concurrency=max(clients // row.replicas, 1))
        count = row.requests or _REQUESTS_PER_CLIENT * clients
    count = max(math.ceil(count / row.replicas), 1)
    ranges = [_uniform(each.mean) if row.lengths == "uniform" else None for each in lengths]
    return sample_requests(load, count, np.random.default_rng(SEED), *ranges)


def _uniform(mean: float) -> tuple[int, int]:
    """InferenceMAX and InferenceX draw 0.8 to 1.0 of the nominal length, 0.9 on average."""
    return round(mean * 0.8 / 0.9), round(mean / 0.9)


def _metrics(run: Run, row: Row) -> dict[str, float]:
    found = {
        "output_tokens_per_s": run.output_tokens_per_s * row.replicas,
        "requests_per_s": run.requests_per_s * row.replicas,
    }
    for name, each in (("ttft", run.ttft), ("tpot", run.tpot), ("e2e", run.e2e)):
        values = each[~np.isnan(each)] * MS_PER_S
        if len(values):
            found[f"{name}_mean_ms"] = found[f"{name}_unstated_ms"] = float(values.mean())
            found[f"{name}_p50_ms"] = float(np.quantile(values, 0.5))
            found[f"{name}_p99_ms"] = float(np.quantile(values, 0.99))
    gaps = run.requests.output_tokens - 1
    if gaps.sum():
        found["itl_mean_ms"] = float(np.nansum(run.tpot * gaps) / gaps.sum() * MS_PER_S)
    return found
