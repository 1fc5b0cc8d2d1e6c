"""Open loads drawn at random: the closed form beside the simulator, which knows no chains."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from advisor.core.verification import Work, simulate_steady
from advisor.core.workload import Length
from tests.core.profiles import planned, workload

CASES = 40
SERVED = [
    ("llama-3.1-8b", "h100", 1, "bf16"), ("llama-3.1-8b", "h100", 1, "fp8"),
    ("llama-3.1-70b", "h100", 4, "bf16"), ("llama-3.1-70b", "h100", 8, "fp8"),
    ("qwen3-32b", "h100", 2, "bf16"), ("qwen3-30b-a3b", "h200", 1, "bf16"),
    ("mistral-7b", "a100", 1, "bf16"), ("deepseek-v3", "h200", 8, "fp8_block"),
    ("gpt-oss-120b", "h100", 2, "mxfp4"), ("llama-3.1-8b", "h200", 1, "bf16"),
]  # fmt: skip
COMPARED = {
    "mean TTFT": ("ttft", "mean"), "mean TPOT": ("tpot", "mean"), "mean E2E": ("e2e", "mean"),
    "TTFT p95": ("ttft", "p95"), "ITL p95": ("itl", "p95"),
}  # fmt: skip


def drawn(seed):
    """A model on its accelerators, and a load of it: inputs of 50 to 8,000 tokens, outputs of 10 to
    1,500, every other one spread, up to 90 % of saturation."""
    random = np.random.default_rng([20_261_201, seed])
    name, on, ranks, weights = SERVED[random.integers(len(SERVED))]

    def length(low, high, most_spread):
        mean = float(round(math.exp(random.uniform(math.log(low), math.log(high)))))
        spread = random.random() < 0.5
        return Length(mean, mean * random.uniform(1.2, most_spread) if spread else None)

    lengths = length(50, 8000, 2.5), length(10, 1500, 3)
    fields = {
        "arrival_cv": float(random.choice([1, 1, 1, 0.5, 1.5])),
        "prefix_cache_hit": float(random.choice([0, 0, 0, 0.5])),
    }
    limits = {"tensor_parallel": (ranks,), "expert_parallel": (1,), "replicas": (1,)}

    def plan(**load):
        of = workload(lengths[0], lengths[1], **fields | load)
        return planned(name, on, of, limits, {}, weights=(weights,))

    most = plan(saturate=True).evaluator.saturation[0]
    return plan(request_rate_per_s=float(random.uniform(0.05, 0.9) * most))


@cache
def errors():
    """Relative errors of the closed form, (cases,), by what is compared."""
    found = []
    for seed in range(CASES):
        plan = drawn(seed)
        closed = plan.candidates.served
        simulated = simulate_steady(plan.evaluator, 0, 1, closed, Work(3e6)).served
        assert simulated is not None
        assert closed.verdict[0] == "stable"
        found.append([
            closed.latency[m].at(s)[0] / simulated.latency[m].at(s)[0] - 1
            for m, s in COMPARED.values()
        ])  # fmt: skip
    return dict(zip(COMPARED, np.abs(np.array(found)).T, strict=True))


@pytest.mark.parametrize(
    ("what", "median", "p90"),
    [
        ("mean E2E", 0.015, 0.06), ("mean TPOT", 0.015, 0.08), ("mean TTFT", 0.02, 0.1),
        ("TTFT p95", 0.05, 0.15), ("ITL p95", 0.05, 0.2),
    ],
)  # fmt: skip
def test_random_loads_are_served_as_simulated(what, median, p90):
    found = errors()[what]
    assert np.median(found) < median
    assert np.quantile(found, 0.9) < p90
