"""Plans simulated: a burst by hand and beside the simulator, steady loads beside closed forms."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from advisor.core import verification
from advisor.core.errors import InvalidInput
from advisor.core.evaluation import Evaluator
from advisor.core.latency import LEVELS
from advisor.core.lengths import Length, RequestClass
from advisor.core.mixers import UNBOUNDED
from advisor.core.paging import PagedCache, Paging
from advisor.core.replica import ReplicaModel
from advisor.core.requests import Requests
from advisor.core.verification import Work, cut_to_cache, simulate_burst, simulate_steady
from advisor.core.workload import Workload
from tests.core.profiles import CONFIGS, answer, device, planned, workload
from tests.core.scalar import ScalarStep

ONE = {"tensor_parallel": (1,), "replicas": (1,)}


def burst(inputs, outputs, clients, count=None, **load):
    return workload(inputs, outputs, concurrency=clients, start="burst", num_requests=count, **load)


def recommended(*args, **kwargs):
    found = answer(*args, **kwargs)["recommended"]
    assert found is not None
    return found


# A burst


def test_two_clients_and_three_requests_by_hand():
    """Prompts of 2,048 tokens, 2 tokens to write, steps of 2,048 tokens. The first answer comes
    beside all but a token of the second prompt, and a third request is sent then. While the front
    end has it, the second is answered; it then runs alone."""
    found = recommended(
        load=burst(2048, 2, 2, 3), limits=ONE, serving={"max_num_batched_tokens": 2048}
    )
    plan = planned(load=burst(2048, 2, 2, 3), limits=ONE)
    front_end = float(plan.evaluator.front_end[0])
    step = ScalarStep(CONFIGS["llama-3.1-8b"], device("h100"), "vllm", 1, "bf16").seconds
    most = 2047 * (2047 + 1) / 2
    first = step(0, 0, 2048, 2048 * 2049 / 2, 0, 1)
    second = step(1, 2049, 2047, most, 0, 1)  # a decoding sequence takes one token of the budget
    third = step(0, 0, 1, 2048, 2047, 1)
    sent = front_end + first + second
    decoded = step(1, 2049, 0, 0, 0, 0)
    assert front_end > third
    begun = sent + max(third + decoded, front_end)
    done = begun + first + decoded
    ttft = [front_end + first, sent + third, begun + first - sent]
    e2e = [sent, sent + third + decoded, done - sent]
    ms = 1e3
    assert found["latency"]["ttft_ms"]["mean"] == pytest.approx(np.mean(ttft) * ms, rel=1e-4)
    assert found["latency"]["e2e_ms"]["mean"] == pytest.approx(np.mean(e2e) * ms, rel=1e-4)
    assert found["throughput"]["output_tokens_per_s"] == pytest.approx(6 / done, rel=1e-4)
    assert found["throughput"]["requests_per_s"] == pytest.approx(3 / done, rel=1e-4)
    assert found["load"]["mean_concurrency"] == pytest.approx(sum(e2e) / done, rel=1e-4)


def test_prompts_that_come_at_once_wait_for_each_other():
    """In a burst of 64 equal requests the clients stay in step: each waits for the others' prompts
    in every round, half of them on average, which a steady loop does not."""
    steady, burst_of_64 = (
        recommended(load=load, limits=ONE)["latency"]
        for load in (workload(1000, 1000, concurrency=64), burst(1000, 1000, 64))
    )
    assert burst_of_64["ttft_ms"]["mean"] > 5 * steady["ttft_ms"]["mean"]
    for metric in ("tpot_ms", "e2e_ms"):
        assert burst_of_64[metric]["mean"] == pytest.approx(steady[metric]["mean"], rel=0.1)


def test_prompts_of_a_burst_take_as_long_as_one_after_the_other():
    """One token each: request i of c has it after its share of steps of 8,192 tokens."""
    found = recommended(
        load=burst(8192, 1, 16, 16), limits=ONE, serving={"max_num_batched_tokens": 8192}
    )
    plan = planned(load=burst(8192, 1, 16, 16), limits=ONE)
    step = ScalarStep(CONFIGS["llama-3.1-8b"], device("h100"), "vllm", 1, "bf16").seconds
    prompt = step(0, 0, 8192, 8192 * 8193 / 2, 0, 1)
    mean = float(plan.evaluator.front_end[0]) + prompt * 17 / 2
    assert found["latency"]["ttft_ms"]["mean"] == pytest.approx(mean * 1e3, rel=1e-4)
    assert found["latency"]["tpot_ms"]["mean"] is None


@pytest.mark.parametrize(
    "load", [burst(500, 100, 24), burst(Length(500, 1200), Length(100, 250), 24)]
)
def test_the_same_burst_has_the_same_answer(load):
    first, second = (answer(load=load) for _ in range(2))
    assert first == second


def test_a_burst_over_equal_replicas_is_that_of_each_of_them():
    """32 clients at 4 replicas are 8 at each."""
    spread = recommended(load=burst(1000, 200, 32), limits={**ONE, "replicas": (4,)})
    alone = recommended(load=burst(1000, 200, 8), limits=ONE)
    assert spread["latency"] == alone["latency"]
    for of_all, of_one in (("throughput", "output_tokens_per_s"), ("load", "mean_concurrency")):
        assert spread[of_all][of_one] == pytest.approx(4 * alone[of_all][of_one], rel=1e-5)


def test_clients_that_do_not_divide_are_spread_as_evenly_as_can_be():
    """7 clients at 3 replicas: two have 2, one has 3; requests weigh alike."""
    spread = recommended(load=burst(1000, 200, 7), limits={**ONE, "replicas": (3,)})
    two, three = (recommended(load=burst(1000, 200, n), limits=ONE) for n in (2, 3))
    means = [each["latency"]["ttft_ms"]["mean"] for each in (two, three)]
    expected = (4 * means[0] + 3 * means[1]) / 7
    assert spread["latency"]["ttft_ms"]["mean"] == pytest.approx(expected, rel=1e-5)
    seconds = 30 * 200 / three["throughput"]["output_tokens_per_s"]
    assert spread["throughput"]["output_tokens_per_s"] == pytest.approx(70 * 200 / seconds, 1e-5)


def test_replicas_without_a_client_serve_nothing():
    spread = recommended(load=burst(1000, 200, 3), limits={**ONE, "replicas": (8,)})
    alone = recommended(load=burst(1000, 200, 1), limits=ONE)
    assert spread["latency"] == alone["latency"]
    assert spread["load"]["mean_concurrency"] == pytest.approx(3, rel=0.01)


def test_spares_serve_nothing_in_a_burst():
    spared = recommended(
        load=burst(1000, 200, 8), limits={**ONE, "replicas": (2,), "spare_replicas": 1}
    )
    plain = recommended(load=burst(1000, 200, 8), limits=ONE)
    assert spared["latency"] == plain["latency"]
    assert spared["accelerators"] == 2


@pytest.mark.parametrize("load", [burst(1000, 200, 8), workload(1000, 200, concurrency=8)])
def test_what_a_router_does_not_reach_is_throughput_lost_and_time_waited(load):
    """Little's law holds: as many requests are in flight, half as many are served."""
    whole, half = (
        recommended(load=load, limits=ONE, serving={"router_efficiency": part}, verify=True)
        for part in (1.0, 0.5)
    )
    if load.start == "steady":
        whole, half = whole["verification"], half["verification"]
    pairs = [(each["throughput"]["requests_per_s"], each["latency"]["e2e_ms"]["mean"])
             for each in (whole, half)]  # fmt: skip
    assert pairs[1][0] == pytest.approx(pairs[0][0] / 2, rel=1e-4)
    assert pairs[1][1] == pytest.approx(pairs[0][1] * 2, rel=1e-4)
    assert whole["latency"]["tpot_ms"] == half["latency"]["tpot_ms"]


def test_the_choice_among_plans_of_a_burst_keeps_to_what_was_simulated():
    """A bound on TTFT that the steady loop of one device keeps, and its burst does not."""
    slo = {"ttft_p95_ms": 300.0}
    steady = answer(load=workload(1000, 500, concurrency=64), slo=slo)["recommended"]
    found = answer(load=burst(1000, 500, 64), slo=slo)
    assert steady["accelerators"] < found["recommended"]["accelerators"]
    assert found["recommended"]["latency"]["ttft_ms"]["p95"] <= 300
    cheaper = [
        one for one in found["candidates"]
        if float(one["cost"]["per_hour"]) < float(found["recommended"]["cost"]["per_hour"])
    ]  # fmt: skip
    assert cheaper
    assert not any(one["slo"]["met"] for one in cheaper)
    assert found["candidates_total"] == len(found["candidates"]) <= verification.MOST_SIMULATED
    assert "burst" in {one["code"] for one in found["assumptions"]}


def test_every_figure_shown_of_a_burst_is_simulated():
    found = answer(load=burst(1000, 500, 64), limits={"replicas": (4,), "tensor_parallel": (1, 2)})
    by_degree = {one["tensor_parallel"]: one for one in found["candidates"]}
    for one in found["replicas_vs_tensor_parallel"]:
        if one["replicas"] == 4:
            shown = by_degree[one["tensor_parallel"]]["latency"]
            assert one["ttft_p95_ms"] == shown["ttft_ms"]["p95"]
        if one["replicas"] > 4:
            at_each = recommended(load=burst(1000, 500, 64 // one["replicas"]), limits=ONE)
            assert one["ttft_p95_ms"] == at_each["latency"]["ttft_ms"]["p95"]


@pytest.mark.parametrize(
    ("load", "seconds"),
    [(burst(100_000, 100, 64, 100_000), 1), (burst(100, Length(500, 1500), 64, 100_000), 30)],
    ids=["seen before", "found out"],
)
def test_a_burst_beyond_the_work_allowed_is_refused_by_its_number_of_requests(load, seconds):
    began = time.process_time()
    with pytest.raises(InvalidInput) as caught:
        planned(load=load, limits=ONE)
    (error,) = caught.value.errors
    assert (error.pointer, error.given) == ("/workload/num_requests", 100_000)
    assert time.process_time() - began < seconds


def test_less_work_is_spent_on_fewer_plans(monkeypatch):
    """The best are simulated first."""
    every = answer(load=burst(Length(1000, 2000), Length(200, 500), 16))
    monkeypatch.setattr(verification, "MOST_WORK", 6_000.0)
    monkeypatch.setattr(Work.__init__, "__defaults__", (6_000.0,))
    few = answer(load=burst(Length(1000, 2000), Length(200, 500), 16))
    assert 1 <= len(few["candidates"]) < len(every["candidates"])
    assert few["recommended"] == every["recommended"]


def test_nothing_that_fits_is_an_answer_to_a_burst_too():
    found = answer("deepseek-v3", "l40s", burst(1000, 250, 8))
    assert found["recommended"] is None
    assert found["candidates"] == []


def test_a_burst_is_answered_within_seconds():
    began = time.process_time()
    found = answer(on=(device("h100"), device("h200")), load=burst(1000, 1000, 64))
    spent = time.process_time() - began
    assert len(found["candidates"]) == verification.MOST_SIMULATED
    assert spent < 5


# Steady loads


@pytest.mark.parametrize(
    ("load", "bounds"),
    [
        (workload(1000, 250, request_rate_per_s=4.0), {"ttft": 0.05, "tpot": 0.03, "e2e": 0.03}),
        (workload(Length(1000, 2500), Length(250, 600), request_rate_per_s=8.0),
         {"ttft": 0.1, "tpot": 0.05, "e2e": 0.05}),
        (workload(1000, 250, request_rate_per_s=8.0, prefix_cache_hit=0.5),
         {"ttft": 0.1, "tpot": 0.05, "e2e": 0.05}),
        (workload(1000, 250, request_rate_per_s=4.0, peak_to_mean=2.0),
         {"ttft": 0.1, "tpot": 0.05, "e2e": 0.05}),
        (workload(Length(1000, 2500), Length(250, 600), concurrency=32),
         {"ttft": 0.15, "tpot": 0.03, "e2e": 0.03}),
        (workload(1000, 250, concurrency=4), {"tpot": 0.03, "e2e": 0.03}),
        (workload(1000, 250, saturate=True), {"tpot": 0.05}),
    ],
)  # fmt: skip
def test_closed_form_and_simulation_agree(load, bounds):
    found = answer(load=load, limits={"replicas": (1,)}, verify=True)
    checked = [one for one in found["pareto"] if one["verification"]]
    assert checked
    for one in checked:
        ratios = one["verification"]["agreement"]
        assert one["verification"]["reason"] is None
        assert ratios["throughput"] == pytest.approx(1, abs=0.08 if load.saturate else 0.03)
        for metric, bound in bounds.items():
            assert ratios[metric]["mean"] == pytest.approx(1, abs=bound)


CHAT = RequestClass(Length(600, 1500), Length(300, 800), 3.0, 0.0, "chat")
RAG = RequestClass(Length(4000), Length.histogram([20, 100]), 1.0, 0.5, "rag")


@pytest.mark.parametrize("load", [{"request_rate_per_s": 6.0}, {"concurrency": 32}])
def test_closed_form_and_simulation_agree_class_by_class(load):
    found = recommended(load=Workload.of_classes([CHAT, RAG], **load), limits=ONE, verify=True)
    checked = found["verification"]
    assert [one["name"] for one in checked["classes"]] == ["chat", "rag"]
    for one in checked["classes"]:
        for metric, bound in (("ttft", 0.15), ("tpot", 0.06), ("e2e", 0.05)):
            assert one["agreement"][metric]["mean"] == pytest.approx(1, abs=bound)
    chat, rag = (one["e2e_ms"]["mean"] for one in checked["classes"])
    assert chat > 2.5 * rag
    whole = checked["latency"]["e2e_ms"]["mean"]
    assert 0.75 * chat + 0.25 * rag == pytest.approx(whole, rel=0.02)


def test_a_loop_of_long_and_short_answers_is_measured_in_its_steady_state():
    """One request in ten has 740 output tokens, the others one: nearly all that are in flight are
    long. A run that began with as many of these as come would serve far more at first. By Little's
    law the long ones that are answered take turns in as many places as decode."""
    long = RequestClass(Length(100), Length(740), 1.0, 0.0, "long")
    short = RequestClass(Length(100), Length(1), 9.0, 0.0, "short")
    load = Workload.of_classes([long, short], concurrency=256)
    plan = planned(load=load, limits=ONE)
    found = simulate_steady(plan.evaluator, 0, 1, plan.candidates.served, Work(3e6)).served
    assert found is not None
    assert found.in_service[0] == pytest.approx(256, rel=0.1)
    decoding = found.requests_per_s[0] / 10 * 739 * found.latency["itl"].mean[0]
    assert decoding == pytest.approx(found.in_service[0], rel=0.05)


def test_a_burst_of_classes_is_simulated_class_by_class():
    load = Workload.of_classes([CHAT, RAG], concurrency=24, start="burst")
    found = recommended(load=load, limits=ONE)
    chat, rag = found["classes"]
    assert chat["e2e_ms"]["mean"] > 2 * rag["e2e_ms"]["mean"]
    mean = 0.75 * chat["ttft_ms"]["mean"] + 0.25 * rag["ttft_ms"]["mean"]
    assert mean == pytest.approx(found["latency"]["ttft_ms"]["mean"], rel=1e-4)


def test_the_recommended_plan_and_ten_at_most_are_verified():
    found = answer(
        on=(device("h100"), device("h200"), device("mi300x")), weights=("bf16", "fp8"),
        load=workload(1000, 100, request_rate_per_s=2.0), verify=True,
    )  # fmt: skip
    assert found["recommended"]["verification"]
    shown = [*found["pareto"], *found["candidates"]]
    verified = [one for one in shown if one["verification"]]
    assert 1 < len({str(one) for one in verified}) <= verification.MOST_VERIFIED


def test_what_was_not_asked_for_is_not_simulated():
    found = answer()
    assert {str(one["verification"]) for one in found["candidates"]} == {"None"}


def test_verified_answers_are_otherwise_the_same():
    plain, verified = (answer(limits=ONE, verify=flag)["recommended"] for flag in (False, True))
    assert verified | {"verification": None} == plain


def test_an_unstable_plan_is_not_simulated_and_says_why():
    load = workload(1000, 250, request_rate_per_s=100.0)
    found = answer(load=load, limits={"replicas": (1,), "tensor_parallel": (1,)}, verify=True)
    result = found["nearest"]["verification"]
    assert "queue" in result["reason"]
    assert result["requests"] == 0
    assert result["latency"] is result["agreement"] is result["slo_met"] is None


def test_a_plan_of_too_many_clients_is_not_simulated_and_says_why():
    began = time.process_time()
    found = answer(load=workload(1000, 250, concurrency=1_000_000), verify=True)
    assert "300,000 steps" in found["recommended"]["verification"]["reason"]
    assert time.process_time() - began < 2


def test_at_saturation_only_gaps_and_throughput_are_measured():
    found = recommended(load=workload(1000, 250, saturate=True), verify=True)["verification"]
    for metric in ("ttft_ms", "e2e_ms"):
        assert set(found["latency"][metric].values()) == {None}
    assert found["latency"]["tpot_ms"]["p95"] > 0


def test_a_verified_burst_has_no_second_answer_and_says_so():
    found = answer(load=burst(1000, 100, 8), verify=True)
    assert found["recommended"]["verification"] is None
    assert "verified_burst" in {one["code"] for one in found["assumptions"]}


def test_a_difference_in_what_an_slo_names_is_warned_of():
    """A steady loop of equal requests keeps the order it began in, and waits for it."""
    load = workload(1000, 250, concurrency=128)
    plain = answer(load=load, limits=ONE, verify=True)
    one = plain["recommended"]
    closed, simulated = (each["latency"]["ttft_ms"]["p95"] for each in (one, one["verification"]))
    assert simulated > 1.2 * closed
    assert not [each for each in plain["warnings"] if each["code"].startswith("simulation_")]
    for limit, code in ((simulated * 2, "simulation_differs"),
                        ((simulated + closed) / 2, "simulation_misses_slo")):  # fmt: skip
        found = answer(load=load, limits=ONE, slo={"ttft_p95_ms": limit}, verify=True)
        assert found["recommended"]["slo"]["met"]
        assert found["recommended"]["verification"]["slo_met"] == (limit > simulated)
        (warning,) = [w for w in found["warnings"] if w["code"].startswith("simulation_")]
        assert warning["code"] == code
        assert f"{simulated:.4g} ms in the simulation" in warning["detail"]


def test_arrivals_that_bunch_are_watched_longer():
    few, many = (
        recommended(
            load=workload(1000, 50, request_rate_per_s=4.0, arrival_cv=cv), limits=ONE, verify=True
        )["verification"]["requests"]
        for cv in (1.0, 2.0)
    )
    assert many == 4 * few == 4 * verification.MEASURED


def test_one_replica_of_several_gets_a_random_share_of_the_arrivals():
    """Evenly spaced arrivals, dealt out at random over many replicas, come as Poisson ones: the
    waits of two replicas lie between those of one and those of Poisson arrivals."""
    limits = {**ONE, "replicas": (8,)}
    even, poisson = (
        recommended(
            load=workload(2000, 50, request_rate_per_s=60.0, arrival_cv=cv), limits=limits,
            verify=True,
        )["verification"]["latency"]["ttft_ms"]["mean"]
        for cv in (0.0, 1.0)
    )  # fmt: skip
    assert even == pytest.approx(poisson, rel=0.15)


# Parts


def evaluator_of(load) -> Evaluator:
    return planned(load=load, limits=ONE).evaluator


def test_work_is_counted_before_anything_is_drawn():
    load = workload(1000, 250, concurrency=50_000)
    row = planned(load=load, limits=ONE)
    found = simulate_steady(row.evaluator, 0, 1, row.candidates.served, Work(1000.0))
    assert found.served is None
    assert found.reason
    with pytest.raises(verification.TooMuchWork):
        simulate_burst(evaluator_of(burst(1000, 250, 64)), 0, 1, Work(600.0))


def test_drawn_lengths_are_cut_to_what_the_cache_holds():
    pages = Paging((PagedCache(1.0, UNBOUNDED, 1),), 0.0, 0, 1.0)
    replica = ReplicaModel(lambda *_: 1.0, 100.0, pages, 8, 512)
    inputs, outputs = np.array([50, 90, 200]), np.array([10, 40, 30])
    requests = Requests(inputs, np.array([50, 10, 150]), outputs, concurrency=3)
    cut = cut_to_cache(requests, replica, 60)
    assert (cut.input_tokens + cut.output_tokens).max() == 101  # the last token is not kept
    assert cut.input_tokens.tolist() == [50, 90, 100]
    assert cut.new_input_tokens.tolist() == [50, 10, 100]
    assert cut.output_tokens.tolist() == [10, 11, 1]
    roomy = replace(replica, kv_bytes=1000.0)
    assert cut_to_cache(requests, roomy, 60).output_tokens.tolist() == outputs.tolist()


def test_quantiles_of_equal_weights_are_those_of_numpy_and_weights_count_as_copies():
    values = np.random.default_rng(1).exponential(size=200)
    one = verification._latency(values, np.full(200, 3.0))
    np.testing.assert_allclose(one.quantiles[0], np.quantile(values, LEVELS), rtol=1e-12)
    weight = np.where(np.arange(200) < 100, 1.0, 4.0)
    copies = np.repeat(values, weight.astype(int))
    other = verification._latency(values, weight)
    assert other.mean[0] == pytest.approx(copies.mean())
    np.testing.assert_allclose(other.quantiles[0], np.quantile(copies, LEVELS), rtol=0.1)
