"""The closed forms of load and batching against a simulation, iteration by iteration.

The simulator takes its step times from the scalar recount of the step model, so that what differs
is the queueing alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from advisor.core.hardware import HardwareProfile
from advisor.core.load import Served as ServedLoad
from tests.core.batching_simulator import Engine, Measured, Simulation
from tests.core.profiles import CONFIGS, IDEAL, device, planned, workload
from tests.core.scalar import ScalarStep


class Case(NamedTuple):
    """One replica and the requests it gets."""

    name: str
    on: HardwareProfile | str
    ranks: int
    inputs: int
    outputs: int
    settings: dict[str, int] = {}


class Compared(NamedTuple):
    """A plan's prediction beside what was simulated."""

    predicted: ServedLoad
    measured: Measured

    def error(self, metric, statistic="mean"):
        """Relative error of a latency of the prediction."""
        values = getattr(self.measured, metric)
        level = {"p50": 0.5, "p95": 0.95, "p99": 0.99}.get(statistic)
        true = values.mean() if level is None else np.quantile(values, level)
        return self.predicted.latency[metric].at(statistic)[0] / true - 1

    def rate_error(self):
        """Relative error of the requests served a second."""
        return self.predicted.requests_per_s[0] / self.measured.requests_per_s - 1


def plan_of(case, **load):
    own = "bf16" if "quantization_config" not in CONFIGS[case.name] else "fp8_block"
    return planned(
        case.name, case.on, workload(case.inputs, case.outputs, **load),
        {"tensor_parallel": (case.ranks,), "expert_parallel": (1,), "replicas": (1,)},
        case.settings, weights=(own,),
    )  # fmt: skip


def simulation(case, plan):
    layout = plan.evaluator.layouts[0].split
    on = device(case.on) if isinstance(case.on, str) else case.on
    step = ScalarStep(CONFIGS[case.name], on, "vllm", case.ranks, layout.weights)
    engine = Engine(
        slots=int(plan.evaluator.slots[0]),
        token_budget=int(plan.evaluator.batched_tokens[0, 0]),
        front_end=float(plan.evaluator.front_end[0]),
    )
    return Simulation(step, engine)


def compare_open(case, utilization, count):
    most = plan_of(case, saturate=True).evaluator.saturation[0]
    rate = float(utilization * most)
    plan = plan_of(case, request_rate_per_s=rate)
    measured = simulation(case, plan).open(rate, case.inputs, case.outputs, count)
    return Compared(plan.candidates.served, measured)


def compare_closed(case, clients, count):
    plan = plan_of(case, concurrency=clients)
    measured = simulation(case, plan).closed(clients, case.inputs, case.outputs, count)
    return Compared(plan.candidates.served, measured)


CHAT = Case("llama-3.1-8b", "h100", 1, 1000, 250)
LONG = Case("llama-3.1-8b", "h100", 1, 4000, 250)
WRITING = Case("llama-3.1-8b", "h100", 1, 200, 1000, {"max_num_seqs": 256})
SHORT = Case("llama-3.1-8b", "h100", 1, 128, 128, {"max_num_seqs": 256})
LARGE = Case("llama-3.1-70b", "h100", 8, 2000, 300)
MIXTURE = Case("qwen3-30b-a3b", "h200", 1, 1000, 500)
LATENT = Case("deepseek-v3", "h200", 8, 2000, 500)
SLOW = replace(device("h100"), dense_tflops={"bf16": 30.0}, efficiency=IDEAL)
"""Serves as many a second in a small batch as in a large one: its steps cost what they compute."""

CHUNKED = Case("llama-3.1-8b", "h100", 1, 4000, 250, {"max_num_batched_tokens": 2048})


@pytest.mark.parametrize(
    ("case", "utilization", "count"),
    [
        (CHAT, 0.3, 3000), (CHAT, 0.6, 5000), (CHAT, 0.85, 10_000),
        (LONG, 0.6, 1500), (LONG, 0.85, 3000),
        (WRITING, 0.6, 3000), (WRITING, 0.85, 5000),
        (SHORT, 0.3, 3000), (SHORT, 0.85, 10_000),
        (LARGE, 0.3, 1000), (LARGE, 0.85, 5000),
        (MIXTURE, 0.3, 2000), (MIXTURE, 0.85, 5000),
        (LATENT, 0.3, 1000), (LATENT, 0.85, 3000),
        (CHUNKED, 0.85, 3000),
    ],
)  # fmt: skip
def test_an_open_load_is_served_as_fast_as_simulated(case, utilization, count):
    compared = compare_open(case, utilization, count)
    assert abs(compared.error("tpot")) < 0.1
    assert abs(compared.error("e2e")) < 0.1
    assert abs(compared.error("ttft")) < 0.2
    assert abs(compared.error("e2e", "p95")) < 0.2
    assert abs(compared.error("ttft", "p95")) < 0.3


@pytest.mark.parametrize(
    ("case", "clients", "count"),
    [
        (CHAT, 1, 40), (CHAT, 4, 200), (CHAT, 16, 300), (CHAT, 64, 900), (CHAT, 256, 2560),
        (CHAT, 500, 3000), (MIXTURE, 64, 640), (LARGE, 32, 320),
    ],
)  # fmt: skip
def test_a_fixed_number_of_clients_is_served_as_fast_as_simulated(case, clients, count):
    compared = compare_closed(case, clients, count)
    assert abs(compared.rate_error()) < 0.05
    assert abs(compared.error("tpot")) < 0.1
    assert abs(compared.error("e2e")) < 0.1


@pytest.mark.parametrize(
    ("case", "clients"),
    [
        (Case("llama-3.1-8b", "h100", 2, 5092, 558, {"max_num_batched_tokens": 512}), 179),
        (Case("llama-3.1-8b", "h100", 1, 490, 14, {"max_num_batched_tokens": 512}), 400),
        (Case("llama-3.1-8b", "h100", 1, 8000, 50, {"max_num_batched_tokens": 2048}), 54),
        (Case("llama-3.1-8b", "h100", 1, 4000, 50, {"max_num_batched_tokens": 2048}), 100),
        (Case("llama-3.1-70b", "h100", 4, 64, 2, {"max_num_batched_tokens": 2048}), 256),
        (Case("llama-3.1-70b", SLOW, 4, 64, 2, {"max_num_batched_tokens": 2048}), 256),
        (Case("llama-3.1-70b", SLOW, 4, 500, 10, {"max_num_batched_tokens": 2048}), 256),
        (Case("llama-3.1-8b", SLOW, 1, 4000, 20, {"max_num_batched_tokens": 2048}), 100),
    ],
)
def test_a_replica_full_of_prompts_serves_as_many_as_simulated(case, clients):
    """Where prompts fill every step, more clients only wait longer for theirs: those that decode
    are no more than the token budget feeds."""
    compared = compare_closed(case, clients, 8 * clients)
    assert abs(compared.rate_error()) < 0.1
    assert abs(compared.error("e2e")) < 0.1
    assert abs(compared.error("tpot")) < 0.25
