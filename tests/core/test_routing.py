"""Replicas behind a router: the closed form beside exact chains and Erlang's, the simulation beside
a slower one, and each beside the other."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core import pooling
from advisor.core.mixers import UNBOUNDED
from advisor.core.paging import PagedCache, Paging
from advisor.core.pooling import pooled, pooled_wait
from advisor.core.queueing import slot_wait, stationary
from advisor.core.replica import ReplicaModel, replica_model
from advisor.core.requests import Requests, sample_requests
from advisor.core.routing import simulate_replicas
from advisor.core.simulator import simulate
from advisor.core.verification import Work, simulate_steady
from advisor.core.workload import Length
from tests.core.batching_simulator import Engine, Simulation
from tests.core.profiles import CONFIGS, answer, device, planned, workload
from tests.core.scalar import ScalarStep
from tests.core.strategies import examples
from tests.core.test_random_loads import SERVED

A_BYTE_A_TOKEN = Paging((PagedCache(1.0, UNBOUNDED, 1),), 0.0, 0, 1.0)
ONE = {"tensor_parallel": (1,)}


# The closed form


def rows(*values: Any) -> Any:
    return [np.array([value]) for value in values]


def shared(rates, utilization, replicas, peakedness=1.0):
    """Chain and wait of replicas that share a stream by load, work exponential."""
    arrivals = utilization * rates[-1]
    chain = pooled(*rows(rates, len(rates), arrivals, replicas, peakedness))
    return chain, pooled_wait(chain, *rows(rates[-1], arrivals, replicas, 1.0)).mean[0]


def shortest_queue(rates, arrivals, replicas, most):
    """Join the shortest queue, exactly: the Markov chain of replicas with up to `most` requests.
    The chance that all slots are taken, the mean wait, and the mean number served beside."""
    slots = len(rates)
    states = list(combinations_with_replacement(range(most + 1), replicas))
    index = {state: i for i, state in enumerate(states)}
    moves = np.zeros((len(states), len(states)))
    for state, i in index.items():
        if state[0] < most:
            moves[i, index[tuple(sorted((state[0] + 1, *state[1:])))]] += arrivals * replicas
        for k in range(replicas):
            if state[k]:
                left = tuple(sorted((*state[:k], state[k] - 1, *state[k + 1 :])))
                moves[i, index[left]] += rates[min(state[k], slots) - 1]
    moves -= np.diag(moves.sum(axis=1))
    balance = np.vstack([moves.T, np.ones(len(states))])
    chance = np.linalg.lstsq(balance, np.eye(len(states) + 1)[-1], rcond=None)[0]
    held = np.array(states)
    full = chance[held[:, 0] >= slots].sum()
    waiting = (chance * np.maximum(held - slots, 0).sum(axis=1)).sum()
    departures = np.concatenate([[0.0], rates])[np.minimum(held, slots)]
    beside = (chance[:, None] * departures * np.minimum(held, slots)).sum() / (
        chance[:, None] * departures
    ).sum()
    return full, waiting / (arrivals * replicas), beside


@pytest.mark.parametrize(
    ("slots", "replicas", "utilization", "slowing", "most"),
    [
        (1, 2, 0.5, 0, 25), (1, 2, 0.8, 0, 30), (1, 3, 0.7, 0, 14), (4, 2, 0.5, 0, 18),
        (4, 2, 0.8, 0, 26), (4, 3, 0.7, 0.1, 13), (8, 2, 0.7, 0.1, 24), (8, 2, 0.5, 0.3, 20),
    ],
)  # fmt: skip
def test_the_shortest_queue_is_waited_in_as_its_markov_chain_says(
    slots, replicas, utilization, slowing, most
):
    n = np.arange(1.0, slots + 1)
    rates = n / (1 + slowing * n)
    full, wait, beside = shortest_queue(rates, utilization * rates[-1], replicas, most)
    chain, found = shared(rates, utilization, replicas)
    assert found == pytest.approx(wait, rel=0.08)
    assert chain.wait_probability[0] == pytest.approx(full, rel=0.15)
    assert (chain.found[0] * n).sum() == pytest.approx(beside, rel=0.04)
    one_queue = chain.wait_probability[0] / (replicas * (1 - utilization) * rates[-1])
    assert found > one_queue


def test_eight_replicas_of_one_slot_share_a_queue_as_erlang_says():
    """M/M/8 at 0.9: P(wait) 0.7015330; one queue would be waited in 0.8769162, and a request that
    has chosen waits 7/16 of a service longer."""
    chain, wait = shared(np.ones(1), 0.9, 8)
    assert chain.wait_probability[0] == pytest.approx(0.7015330, abs=5e-8)
    assert wait == pytest.approx(0.8769162 + 0.7015330 * 7 / 16, abs=1e-7)


@examples(60)
@given(st.integers(1, 300), st.floats(0, 0.2), st.floats(0.01, 0.99), st.floats(0.6, 5))
def test_one_replica_has_nothing_to_share(slots, slowing, utilization, peakedness):
    n = np.arange(1.0, slots + 1)
    rates = n / (1 + slowing * n)
    split = stationary(*rows(rates, slots, utilization * rates[-1], peakedness))
    chain, _ = shared(rates, utilization, 1, peakedness)
    np.testing.assert_allclose(chain.found, split.found, rtol=2e-3, atol=2e-6)
    for name in ("wait_probability", "queued", "mean"):
        found, expected = getattr(chain, name)[0], getattr(split, name)[0]
        assert found == pytest.approx(expected, rel=2e-3, abs=1e-12)


@examples(60)
@given(
    st.integers(1, 200), st.integers(2, 64), st.floats(0, 0.2), st.floats(0.05, 0.99),
    st.floats(0.1, 3), st.floats(0, 2),
)  # fmt: skip
def test_who_is_sent_to_the_least_loaded_never_waits_longer_for_a_slot(
    slots, replicas, slowing, utilization, cv, work
):
    n = np.arange(1.0, slots + 1)
    rates = n / (1 + slowing * n)
    arrivals, split_cv2 = utilization * rates[-1], 1 + (cv**2 - 1) / replicas
    alone = stationary(*rows(rates, slots, arrivals, (1 + split_cv2) / 2))
    split = slot_wait(alone, *rows(rates[-1], arrivals, (split_cv2 + work) / 2)).mean[0]
    chain, _ = shared(rates, utilization, replicas, (1 + cv**2) / 2)
    level = pooled_wait(chain, *rows(rates[-1], arrivals, replicas, (cv**2 + work) / 2)).mean[0]
    assert level <= split * (1 + 1e-6) + 1e-12
    assert chain.found.sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(
    ("slots", "replicas", "utilization", "slowing"),
    [(256, 64, 0.99, 0.01), (401, 4, 0.97, 0.02), (100, 16, 0.999, 0.1), (1, 4000, 0.99, 0)],
)
def test_groups_of_requests_are_as_good_as_each_of_them(
    slots, replicas, utilization, slowing, monkeypatch
):
    n = np.arange(1.0, slots + 1)
    rates = n / (1 + slowing * n)
    grouped, _ = shared(rates, utilization, replicas)
    monkeypatch.setattr(pooling, "_STATES", 20_000)
    exact, _ = shared(rates, utilization, replicas)
    for name in ("wait_probability", "queued", "mean"):
        assert getattr(grouped, name)[0] == pytest.approx(getattr(exact, name)[0], rel=2e-3)


@pytest.mark.parametrize("replicas", [1, 2, 8])
def test_arrivals_met_in_service_are_those_of_a_poisson_number_dealt_out(replicas):
    random = np.random.default_rng(3)
    number = random.poisson(0.8 * replicas, 400_000)
    expected = (number >= replicas).mean() / (np.minimum(number, replicas) / replicas).mean()
    found = pooling.met_in_service(np.array([0.8]), np.array([replicas]))[0]
    assert found == pytest.approx(expected, abs=4e-3)
    if replicas == 1:
        assert found == pytest.approx(1)


# The simulation


def one_second(*_):
    return 1.0


def requests_of(outputs, at):
    ones = np.ones(len(outputs), dtype=np.int64)
    return Requests(ones, ones, np.asarray(outputs, dtype=np.int64), np.asarray(at, dtype=float))


def replica(step=one_second, seqs=100, front_end=0.0):
    return ReplicaModel(step, 1e9, A_BYTE_A_TOKEN, seqs, 1000, 1, front_end)


def served(requests, count, routing, of=None, seed=0):
    return simulate_replicas(of or replica(), requests, count, routing, np.random.default_rng(seed))


def in_order(runs, name):
    """A figure of every request, in the order in which they were sent."""
    sent = np.concatenate([run.sent_s for run in runs])
    return np.concatenate([getattr(run, name) for run in runs])[np.argsort(sent, kind="stable")]


def test_requests_go_where_fewest_are_in_flight():
    """Steps of a second. The answer of two tokens is complete at 2.1 s, that of three not before
    3.2 s: a request of 3 s joins the first, however often the tie of the other two is broken."""
    for seed in range(8):
        requests = requests_of([20, 2, 3, 9], [0.0, 0.1, 0.2, 3.0])
        runs = served(requests, 3, "least_loaded", seed=seed)
        held = sorted(run.requests.output_tokens.tolist() for run in runs)
        assert held == [[2, 9], [3], [20]]


def slow_shortest_queue(name, requests, count, front_end, ties):
    """As `simulate_replicas`, step by step with the yardstick: first and last tokens."""
    step = ScalarStep(CONFIGS[name], device("h100"), "vllm", 1, "bf16")
    sims = [Simulation(step, Engine(256, 8192, front_end)) for _ in range(count)]
    moments = []

    def begins(sim):
        if sim.waiting or sim.prompts or sim.decoding:
            return sim.now
        return max(sim.now, sim.coming[0][0]) if sim.coming else math.inf

    for i, at in enumerate(requests.sent_s):
        for sim in sims:
            while begins(sim) < at:
                sim._advance()
        load = [sum(not 0 < one.done <= at for one in sim.requests) for sim in sims]
        idlest = [k for k in range(count) if load[k] == min(load)]
        chosen = sims[idlest[int(ties[i] * len(idlest))]]
        chosen._send(at, int(requests.input_tokens[i]), int(requests.output_tokens[i]))
        moments.append(chosen.requests[-1])
    for sim in sims:
        while begins(sim) < math.inf:
            sim._advance()
    return np.array([(one.first, one.done) for one in moments]).T


@pytest.mark.parametrize(("count", "rate", "outputs"), [(2, 25.0, 120), (5, 60.0, 120), (3, 9, 20)])
def test_the_shortest_queue_is_joined_as_a_simulation_step_by_step_does(count, rate, outputs):
    plan = planned(load=workload(1000, 100, request_rate_per_s=1.0), limits=ONE)
    evaluator = plan.evaluator
    of = replica_model(evaluator.request.model, evaluator.layouts[0], evaluator.settings[0], 0.017)
    mix = workload(Length(900, 2000), Length(outputs, outputs * 2.5), request_rate_per_s=rate)
    requests = sample_requests(mix, 200, np.random.default_rng(5))
    outputs = np.maximum(requests.output_tokens, 2)
    requests = Requests(requests.input_tokens, requests.new_input_tokens, outputs, requests.sent_s)
    of = ReplicaModel(of.step, 1e12, of.pages, 256, 8192, 1, 0.017)
    runs = served(requests, count, "least_loaded", of)
    ties = np.random.default_rng(0).random(len(requests))
    first, done = slow_shortest_queue("llama-3.1-8b", requests, count, 0.017, ties)
    np.testing.assert_allclose(in_order(runs, "first_token_s"), first, rtol=1e-8)
    np.testing.assert_allclose(in_order(runs, "done_s"), done, rtol=1e-8)


@pytest.mark.parametrize("routing", ["random", "least_loaded"])
def test_one_replica_behind_a_router_is_the_replica(routing):
    mix = workload(Length(20, 50), Length(30, 60), request_rate_per_s=0.5)
    requests = sample_requests(mix, 400, np.random.default_rng(2))
    alone, (run,) = simulate(replica(), requests), served(requests, 1, routing)
    np.testing.assert_allclose(run.first_token_s, alone.first_token_s, rtol=1e-12)
    np.testing.assert_allclose(run.done_s, alone.done_s, rtol=1e-12)


@pytest.mark.parametrize("routing", ["random", "least_loaded"])
def test_every_request_is_served_once(routing):
    mix = workload(Length(20, 50), Length(30, 60), request_rate_per_s=0.5)
    requests = sample_requests(mix, 300, np.random.default_rng(2))
    runs = served(requests, 7, routing)
    np.testing.assert_array_equal(
        np.sort(np.concatenate([run.sent_s for run in runs])), requests.sent_s
    )
    assert sum(run.requests.output_tokens.sum() for run in runs) == requests.output_tokens.sum()


def test_two_replicas_of_one_sequence_wait_as_the_markov_chain_says():
    """Join the shortest of two queues at 0.8: exponential outputs of 200 steps on average wait
    1.955 services; at random as M/M/1, 4."""
    random = np.random.default_rng(8)
    _, expected, _ = shortest_queue(np.ones(1), 0.8, 2, 30)
    count = 30_000
    outputs, between = random.geometric(1 / 200, count), random.exponential(1.0, count)
    at = np.cumsum(between) * (outputs.mean() / 1.6 / between.mean())
    requests = requests_of(outputs, at)
    for routing, wait, within in (("least_loaded", expected, 0.08), ("random", 4.0, 0.2)):
        runs = served(requests, 2, routing, replica(seqs=1))
        found = (in_order(runs, "ttft").mean() - 1) / outputs.mean()
        assert found == pytest.approx(wait, rel=within)


# Plans


def routed(load, routing, replicas, on="h100", of="llama-3.1-8b", weights=(), **limits):
    limits = {**ONE, "replicas": (replicas,), **limits}
    return planned(of, on, load, limits, {"routing": routing}, weights=weights)


def test_one_replica_is_served_alike_however_requests_are_routed():
    load = workload(Length(1000, 2500), Length(250, 600), request_rate_per_s=15.0)
    split, level = (routed(load, each, 1).candidates.served for each in ("random", "least_loaded"))
    for metric in ("ttft", "tpot", "itl", "e2e"):
        np.testing.assert_allclose(
            level.latency[metric].quantiles, split.latency[metric].quantiles, rtol=2e-3
        )


@examples(25)
@given(st.floats(0.05, 0.95), st.integers(2, 32), st.sampled_from([0.5, 1.0, 2.0]))
def test_least_loaded_never_lengthens_a_mean(part, replicas, cv):
    mix = Length(1000, 2500), Length(250, 600)
    most = routed(workload(*mix, saturate=True), "random", 1).evaluator.saturation[0]
    load = workload(*mix, request_rate_per_s=part * replicas * most, arrival_cv=cv)
    split, level = (
        routed(load, each, replicas).candidates.served for each in ("random", "least_loaded")
    )
    for metric in ("ttft", "tpot", "e2e"):
        assert level.latency[metric].mean[0] <= split.latency[metric].mean[0] * (1 + 1e-6)
    assert level.latency["e2e"].at("p95")[0] <= split.latency["e2e"].at("p95")[0] * 1.001


CASES = 10
COMPARED = [("ttft", "mean"), ("tpot", "mean"), ("e2e", "mean"), ("ttft", "p95"), ("e2e", "p95")]


def drawn(seed):
    """A model on its accelerators, two to eight replicas, and a load of spread outputs up to 90 %
    of saturation."""
    random = np.random.default_rng([20_261_202, seed])
    name, on, ranks, weights = SERVED[random.integers(len(SERVED))]

    def mean(low, high):
        return float(round(math.exp(random.uniform(math.log(low), math.log(high)))))

    inputs, outputs = mean(50, 8000), mean(10, 1500)
    lengths = Length(inputs, inputs * 2), Length(outputs, outputs * random.uniform(1.3, 3))
    replicas, cv = int(random.choice([2, 4, 8])), float(random.choice([1, 1, 0.5, 1.5]))

    def plan(**load):
        where = {"tensor_parallel": (ranks,), "expert_parallel": (1,)}
        of = workload(*lengths, arrival_cv=cv, **load)
        return routed(of, "least_loaded", replicas, on, name, (weights,), **where)

    most = replicas * plan(saturate=True).evaluator.saturation[0]
    return plan(request_rate_per_s=float(random.uniform(0.1, 0.9) * most)), replicas


def test_random_loads_of_several_replicas_are_served_as_simulated():
    found = []
    for seed in range(CASES):
        plan, replicas = drawn(seed)
        closed = plan.candidates.served
        simulated = simulate_steady(plan.evaluator, 0, replicas, closed, Work(3e6)).served
        assert simulated is not None
        found.append([
            closed.latency[m].at(s)[0] / simulated.latency[m].at(s)[0] - 1 for m, s in COMPARED
        ])  # fmt: skip
    median, p90 = np.median(np.abs(found), axis=0), np.quantile(np.abs(found), 0.9, axis=0)
    assert (median < [0.04, 0.04, 0.04, 0.08, 0.05]).all()
    assert (p90 < [0.2, 0.2, 0.12, 0.3, 0.15]).all()


def test_answers_of_one_length_end_in_step_and_are_warned_of():
    """After a while what least_loaded makes of equal answers is worse than what chance does."""
    load, limits = workload(1000, 250, request_rate_per_s=12.5 * 8), {**ONE, "replicas": (8,)}
    evaluator = routed(load, "random", 8).evaluator
    of = replica_model(evaluator.request.model, evaluator.layouts[0], evaluator.settings[0])
    requests = sample_requests(load, 22_000, np.random.default_rng(1))
    slowest = {}
    for routing in ("random", "least_loaded"):
        found = answer(load=load, limits=limits, serving={"routing": routing})
        codes = {each["code"] for each in found["warnings"]}
        assert ("answers_end_in_step" in codes) == (routing == "least_loaded")
        ttft = in_order(served(requests, 8, routing, of), "ttft")[16_000:]
        slowest[routing] = np.quantile(ttft, 0.95)
    assert slowest["least_loaded"] > 1.4 * slowest["random"]
    spread = workload(1000, Length(250, 500), request_rate_per_s=12.5 * 8)
    found = answer(load=spread, limits=limits, serving={"routing": "least_loaded"})
    assert not found["warnings"]
    assert found["inputs"]["serving"]["routing"] == "least_loaded"


def test_many_replicas_are_verified_by_some_of_them():
    """The rate is that of all; the router reaches nine of ten."""
    load = workload(1000, Length(250, 600), request_rate_per_s=400.0)
    limits = {**ONE, "replicas": (40,)}
    serving = {"routing": "least_loaded", "router_efficiency": 0.9}
    found = answer(load=load, limits=limits, serving=serving, verify=True)["recommended"]
    checked = found["verification"]
    assert checked["reason"] is None
    assert checked["throughput"]["requests_per_s"] == pytest.approx(400, rel=0.06)
    for metric in ("ttft", "tpot", "e2e"):
        assert checked["agreement"][metric]["mean"] == pytest.approx(1, abs=0.06)
