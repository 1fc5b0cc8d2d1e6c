"""Share of a replica's time that prompts take, which a plan's bill is split by."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.core.plans import Plan, plan
from advisor.core.workload import Length, Limits, PlanRequest, Workload
from tests.core.profiles import device, model


def saturated(prompt: float, output: float) -> Plan:
    workload = Workload(Length(prompt), Length(output), saturate=True)
    limits = Limits(tensor_parallel=(1,), replicas=(1,))
    return plan(PlanRequest(model("llama-3.1-8b"), (device("h100"),), workload, limits=limits))


def share(prompt: float, output: float) -> float:
    written = saturated(prompt, output).as_dict()["candidates"][0]
    return float(written["bottleneck"]["prefill_time_share"])


def test_it_rises_with_prompts_and_falls_with_outputs():
    rising = [share(prompt, 200) for prompt in (50, 500, 2000, 8000)]
    assert rising == sorted(rising)
    falling = [share(1000, output) for output in (2, 50, 400, 2000)]
    assert falling == sorted(falling, reverse=True)
    assert rising[0] < 0.2 < 0.8 < falling[0]


def test_without_a_second_token_prompts_take_all_of_it():
    assert share(1000, 1) == 1


@pytest.mark.parametrize(("prompt", "output"), [(200, 500), (1000, 200), (4000, 100)])
def test_prompts_and_decode_steps_add_up_to_the_time_of_a_request(prompt: float, output: float):
    # A replica that never rests spends S(n) / n on each request with n in service.
    evaluator = saturated(prompt, output).evaluator
    n = np.array([4, 16, 64])
    layout = np.zeros(3, dtype=np.int64)
    table = evaluator.curves.table(64, slice(0, 1))
    part = evaluator.curves.prompt_share(layout, n, output - 1)
    prompts = table.prompt_load[0, n - 1]
    spent = table.service[0, n - 1] / n
    assert prompts / part == pytest.approx(spent, rel=0.1)
