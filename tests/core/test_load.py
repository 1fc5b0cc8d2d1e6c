"""Plans under a load: what holds for any model on any accelerator."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from advisor.core.coefficients import coefficient, coefficient_names
from advisor.core.steps import StepModel
from advisor.core.workload import BURSTIEST_MODELLED, Length
from tests.core.profiles import IDEAL, answer, device, layout, model, planned, workload
from tests.core.strategies import examples, lengths, served_layouts, spread, workloads

ROOMY = {"max_num_seqs": 256}
"""Fewer sequences than any engine's token budget, so that a step has room for prompts."""
MEAN_DIP, PERCENTILE_DIP = 0.02, 0.05
"""How far a closed form may fall where one regime takes over from another."""
STATISTICS = ("mean", "p50", "p95", "p99")
ONE = {"replicas": (1,), "tensor_parallel": (1,)}


def of_layout(served, load, replicas=(1,), **fields):
    """The plan of one layout at these numbers of replicas, rows in their order."""
    of, on = served
    fields.setdefault("serving", ROOMY)
    split = on.split
    limits = {
        "replicas": replicas,
        "tensor_parallel": (split.tensor_parallel,),
        "pipeline_parallel": (split.pipeline_parallel,),
        "expert_parallel": (split.expert_parallel,),
        "max_accelerators": 10**6,
    }
    return planned(
        of, (on.hardware,), load, limits, objective="latency",
        weights=(split.weights,), kv_cache=(split.kv_cache,), **fields,
    )  # fmt: skip


def saturation(served, load):
    """Requests a second that one replica serves, or None where the model does not fit."""
    plan = of_layout(served, replace(load, request_rate_per_s=None, saturate=True))
    return plan.evaluator.saturation[0] if len(plan.candidates) else None


def under(served, load, utilization, **changes):
    """The load at a share of what one replica serves."""
    most = saturation(served, load)
    if most is None:
        reject()
    return replace(load, request_rate_per_s=float(utilization * most), saturate=False, **changes)


def milliseconds(plan, metric, statistic):
    return plan.candidates.served.latency[metric].at(statistic) * 1e3


def ordered(values, slack=1e-9):
    """Whether values never fall, but for rounding."""
    values = np.asarray(values)
    return bool((values[1:] >= values[:-1] * (1 - slack)).all())


loads = st.floats(0.01, 0.97)
any_load = st.one_of(
    st.builds(lambda part: ("open", part), st.floats(0.001, 0.999)),
    st.builds(lambda clients: ("closed", clients), st.integers(1, 3000)),
    st.just(("saturated", None)),
)


def loaded(served, load, kind):
    name, amount = kind
    if name == "open":
        return under(served, load, amount)
    if name == "closed":
        return replace(load, concurrency=amount)
    return replace(load, saturate=True)


@examples(35)
@given(served_layouts(deepest=2), workloads(saturate=True), any_load, st.integers(1, 9))
def test_no_latency_is_below_its_floor(served, load, kind, replicas):
    of, on = served
    load = loaded(served, replace(load, saturate=False), kind)
    plan = of_layout(served, load, replicas=(replicas,))
    assume(len(plan.candidates))
    steps = StepModel(of, [on], "vllm")
    floor = steps.floor(np.ones((1, 1)), np.array([[load.shared_tokens]])).item() * 1e3
    for statistic in STATISTICS:
        for metric in ("tpot", "itl"):
            value = milliseconds(plan, metric, statistic)[0]
            assert np.isnan(value) or value >= floor * (1 - 1e-9)
        front_end = plan.evaluator.front_end[0] * 1e3
        value = milliseconds(plan, "ttft", statistic)[0]
        assert np.isnan(value) or value >= front_end * (1 - 1e-9)


@examples(18)
@given(served_layouts(deepest=2), workloads(saturate=True), st.sampled_from([1.0, 1.2, 2.0, None]))
def test_no_replica_does_more_work_than_its_peak(served, load, outputs):
    """Every new token is multiplied with the body of the model, at most at the fastest peak."""
    of, on = served
    load = load if outputs is None else replace(load, output_tokens=Length(outputs))
    most = saturation(served, load)
    assume(most is not None)
    shape = of.architecture
    body = shape.matmul_parameters - shape.hidden_size * shape.vocab_size
    tokens = load.new_input_tokens + load.output_tokens.mean - 1
    peak = max(on.hardware.dense_tflops.values()) * 1e12 * on.split.accelerators
    assert most * tokens * 2 * body <= peak * (1 + 1e-9)


@examples(35)
@given(served_layouts(deepest=2), workloads(saturate=True), any_load, st.integers(1, 9))
def test_percentiles_rise_and_the_mean_is_above_the_least_of_them(served, load, kind, replicas):
    load = loaded(served, replace(load, saturate=False), kind)
    plan = of_layout(served, load, replicas=(replicas,))
    assume(len(plan.candidates))
    for latency in plan.candidates.served.latency.values():
        if np.isnan(latency.mean[0]):
            assert np.isnan(latency.quantiles).all()
            continue
        assert np.isfinite(latency.quantiles).all()
        assert ordered(latency.quantiles[0])
        assert latency.quantiles[0, 0] * (1 - PERCENTILE_DIP) <= latency.mean[0]


@examples(35)
@given(served_layouts(deepest=2), workloads(saturate=True), any_load, st.integers(1, 9))
def test_end_to_end_is_first_token_and_gaps_and_concurrency_is_littles(
    served, load, kind, replicas
):
    assume(kind[0] != "saturated")
    load = loaded(served, replace(load, saturate=False), kind)
    plan = of_layout(served, load, replicas=(replicas,))
    assume(len(plan.candidates))
    answer = plan.candidates.served
    gaps = load.output_tokens.mean - 1
    itl = answer.latency["itl"].mean[0] if gaps else 0.0
    assert answer.latency["e2e"].mean[0] == pytest.approx(
        answer.latency["ttft"].mean[0] + gaps * itl, rel=1e-9
    )
    assert answer.concurrency[0] == pytest.approx(
        answer.requests_per_s[0] * answer.latency["e2e"].mean[0], rel=1e-9
    )
    assert answer.in_service[0] * replicas <= answer.concurrency[0] * (1 + 0.1) + replicas


def dip(statistic):
    return MEAN_DIP if statistic == "mean" else PERCENTILE_DIP


def assert_more_load_never_helps(served, load, replicas, statistics):
    base = replace(load, saturate=False)
    points = [0.01, 0.2, 0.5, 0.8, 0.9, 0.95, 0.97, 0.99]
    plans = [
        of_layout(served, under(served, base, part * replicas), (replicas,)) for part in points
    ]
    for metric in ("ttft", "e2e"):
        for statistic in statistics:
            values = [milliseconds(plan, metric, statistic)[0] for plan in plans]
            assert ordered(values, dip(statistic)), (metric, statistic, values)


def assert_more_replicas_never_hurt(served, load, amount, statistics):
    load = under(served, replace(load, saturate=False), amount)
    counts = tuple(range(int(amount + 0.01) + 1, int(amount + 0.01) + 12))
    plan = of_layout(served, load, counts)
    for metric in ("ttft", "e2e"):
        for statistic in statistics:
            values = milliseconds(plan, metric, statistic)[::-1]
            assert ordered(values, dip(statistic)), (metric, statistic, values)


@examples(18)
@given(
    served_layouts(deepest=1),
    workloads(most_cv=BURSTIEST_MODELLED, saturate=True),
    st.integers(1, 5),
)
def test_more_load_never_lowers_the_mean_ttft_or_e2e(served, load, replicas):
    assert_more_load_never_helps(served, load, replicas, ["mean"])


@examples(18)
@given(
    served_layouts(deepest=1),
    workloads(most_cv=BURSTIEST_MODELLED, saturate=True),
    st.integers(1, 5),
)
def test_more_load_never_lowers_a_percentile_of_ttft_or_e2e(served, load, replicas):
    assert_more_load_never_helps(served, load, replicas, STATISTICS[1:])


@examples(18)
@given(
    served_layouts(deepest=1),
    workloads(most_cv=BURSTIEST_MODELLED, saturate=True),
    st.floats(0.5, 6),
)
def test_more_replicas_never_lengthen_the_mean_ttft_or_e2e(served, load, amount):
    assert_more_replicas_never_hurt(served, load, amount, ["mean"])


@examples(18)
@given(
    served_layouts(deepest=1),
    workloads(most_cv=BURSTIEST_MODELLED, saturate=True),
    st.floats(0.5, 6),
)
def test_more_replicas_never_lengthen_a_percentile_of_ttft_or_e2e(served, load, amount):
    assert_more_replicas_never_hurt(served, load, amount, STATISTICS[1:])


@pytest.mark.parametrize("stages", [2, 4])
@pytest.mark.parametrize(
    ("of", "inputs", "outputs"), [("llama-3.1-70b", 2000, 200), ("llama-3.1-8b", 1000, 100)]
)
def test_a_pipeline_is_slower_under_more_load(of, inputs, outputs, stages):
    served = model(of), layout("h100", tensor_parallel=8, pipeline_parallel=stages)
    most = saturation(served, workload(inputs, outputs))
    plans = [
        of_layout(served, workload(inputs, outputs, request_rate_per_s=float(part * most)))
        for part in (0.01, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97)
    ]
    for metric in ("ttft", "tpot", "e2e"):
        for statistic in ("mean", "p95"):
            values = [milliseconds(plan, metric, statistic)[0] for plan in plans]
            assert ordered(values, dip(statistic)), (metric, statistic, values)


@examples(18)
@given(served_layouts(deepest=1), workloads(saturate=True), loads, st.booleans())
def test_longer_inputs_or_outputs_never_shorten_the_mean_request(served, load, part, inputs):
    """Unless arrivals burst: then those of short outputs are not said to be faster."""
    base = replace(load, saturate=False, arrival_cv=min(load.arrival_cv, 1.0))
    factors = (1.0, 1.5, 3.0)
    longer = [
        replace(base, **{
            "input_tokens" if inputs else "output_tokens": stretched(
                base.input_tokens if inputs else base.output_tokens, factor
            )
        })
        for factor in factors
    ]  # fmt: skip
    rate = under(served, longer[-1], part).request_rate_per_s
    plans = [of_layout(served, replace(each, request_rate_per_s=rate)) for each in longer]
    values = [milliseconds(plan, "e2e", "mean")[0] for plan in plans]
    assert ordered(values, MEAN_DIP), values


def stretched(length, factor):
    return Length(length.mean * factor, None if length.p95 is None else length.p95 * factor)


@examples(18)
@given(served_layouts(deepest=2), lengths(50, 4000), lengths(20, 1000), st.floats(0.3, 0.97))
def test_more_variance_never_shortens_the_mean_wait(served, inputs, outputs, part):
    """At the same means: arrivals burst more, or lengths spread more."""
    base = workload(Length(inputs.mean), Length(outputs.mean))
    rate = under(served, base, part).request_rate_per_s
    steady = replace(base, request_rate_per_s=rate)
    uneven = [replace(steady, arrival_cv=cv) for cv in (0.0, 0.5, 1.0, 2.0, 10.0)]
    values = [milliseconds(of_layout(served, each), "ttft", "mean")[0] for each in uneven]
    assert ordered(values), values
    spread_out = [
        replace(steady, input_tokens=Length(inputs.mean, p95))
        for p95 in (None, inputs.mean * 1.2, inputs.mean * 2, inputs.mean * 3.5)
    ]
    values = [milliseconds(of_layout(served, each), "ttft", "mean")[0] for each in spread_out]
    # Attention's work grows with the square of a prompt: more spread may be more than is served.
    assert ordered([math.inf if math.isnan(each) else each for each in values]), values


@examples(30)
@given(served_layouts(deepest=1), spread(1, 4000), spread(2, 2000))
def test_departures_rise_with_the_batch_but_less_than_it(served, inputs, outputs):
    """With room in every step for all prompts, so that no chunk is cut anew."""
    load = workload(round(inputs), round(outputs), saturate=True)
    plan = of_layout(served, load, serving={"max_num_batched_tokens": 10**6, "max_num_seqs": 512})
    assume(len(plan.candidates))
    evaluator = plan.evaluator
    table = evaluator.curves.table(int(evaluator.slots[0]))
    rate = table.rate[0]
    assert ordered(rate)
    assert ordered((rate / np.arange(1, len(rate) + 1))[::-1])


@examples(18)
@given(
    served_layouts(deepest=2), workloads(saturate=True), any_load, st.sampled_from([0.25, 4.0, 100])
)
def test_a_machine_scaled_in_everything_is_slower_or_faster_by_that_factor(
    served, load, kind, factor
):
    of, on = served
    base = replace(load, saturate=False)
    if kind[0] == "open":
        small = under(served, base, kind[1])
        large = replace(small, request_rate_per_s=small.request_rate_per_s * factor)
    else:
        small = large = loaded(served, base, kind)
    scaled = replace(on, hardware=faster(on.hardware, factor))
    before = of_layout((of, replace(on, hardware=faster(on.hardware, 1.0))), small)
    after = of_layout((of, scaled), large)
    assume(len(before.candidates))
    for metric, latency in before.candidates.served.latency.items():
        theirs = after.candidates.served.latency[metric]
        np.testing.assert_allclose(theirs.mean * factor, latency.mean, rtol=1e-4)
        # Rounding may move a quantile from one number in service to the next.
        np.testing.assert_allclose(theirs.quantiles * factor, latency.quantiles, rtol=0.05)
    for name in ("requests_per_s", "saturation"):
        ours = getattr(before.candidates.served, name) * factor
        np.testing.assert_allclose(getattr(after.candidates.served, name), ours, rtol=1e-9)


def faster(device, factor):
    """The device with every rate times `factor`, and every fixed cost over it."""
    link = device.interconnect
    return replace(
        device,
        memory_bandwidth_gb_s=device.memory_bandwidth_gb_s * factor,
        dense_tflops={k: v * factor for k, v in device.dense_tflops.items()},
        interconnect=link and replace(
            link, bandwidth_gb_s_per_direction=link.bandwidth_gb_s_per_direction * factor
        ),
        network_gb_s_per_direction=device.network_gb_s_per_direction * factor,
        efficiency=dict(device.efficiency) | {
            name: coefficient(name, device, "vllm") / factor
            for name in coefficient_names()
            if name.endswith(("_us", "_ms"))
        },
    )  # fmt: skip


def test_an_unstable_plan_has_no_latency_but_its_true_batch():
    plan = planned(load=workload(1000, 250, request_rate_per_s=1000.0), limits=ONE)
    served = plan.candidates.served
    assert served.verdict[0] == "unstable"
    assert all(np.isnan(each.mean[0]) for each in served.latency.values())
    assert all(np.isnan(each.quantiles).all() for each in served.latency.values())
    assert served.in_service[0] == plan.evaluator.slots[0]
    assert served.requests_per_s[0] == plan.evaluator.saturation[0]


def test_one_client_alone_meets_no_queue():
    plan = planned(load=workload(1000, 250, concurrency=1), limits=ONE)
    served = plan.candidates.served
    steps = StepModel(plan.request.model, plan.evaluator.layouts, "vllm")
    columns = [np.array([[x]]) for x in (0.0, 1.0, 1000.0, 1000 * 1001 / 2, 0.0, 1.0)]
    alone = steps.times(*columns).total.item() + plan.evaluator.front_end[0]
    for statistic in STATISTICS:
        assert served.latency["ttft"].at(statistic)[0] == pytest.approx(alone, rel=0.15)
    assert served.latency["e2e"].mean[0] * served.requests_per_s[0] == pytest.approx(1)
    assert served.in_service[0] == pytest.approx(1)


@pytest.mark.parametrize("clients", [1, 2, 3, 4, 5, 7, 16, 100])
@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 7])
def test_clients_that_do_not_divide_over_replicas_still_wait_for_their_prompt(clients, replicas):
    limits = {"replicas": (replicas,), "tensor_parallel": (1,)}
    plan = planned(load=workload(1000, 250, concurrency=clients), limits=limits)
    least = planned(load=workload(1000, 250, concurrency=1), limits=ONE)
    for statistic in STATISTICS:
        alone = milliseconds(least, "ttft", statistic)[0]
        assert milliseconds(plan, "ttft", statistic)[0] >= alone * (1 - 1e-6)
    served = plan.candidates.served
    assert served.concurrency[0] == clients
    assert served.requests_per_s[0] <= served.saturation[0] * (1 + 1e-9)
    assert served.in_service[0] <= -(-clients // replicas)


@examples(18)
@given(served_layouts(deepest=1), workloads(saturate=True), st.integers(1, 4))
def test_more_clients_never_lower_throughput_or_latency(served, load, replicas):
    assume(saturation(served, replace(load, saturate=False)) is not None)
    assert_more_clients_never_help(served, load, replicas)


def test_more_clients_never_help_where_a_batch_reads_all_experts_anyway():
    """There a prompt adds less to a step than in a small batch, and less to others' waits."""
    bare = replace(device("a100"), memory_bandwidth_gb_s=200.0, efficiency=IDEAL)
    served = model("qwen3-30b-a3b"), layout(bare, weights="int4_awq", kv_cache="fp8")
    assert_more_clients_never_help(served, workload(7, 2), 2)


def assert_more_clients_never_help(served, load, replicas):
    base = replace(load, saturate=False)
    clients = [replicas * n for n in (1, 2, 4, 9, 30, 100, 400, 2000)]
    plans = [of_layout(served, replace(base, concurrency=n), (replicas,)) for n in clients]
    rates = [plan.candidates.served.requests_per_s[0] for plan in plans]
    times = [milliseconds(plan, "e2e", "mean")[0] for plan in plans]
    assert ordered(rates, 1e-3), rates
    assert ordered(times, 1e-3), times


def test_clients_beyond_the_slots_wait_for_one():
    """Throughput is at saturation, and the wait is that of the clients that have no slot."""
    plan = planned(load=workload(1000, 250, concurrency=5000), limits=ONE)
    served, slots = plan.candidates.served, plan.evaluator.slots[0]
    most = plan.evaluator.saturation[0]
    assert served.requests_per_s[0] == pytest.approx(most, rel=1e-9)
    assert served.latency["e2e"].mean[0] == pytest.approx(5000 / most, rel=1e-9)
    service = slots / most
    assert served.latency["ttft"].mean[0] >= 5000 / most - service
    assert served.in_service[0] == pytest.approx(slots)


def test_spreading_over_a_router_that_loses_capacity_lowers_the_saturation():
    whole, lossy = (
        planned(limits=ONE, serving={"router_efficiency": share}).candidates.served
        for share in (1.0, 0.8)
    )
    assert lossy.saturation[0] == pytest.approx(0.8 * whole.saturation[0])
    assert lossy.utilization[0] == pytest.approx(whole.utilization[0] / 0.8)


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_a_lossy_router_never_shortens_a_closed_loop(share):
    load = workload(1000, 250, concurrency=64)
    whole = planned(load=load, limits=ONE)
    lossy = planned(load=load, limits=ONE, serving={"router_efficiency": share})
    for metric in ("ttft", "tpot", "e2e"):
        better, worse = (milliseconds(plan, metric, "mean")[0] for plan in (whole, lossy))
        assert worse >= better * (1 - 1e-9)


def test_at_the_peak_rate_latency_is_that_of_the_peak():
    peak = planned(load=workload(1000, 250, request_rate_per_s=4.0, peak_to_mean=3.0), limits=ONE)
    mean = planned(load=workload(1000, 250, request_rate_per_s=12.0), limits=ONE)
    assert milliseconds(peak, "e2e", "p95") == pytest.approx(milliseconds(mean, "e2e", "p95"))
    assert peak.candidates.served.utilization == pytest.approx(mean.candidates.served.utilization)


@pytest.mark.parametrize(("inputs", "outputs"), [(2, 5), (3, 10), (100, 10)])
@pytest.mark.parametrize("part", [0.3, 0.6, 0.87])
def test_gaps_are_near_their_mean_when_every_step_computes_prompts(inputs, outputs, part):
    """Then all steps are much alike, and a median far from the mean is one of no step taken."""
    served = model("llama-3.1-70b"), layout("a100", tensor_parallel=4)
    load = under(served, workload(inputs, outputs), part)
    plan = of_layout(served, load)
    mean = milliseconds(plan, "tpot", "mean")[0]
    assert milliseconds(plan, "itl", "p50")[0] <= 1.3 * mean
    assert milliseconds(plan, "itl", "p95")[0] >= 0.9 * mean


@pytest.mark.parametrize("outputs", [1.1, 1.5, 1.9, 2, 3])
def test_a_fraction_of_a_gap_takes_no_less_than_a_whole_one(outputs):
    """Mean outputs may be any number; the time between two tokens is that of a step."""
    load = workload(1000, outputs, request_rate_per_s=0.01)
    plan = planned(load=load, limits=ONE)
    steps = StepModel(plan.request.model, plan.evaluator.layouts, "vllm")
    none = np.zeros((1, 1))
    step = steps.times(np.ones((1, 1)), np.array([[1000.0]]), none, none, none, none).total.item()
    assert milliseconds(plan, "tpot", "mean")[0] == pytest.approx(step * 1e3, rel=0.02)


@pytest.mark.parametrize("clients", [1, 8, 3000])
def test_clients_that_ask_for_one_token_have_a_latency(clients):
    plan = planned(load=workload(1000, 1, concurrency=clients), limits=ONE)
    served = plan.candidates.served
    assert np.isnan(served.latency["tpot"].mean[0])
    for metric in ("ttft", "e2e"):
        expected = clients / served.requests_per_s[0]
        assert served.latency[metric].mean[0] == pytest.approx(expected, rel=1e-9)
        assert np.isfinite(served.latency[metric].quantiles).all()


def test_arrivals_burstier_than_modelled_are_warned_of():
    load = workload(1000, 250, request_rate_per_s=2.0)
    for cv, codes in ((3.0, set()), (3.1, {"bursts_beyond_model"})):
        found = answer(load=replace(load, arrival_cv=cv), limits=ONE)
        assert {one["code"] for one in found["warnings"]} & {"bursts_beyond_model"} == codes


def test_bursts_fill_the_replica_more_than_steady_arrivals_do():
    """Requests that come together are served together, and each more slowly."""
    rates = {"request_rate_per_s": 12.0}
    steady, uneven = (
        planned(load=workload(1000, 250, arrival_cv=cv, **rates), limits=ONE) for cv in (1.0, 3.0)
    )
    for metric in ("ttft", "tpot", "e2e"):
        for statistic in ("mean", "p95"):
            before, after = (milliseconds(p, metric, statistic)[0] for p in (steady, uneven))
            assert after > before


def test_percentiles_rise_although_a_larger_batch_may_have_shorter_gaps():
    """Few gaps, prompts in bursts: where prompts begin to share steps, the mean gap falls."""
    ideal = replace(device("h100"), efficiency=IDEAL)
    served = model("gpt-oss-120b"), layout(ideal, tensor_parallel=2, weights="mxfp4")
    load = workload(50, 3, request_rate_per_s=30.0, arrival_cv=20.0)
    plan = of_layout(served, load, (1, 2, 4), serving={})
    for latency in plan.candidates.served.latency.values():
        for row in latency.quantiles:
            assert ordered(row)


@pytest.mark.parametrize("factor", [3.0, 7.0, 100.0])
def test_where_larger_batches_serve_no_more_the_gap_does_not_hang_on_rounding(factor):
    """At its peak rate a machine serves as many a second in a large batch as in a small one."""
    ideal = replace(device("h100"), efficiency=IDEAL)
    load = workload(1, 5, saturate=True)
    seconds = []
    for speed in (1.0, factor):
        served = model("llama-3.1-8b"), layout(faster(ideal, speed), weights="fp8")
        evaluator = of_layout(served, load, serving={"max_num_seqs": 1024}).evaluator
        table = evaluator.curves.table(int(evaluator.slots[0]))
        seconds.append(table.tpot[0] * speed)
    np.testing.assert_allclose(seconds[0], seconds[1], rtol=1e-6)
