"""Mixtures of classes drawn at random: the closed form beside the simulator.

docs/method.md has the errors of 110 such mixtures, with three times as many requests measured.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from advisor.core.lengths import Length, RequestClass
from advisor.core.verification import Work, simulate_steady
from advisor.core.workload import Workload
from tests.core.profiles import planned
from tests.core.test_random_loads import SERVED

CASES = 60


def drawn(seed):
    """A model on its accelerators and 2 to 4 classes: inputs of 50 to 6,000 tokens, outputs of 1 to
    1,500, every other length spread, some with a prefix in the cache; up to 85 % of saturation."""
    random = np.random.default_rng([20_261_202, seed])
    name, on, ranks, weights = SERVED[random.integers(len(SERVED))]

    def length(low, high, most_spread):
        mean = float(round(math.exp(random.uniform(math.log(low), math.log(high)))))
        spread = random.random() < 0.5
        return Length(mean, mean * random.uniform(1.2, most_spread) if spread else None)

    classes = [
        RequestClass(
            length(50, 6000, 2.5), length(1, 1500, 3), float(random.uniform(0.05, 1)),
            float(random.choice([0, 0, 0, 0.5])), f"class-{number}",
        )
        for number in range(random.integers(2, 5))
    ]  # fmt: skip
    limits = {"tensor_parallel": (ranks,), "expert_parallel": (1,), "replicas": (1,)}

    def plan(**load):
        mix = Workload.of_classes(classes, **load)
        return planned(name, on, mix, limits, {}, weights=(weights,))

    most = plan(saturate=True).evaluator.saturation[0]
    return plan(request_rate_per_s=float(random.uniform(0.05, 0.85) * most))


@cache
def errors():
    """Relative errors of the closed form by latency and statistic: of all requests, and of those of
    each class."""
    found: dict[tuple[str, str], list[float]] = {}
    by_class: dict[tuple[str, str], list[float]] = {}
    for seed in range(CASES):
        plan = drawn(seed)
        closed = plan.candidates.served
        simulated = simulate_steady(plan.evaluator, 0, 1, closed, Work(3e6)).served
        assert closed.verdict[0] == "stable"
        assert simulated is not None
        pairs = [(found, closed.latency, simulated.latency)]
        pairs += [(by_class, closed.classes[k], simulated.classes[k]) for k in closed.classes]
        for kept, predicted, measured in pairs:
            for metric, latency in predicted.items():
                for statistic in ("mean", "p95"):
                    ratio = latency.at(statistic)[0] / measured[metric].at(statistic)[0]
                    kept.setdefault((metric, statistic), []).append(abs(ratio - 1))
    return tuple(
        {key: np.array(each)[~np.isnan(each)] for key, each in kept.items()}
        for kept in (found, by_class)
    )


@pytest.mark.parametrize(
    ("metric", "statistic", "median", "p90"),
    [
        ("e2e", "mean", 0.02, 0.08), ("tpot", "mean", 0.02, 0.1), ("ttft", "mean", 0.04, 0.12),
        ("e2e", "p95", 0.04, 0.12), ("ttft", "p95", 0.06, 0.2), ("itl", "p95", 0.06, 0.25),
        ("tpot", "p95", 0.1, 0.35),
    ],
)  # fmt: skip
def test_random_mixtures_are_served_as_simulated(metric, statistic, median, p90):
    found = errors()[0][metric, statistic]
    assert np.median(found) < median
    assert np.quantile(found, 0.9) < p90


@pytest.mark.parametrize(
    ("metric", "statistic", "median", "p90"),
    [
        ("e2e", "mean", 0.03, 0.1), ("tpot", "mean", 0.03, 0.12), ("ttft", "mean", 0.05, 0.15),
        ("e2e", "p95", 0.1, 0.25), ("ttft", "p95", 0.1, 0.3),
    ],
)  # fmt: skip
def test_each_class_of_a_mixture_is_served_as_simulated(metric, statistic, median, p90):
    found = errors()[1][metric, statistic]
    assert np.median(found) < median
    assert np.quantile(found, 0.9) < p90
