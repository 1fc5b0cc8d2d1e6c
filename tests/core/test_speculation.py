"""Speculative decoding: its published speed-up where reading weights is all, and its price where
computing is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.core.errors import InvalidInput
from advisor.core.steps import StepModel
from advisor.core.workload import Length, Speculation
from tests.core.profiles import IDEAL, answer, device, layout, model, planned, workload

ONE = {"tensor_parallel": (1,), "replicas": (1,)}
WIDE = replace(device("h100"), efficiency=IDEAL, dense_tflops={"bf16": 1e6})
"""A device that computes at no cost: a step is what it reads."""


def spoken(draft_tokens, acceptance_rate, draft_cost=0.0):
    return {"speculative": Speculation(draft_tokens, acceptance_rate, draft_cost)}


def mean_tpot(load, on="h100", serving=None, **fields):
    found = planned(on=on, load=load, limits=ONE, serving=serving or {}, **fields)
    return found.candidates.served.latency["tpot"].mean[0]


@pytest.mark.parametrize("accepted", [0.0, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("drafts", [1, 3, 7])
def test_a_step_gains_as_many_tokens_as_sampled(accepted, drafts):
    random = np.random.default_rng(4)
    right = random.random((200_000, drafts)) < accepted
    gained = 1 + np.cumprod(right, axis=1).sum(axis=1)
    speculation = Speculation(drafts, accepted)
    assert speculation.tokens_per_step == pytest.approx(gained.mean(), rel=5e-3)
    assert speculation.squared_cv == pytest.approx(gained.var() / gained.mean() ** 2, abs=5e-3)


@pytest.mark.parametrize(
    ("drafts", "accepted", "cost"), [(7, 0.75, 0.02), (3, 0.6, 0.05), (5, 0.8, 0.0), (4, 0.5, 0.2)]
)
def test_one_stream_that_only_reads_is_faster_as_published(drafts, accepted, cost):
    """(1 - a^(g + 1)) / ((1 - a) (g c + 1)): Leviathan et al. 2023, theorem 3.8. With T5-small for
    T5-XXL (a = 0.75, g = 7, c = 0.02) that is 3.2; they measured 3.4."""
    load = workload(100, 200, concurrency=1)
    plain = mean_tpot(load, WIDE)
    drafted = mean_tpot(load, WIDE, spoken(drafts, accepted, cost))
    expected = (1 - accepted ** (drafts + 1)) / ((1 - accepted) * (drafts * cost + 1))
    assert plain / drafted == pytest.approx(expected, rel=0.02)


def test_where_computing_is_the_limit_drafts_cost_throughput():
    load = workload(100, 400, saturate=True)
    slow = replace(device("h100"), efficiency=IDEAL, dense_tflops={"bf16": 50.0})
    plain, drafted = (
        planned(on=slow, load=load, limits=ONE, serving=each).candidates.served.saturation[0]
        for each in (spoken(0, 0.0), spoken(6, 0.6))
    )
    assert drafted < 0.6 * plain


def test_drafts_that_are_never_accepted_only_cost():
    load = workload(500, 200, request_rate_per_s=3.0)
    assert mean_tpot(load, serving=spoken(4, 0.0, 0.05)) > mean_tpot(load) * 1.1


def test_no_gap_is_shorter_than_reading_the_weights_over_the_tokens_gained():
    of, on = model("llama-3.1-8b"), layout("h100")
    one, context = np.ones((1, 1)), np.full((1, 1), 600.0)
    plain, drafted = (
        StepModel(of, [on], "vllm", speculation).floor(one, context).item()
        for speculation in (Speculation(), Speculation(4, 0.9))
    )
    assert drafted == pytest.approx(plain / Speculation(4, 0.9).tokens_per_step)
    load = workload(500, 200, concurrency=1)
    assert mean_tpot(load, serving=spoken(4, 0.9)) >= drafted


@pytest.mark.parametrize(
    "load", [{"request_rate_per_s": 4.0}, {"concurrency": 8}, {"saturate": True}]
)
def test_tokens_that_come_together_have_no_gap_between_them(load):
    plan = planned(load=workload(1000, 250, **load), limits=ONE, serving=spoken(3, 0.9))
    latency = plan.candidates.served.latency
    assert latency["itl"].mean[0] == latency["tpot"].mean[0]
    assert latency["itl"].at("p50")[0] == 0.0
    assert latency["itl"].at("p95")[0] > 2 * latency["tpot"].mean[0]
    for each in latency.values():
        row = each.quantiles[0]
        assert np.isnan(row).all() or (np.diff(row) >= 0).all()


@pytest.mark.parametrize("rate_per_s", [2.0, 2.2, 2.4])
def test_for_a_slot_one_waits_as_behind_answers_of_as_many_steps(rate_per_s):
    """Three tokens a step: 301 are decoded in the steps of 101, at the same share of capacity."""

    def served(outputs, rate, **serving):
        load = workload(8000, Length(outputs, 3 * outputs), request_rate_per_s=rate)
        found = planned(load=load, limits=ONE, serving={"max_num_seqs": 8, **serving})
        return found.candidates.served

    drafted = served(301, rate_per_s, **spoken(2, 1.0))
    busier = drafted.utilization[0] / served(101, rate_per_s).utilization[0]
    plain = served(101, rate_per_s * busier)
    assert drafted.latency["ttft"].mean[0] > 1.5 * served(101, 1.0).latency["ttft"].mean[0]
    for found in ("mean", "p95"):
        given, expected = (each.latency["ttft"].at(found)[0] for each in (drafted, plain))
        assert given == pytest.approx(expected, rel=0.015)


def test_a_burst_cannot_be_simulated_and_a_check_says_that_it_was_not():
    with pytest.raises(InvalidInput) as refusal:
        planned(load=workload(100, 20, concurrency=4, start="burst"), serving=spoken(3, 0.5))
    assert refusal.value.errors[0].pointer == "/workload/start"
    load = workload(1000, 250, request_rate_per_s=2.0)
    found = answer(load=load, limits=ONE, serving=spoken(3, 0.5), verify=True)
    assert found["candidates"][0]["verification"]["latency"] is None
    assert "not simulated" in found["candidates"][0]["verification"]["reason"]
    assert found["inputs"]["serving"]["speculative"] == {
        "draft_tokens": 3, "acceptance_rate": 0.5, "draft_cost": 0.0,
    }  # fmt: skip
    assert "speculation" in {each["code"] for each in found["assumptions"]}
