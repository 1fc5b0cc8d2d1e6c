"""Traces: what is measured of them beside what they were drawn from, and their replay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.core import verification
from advisor.core.errors import InvalidInput
from advisor.core.requests import sample_requests
from advisor.core.simulator import simulate
from advisor.core.trace import Trace
from advisor.core.verification import Work, simulate_steady
from advisor.core.workload import MAX_P95_TO_MEAN, Length, Speculation
from tests.core.profiles import answer, planned, workload

ONE = {"tensor_parallel": (1,), "replicas": (1,)}


def drawn(count=3000, seed=1, **load):
    load = {"request_rate_per_s": 5.0} | load
    mix = workload(Length(1000, 2500), Length(200, 500), **load)
    return of(sample_requests(mix, count, np.random.default_rng(seed)))


def of(requests):
    assert requests.sent_s is not None
    columns = (requests.sent_s, requests.input_tokens, requests.output_tokens)
    return Trace(*(tuple(column.tolist()) for column in columns))


def joined(*traces):
    """One after the other."""
    begins = np.cumsum([0.0, *(each.sent_s[-1] for each in traces)])
    sent_s = [at + begin for each, begin in zip(traces, begins, strict=False) for at in each.sent_s]
    columns = [sum((getattr(t, n) for t in traces), ()) for n in ("input_tokens", "output_tokens")]
    return Trace(tuple(sent_s), *columns)


# What is measured


@pytest.mark.parametrize("cv", [0.0, 0.5, 1.0, 2.0])
def test_what_was_drawn_is_measured(cv):
    trace = drawn(20_000, arrival_cv=cv)
    load = trace.workload()
    assert load.request_rate_per_s == pytest.approx(5, rel=0.03)
    assert load.arrival_cv == pytest.approx(cv, rel=0.05, abs=1e-6)
    assert load.peak_to_mean == pytest.approx(1, abs=0.06)
    assert load.input_tokens.mean == pytest.approx(1000, rel=0.03)
    assert load.input_tokens.p95 == pytest.approx(2500, rel=0.04)
    assert load.output_tokens.mean == pytest.approx(200, rel=0.03)
    assert load.output_tokens.p95 == pytest.approx(500, rel=0.04)
    assert load.longest == max(np.add(trace.input_tokens, trace.output_tokens))


def test_chance_makes_no_peak():
    """The fullest tenth of a Poisson stream of 500 requests has 22 % more than the mean one."""
    peaks = [drawn(500, seed).peak_to_mean for seed in range(40)]
    fullest = [np.bincount(drawn(500, seed)._part).max() / 50 for seed in range(40)]
    assert np.mean(fullest) > 1.18
    assert np.mean(peaks) < 1.06


def test_a_rush_hour_is_the_peak_and_no_burstiness():
    """Ten times as many for a tenth of the time, at random within it and without."""
    quiet, rush = drawn(900, 2, request_rate_per_s=1.0), drawn(1000, 3, request_rate_per_s=10.0)
    trace = joined(quiet, rush)
    load = trace.workload()
    assert load.peak_to_mean == pytest.approx(1000 / 190, rel=0.1)
    assert load.arrival_cv == pytest.approx(1, abs=0.15)
    between = np.diff(trace.sent_s)
    assert between.std() / between.mean() > 1.25


def test_lengths_no_log_normal_has_take_the_nearest_and_are_warned_of():
    trace = drawn(200)
    rare = replace(trace, output_tokens=(10,) * 195 + (4000,) * 5)
    load = rare.workload()
    assert load.output_tokens.p95 == pytest.approx(load.output_tokens.mean * 1.001)
    codes = [each["code"] for each in answer(load=load, limits=ONE)["warnings"]]
    assert codes == ["trace_lengths_not_log_normal"]
    assert answer(load=trace.workload(), limits=ONE)["warnings"] == []
    spread = replace(trace, output_tokens=(10,) * 180 + (4000,) * 20).workload().output_tokens
    assert spread.p95 == pytest.approx(MAX_P95_TO_MEAN * spread.mean)
    assert replace(trace, output_tokens=(7,) * 200).workload().output_tokens == Length(7)


def test_the_busiest_part_is_that_of_least_time():
    trace = joined(drawn(300, 1), drawn(200, 2, request_rate_per_s=50.0), drawn(300, 3))
    part = trace.busiest(150)
    assert len(part) == 150
    assert part.duration_s < 150 / 40
    starts = [trace.sent_s[i + 149] - trace.sent_s[i] for i in range(651)]
    assert part.duration_s == min(starts)
    assert trace.busiest(800) == trace


# The replay


def test_one_replica_replays_the_requests_as_they_are():
    trace = drawn(300)
    plan = planned(load=trace.workload(prefix_cache_hit=0.25), limits=ONE)
    replica = verification._replica(plan.evaluator, 0)
    run = simulate(replica, trace.requests(0.25))
    found = simulate_steady(plan.evaluator, 0, 1, plan.candidates.served, Work(1e6))
    assert found.requests == 300
    served = found.served
    assert served is not None
    for name in ("ttft", "tpot", "e2e"):
        assert served.latency[name].mean[0] == pytest.approx(np.nanmean(getattr(run, name)))
        assert served.latency[name].at("p95")[0] == pytest.approx(
            np.nanquantile(getattr(run, name), 0.95)
        )
    tokens = sum(trace.output_tokens) / run.duration
    rate = served.requests_per_s[0] * np.mean(trace.output_tokens)
    assert rate == pytest.approx(tokens, rel=1e-3)
    assert served.concurrency[0] == pytest.approx(run.concurrency, rel=1e-3)


@pytest.mark.parametrize("routing", ["random", "least_loaded"])
def test_a_steady_trace_is_replayed_as_the_closed_form_says(routing):
    load = drawn(4000, request_rate_per_s=30.0).workload()
    limits = {"tensor_parallel": (1,), "replicas": (3,)}
    found = answer(load=load, limits=limits, serving={"routing": routing})
    checked = found["recommended"]["verification"]
    assert checked["requests"] == 4000
    # The peak that is taken, and its mean rate, differ by what chance leaves.
    assert load.peak_to_mean < 1.05
    for metric in ("ttft", "tpot", "e2e"):
        assert checked["agreement"][metric]["mean"] == pytest.approx(1, abs=0.08)
    assert found["trace"]["requests"] == 4000
    assert found["trace"]["request_rate_per_s"] == pytest.approx(load.request_rate_per_s, rel=1e-5)


def test_a_rush_shows_in_the_replay_and_at_the_peak_of_the_closed_form():
    """At the mean rate nobody waits for long; the closed form is that of the rush."""
    rush = drawn(3000, 3, request_rate_per_s=16.0)
    trace = joined(drawn(800, 2, request_rate_per_s=2.0), rush)
    found = answer(load=trace.workload(), limits=ONE, slo={"e2e_p95_ms": 60_000})
    one = found["recommended"]
    mean_alone = answer(
        load=replace(trace.workload(), peak_to_mean=1.0, trace=None), limits=ONE
    )["recommended"]["latency"]["tpot_ms"]["p95"]  # fmt: skip
    replayed = one["verification"]["latency"]["tpot_ms"]["p95"]
    assert mean_alone < 0.9 * replayed
    assert one["latency"]["tpot_ms"]["p95"] == pytest.approx(replayed, rel=0.15)


def test_the_recommended_plan_and_some_of_the_front_are_replayed():
    found = answer(on="h100", load=drawn(400).workload())
    assert found["recommended"]["verification"]["requests"] == 400
    shown = [*found["pareto"], *found["candidates"]]
    replayed = {str(one) for one in shown if one["verification"]}
    assert 1 < len(replayed) <= verification.MOST_REPLAYED
    assert "trace" in {each["code"] for each in found["assumptions"]}


def test_a_trace_beyond_a_plans_saturation_has_a_replay_but_no_closed_form():
    found = answer(load=drawn(1500, request_rate_per_s=80.0).workload(), limits=ONE)
    nearest = found["nearest"]
    assert nearest["load"]["verdict"] == "unstable"
    assert nearest["latency"]["ttft_ms"]["p95"] is None
    assert nearest["verification"]["latency"]["ttft_ms"]["p95"] > 1000


def test_a_missed_slo_is_warned_of_and_a_figure_at_another_rate_is_not():
    """Of a rush the median of the whole time is below that of the peak; prompts that are longer
    than any log-normal of their p95 has make the slowest first tokens later."""
    trace = joined(*(drawn(600, seed, request_rate_per_s=r) for seed, r in ((2, 2.0), (3, 16.0))))
    longer = tuple(8000 if i % 40 == 0 else 800 for i in range(1200))
    load = replace(trace, input_tokens=longer).workload()
    plain = answer(load=load, limits=ONE, slo={"tpot_p50_ms": 1e6})
    assert {each["code"] for each in plain["warnings"]} == {"trace_lengths_not_log_normal"}
    pair = plain["recommended"], plain["recommended"]["verification"]
    closed, replayed = (each["latency"]["tpot_ms"]["p50"] for each in pair)
    assert closed > 1.2 * replayed
    closed, replayed = (each["latency"]["ttft_ms"]["p99"] for each in pair)
    limit = (closed + replayed) / 2
    assert closed < limit
    found = answer(load=load, limits=ONE, slo={"ttft_p99_ms": limit})
    codes = [each["code"] for each in found["warnings"]]
    assert codes == ["trace_lengths_not_log_normal", "simulation_misses_slo"]


@pytest.mark.parametrize(
    ("serving", "pointer"),
    [
        ({"router_efficiency": 0.9}, "/serving/router_efficiency"),
        ({"speculative": "drafts"}, "/serving/speculative"),
    ],
)
def test_what_cannot_be_replayed_is_refused(serving, pointer):
    serving = {k: Speculation(3, 0.7, 0.1) if v == "drafts" else v for k, v in serving.items()}
    with pytest.raises(InvalidInput) as refused:
        answer(load=drawn(100).workload(), serving=serving)
    assert [each.pointer for each in refused.value.errors] == [pointer]


def test_a_request_of_the_trace_beyond_the_context_is_refused():
    trace = replace(drawn(100), input_tokens=(200_000,) + (100,) * 99)
    with pytest.raises(InvalidInput, match="context"):
        answer(load=trace.workload())
