"""Static batches: beside a slower simulation, measured ones, and what continuous batching gains."""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest

from advisor.accuracy.closed_form import Refused, evaluator_of
from advisor.accuracy.rows import rows
from advisor.core.requests import Requests, sample_requests
from advisor.core.static_batching import StaticReplica, largest, simulate_static
from advisor.core.workload import Length, Workload
from tests.core.profiles import CONFIGS, answer, device, planned, workload
from tests.core.scalar import ScalarStep

ONE = {"tensor_parallel": (1,), "replicas": (1,)}
SPREADS = [Length(200), Length(200, 300), Length(200, 600)]


def replica(slots, budget=8192.0, front_end=0.0):
    evaluator = planned(load=workload(500, 200, saturate=True), limits=ONE).evaluator
    return StaticReplica(evaluator.steps.step_function(0), slots, budget, front_end)


@pytest.mark.parametrize("length", SPREADS)
@pytest.mark.parametrize("count", [1, 8, 200])
def test_the_longest_of_a_batch_is_that_of_draws(length, count):
    random = np.random.default_rng(4)
    drawn = length.mean * np.exp(
        length.components[0].sigma * random.standard_normal((1_600_000 // count, count))
        - length.components[0].sigma ** 2 / 2
    )
    for power in (1, 2):
        expected = (drawn.max(axis=1) ** power).mean()
        assert largest(length, count, power) == pytest.approx(expected, rel=0.02)


def test_the_longest_of_a_mixture_is_that_of_draws():
    """Nine of ten answers have 100 tokens, the others 1,000 around a log-normal."""
    length = Length.mixed([(0.9, Length(100)), (0.1, Length(1000, 2000))])
    random, count = np.random.default_rng(5), 8
    long = Length(1000, 2000).components[0]
    drawn = np.exp(long.sigma * random.standard_normal((200_000, count)) - long.sigma**2 / 2)
    drawn = np.where(random.random(drawn.shape) < 0.9, 100, 1000 * drawn)
    assert largest(length, count) == pytest.approx(drawn.max(axis=1).mean(), rel=0.01)
    assert largest(Length.histogram([10, 30], [3, 1]), 2) == 30 - 20 * 0.75**2


@pytest.mark.parametrize("outputs", SPREADS)
@pytest.mark.parametrize("slots", [4, 64])
def test_full_batches_serve_as_many_as_simulated(outputs, slots):
    count = 45_000 // slots * slots
    load = workload(Length(500, 1000), outputs, concurrency=count)
    requests = sample_requests(load, count, np.random.default_rng(1))
    of = replica(slots)
    run = simulate_static(of, requests)
    served = len(requests) / run.done_s.max()
    assert of.saturation(load) == pytest.approx(served, rel=0.03)


def step_by_step(requests, slots, front_end):
    """Batches of an 8B on recounted step times, one step after the other, prompts in one step."""
    step = ScalarStep(CONFIGS["llama-3.1-8b"], device("h100"), "vllm", 1, "bf16").seconds
    ready = (requests.sent_s + front_end).tolist()
    first: dict[int, float] = {}
    done: dict[int, float] = {}
    now, begun = 0.0, 0
    while begun < len(ready):
        now = max(now, ready[begun])
        batch = [i for i in range(begun, len(ready)) if ready[i] <= now][:slots]
        begun += len(batch)
        prompts = [int(requests.input_tokens[i]) for i in batch]
        now += step(0, 0, sum(prompts), sum(p * (p + 1) / 2 for p in prompts), 0, len(batch))
        left = {i: int(requests.output_tokens[i]) - 1 for i in batch}
        first |= dict.fromkeys(batch, now)
        done |= {i: now for i, tokens in left.items() if not tokens}
        for k in range(1, max(left.values()) + 1):
            now += step(len(batch), sum(prompts) / len(batch) + k, 0, 0, 0, 0)
            done |= {i: now for i, tokens in left.items() if tokens == k}
    return np.array([[first[i], done[i]] for i in range(len(ready))]).T


def test_batches_end_when_a_simulation_step_by_step_has_them():
    load = workload(Length(300, 600), Length(40, 120), request_rate_per_s=6.0)
    requests = sample_requests(load, 60, np.random.default_rng(2))
    run = simulate_static(replica(8, front_end=0.02), requests)
    first, done = step_by_step(requests, 8, 0.02)
    np.testing.assert_allclose(run.first_token_s, first, rtol=1e-8)
    np.testing.assert_allclose(run.done_s, done, rtol=1e-8)


def test_clients_send_when_they_are_answered_and_wait_for_the_batch_to_end():
    """Steps of a second: of two clients the one with a short answer sends again at 2 s, and begins
    when the long one has ended, at 5 s."""
    ones = np.ones(3, dtype=np.int64)
    outputs = np.array([2, 5, 1], dtype=np.int64)
    of = StaticReplica(lambda *_: 1.0, 4, 100)
    run = simulate_static(of, Requests(ones, ones, outputs, concurrency=2))
    assert run.sent_s.tolist() == [0, 0, 2]
    assert run.first_token_s.tolist() == [1, 1, 6]
    assert run.done_s.tolist() == [2, 5, 6]


def test_measured_static_batches_take_as_long():
    """Dense models of fixed lengths in public benchmarks, end to end: as far off as steps are."""
    errors = []
    for row in rows():
        if row.load != "static_batch" or not row.measured.get("e2e_mean_ms"):
            continue
        try:
            evaluator = evaluator_of(row)
        except Refused:
            continue
        batch = int(row.concurrency or 1)
        budget = float(evaluator.batched_tokens[0, 0])
        of = StaticReplica(evaluator.steps.step_function(0), batch, budget)
        load = Workload(Length(row.input_tokens), Length(row.output_tokens), saturate=True)
        found = batch / of.saturation(load) * 1e3
        errors.append(abs(found / row.measured["e2e_mean_ms"] - 1))
    assert len(errors) > 30
    assert median(errors) < 0.15


def test_continuous_batching_gains_where_lengths_vary():
    """Orca, and others since, measured no gain at equal lengths and up to many times as much where
    answers of a batch differ: the longest of hundreds is several times the mean."""
    gains = []
    for outputs in SPREADS:
        found = answer(load=workload(500, outputs, saturate=True), limits=ONE)
        continuous, static = found["continuous_vs_static"]
        assert (continuous["batching"], static["batching"]) == ("continuous", "static")
        assert static["slots"] <= continuous["slots"]
        rates = [one["saturation_output_tokens_per_s"] for one in (continuous, static)]
        gains.append(rates[0] / rates[1])
    assert 0.9 < gains[0] < 1.2
    assert 1.5 < gains[1] < gains[2] < 23
    assert gains[2] > 5


@pytest.mark.parametrize(
    "load",
    [
        workload(500, Length(200, 600), request_rate_per_s=2.0),
        workload(500, Length(200, 600), concurrency=64),
        workload(500, Length(200, 600), saturate=True),
    ],
)
def test_latencies_of_static_batches_are_simulated_where_asked_for(load):
    plain, verified = (
        answer(load=load, limits=ONE, verify=flag)["continuous_vs_static"][1]
        for flag in (False, True)
    )
    keys = [f"{metric}_p95_ms" for metric in ("ttft", "tpot", "e2e")]
    assert [plain[key] for key in keys] == [None] * 3
    assert verified | dict.fromkeys(keys) == plain
    continuous = answer(load=load, limits=ONE)["continuous_vs_static"][0]
    assert verified["tpot_p95_ms"] > 0
    if load.saturate:
        assert verified["ttft_p95_ms"] is verified["e2e_p95_ms"] is None
    else:
        assert verified["ttft_p95_ms"] > 5 * continuous["ttft_p95_ms"]
        assert verified["e2e_p95_ms"] > continuous["e2e_p95_ms"]


def test_what_static_batches_cannot_hold_is_unstable_and_has_no_latency():
    load = workload(500, Length(200, 600), request_rate_per_s=15.0)
    continuous, static = answer(load=load, limits=ONE, verify=True)["continuous_vs_static"]
    assert continuous["verdict"] == "stable"
    assert static["verdict"] == "unstable"
    assert static["utilization"] > 1
    assert static["ttft_p95_ms"] is static["e2e_p95_ms"] is None


def test_equal_answers_of_one_client_are_no_other_in_static_batches():
    load = workload(500, 200, concurrency=1)
    continuous, static = answer(load=load, limits=ONE, verify=True)["continuous_vs_static"]
    assert static["e2e_p95_ms"] == pytest.approx(continuous["e2e_p95_ms"], rel=0.01)
