"""The simulation of one replica: by hand, beside a slower one, in limits that are known."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core import simulator
from advisor.core.engines import engine_settings
from advisor.core.errors import InvalidInput
from advisor.core.memory import memory_fit
from advisor.core.mixers import UNBOUNDED
from advisor.core.paging import PagedCache, Paging
from advisor.core.replica import ReplicaModel, replica_model
from advisor.core.requests import Requests, sample_requests
from advisor.core.simulator import linear_pieces, simulate, steps_until
from advisor.core.steps import StepModel
from advisor.core.workload import Length, Serving
from tests.core.batching_simulator import Engine, Simulation
from tests.core.profiles import CONFIGS, device, layout, model, workload
from tests.core.scalar import ScalarStep
from tests.core.strategies import examples, served_layouts

A_BYTE_A_TOKEN = Paging((PagedCache(1.0, UNBOUNDED, 1),), 0.0, 0, 1.0)


def replica(step, kv_tokens=1e9, seqs=100, budget=1000, front_end=0.0, lanes=1):
    """A replica that keeps a byte for each token, in blocks of one token."""
    return ReplicaModel(step, kv_tokens, A_BYTE_A_TOKEN, seqs, budget, lanes, front_end)


def served_by(name, on="h100", front_end=0.0, serving=None, **split):
    of, where = model(name), layout(on, **split)
    settings = engine_settings(Serving(**serving or {}), where.hardware, where.split, 4096)
    return replica_model(of, where, settings, front_end)


def sent(lengths, at=None, concurrency=None, cached=0):
    inputs, outputs = np.array(lengths, dtype=np.int64).reshape(-1, 2).T
    times = None if at is None else np.array(at, dtype=float)
    return Requests(inputs, inputs - cached, outputs, times, concurrency)


def one_second(*_):
    return 1.0


# By hand


def test_two_prompts_share_the_budget_of_a_step_and_are_cut_to_fit_it():
    """Prompts of 30 and 10 tokens in steps of 20; 3 and 2 tokens are written."""
    seen = []

    def step(*columns):
        decode, context, prefill, pairs, cached, prompts = columns
        seen.append(columns)
        return (
            1e-3 + 1e-4 * decode + 1e-6 * decode * context + 1e-5 * prefill + 1e-7 * pairs
            + 1e-8 * cached + 1e-9 * prompts
        )  # fmt: skip

    run = simulate(replica(step, budget=20), sent([(30, 3), (10, 2)], at=[0, 0]))
    assert seen[:2] == [(0, 0.0, 20, 210.0, 0, 1), (0, 0.0, 20, 310.0, 20, 2)]
    first = 1e-3 + 2e-4 + 2.1e-5 + 1e-9
    second = 1e-3 + 2e-4 + 3.1e-5 + 2e-7 + 2e-9
    both, alone = 1e-3 + 2e-4 + 42e-6, 1e-3 + 1e-4 + 32e-6
    np.testing.assert_allclose(run.ttft, [first + second] * 2, atol=1e-12)
    np.testing.assert_allclose(
        run.e2e, [first + second + both + alone, first + second + both], atol=1e-12
    )
    np.testing.assert_allclose(run.tpot, [(both + alone) / 2, both], atol=1e-12)
    assert run.itl(0.3) == pytest.approx(alone)
    assert run.itl(0.5) == pytest.approx(both)
    assert run.output_tokens_per_s == pytest.approx(5 / (first + second + both + alone))


def test_a_prompt_is_computed_beside_the_sequences_that_decode():
    """The second request comes in the first one's second step: a second of waiting for its end,
    then two steps for its prompt, with one token of the budget taken."""
    run = simulate(replica(one_second, budget=4), sent([(4, 6), (6, 2)], at=[0, 1.5]))
    assert run.first_token_s.tolist() == [1, 4]
    assert run.done_s.tolist() == [6, 5]
    assert run.iterations.prefill.tolist() == [4, 0, 3, 3, 0, 0]
    assert run.iterations.decode.tolist() == [0, 1, 1, 1, 2, 1]
    assert run.concurrency == pytest.approx((6 + 3.5) / 6)


def test_clients_send_their_next_request_when_one_is_answered_and_the_front_end_delays_each():
    requests = sent([(1, 2), (1, 4), (1, 2), (1, 1)], concurrency=2)
    run = simulate(replica(one_second, front_end=0.5), requests)
    assert run.sent_s.tolist() == [0, 0, 2.5, 4.5]
    assert run.first_token_s.tolist() == [1.5, 1.5, 4.5, 6.5]
    assert run.done_s.tolist() == [2.5, 4.5, 5.5, 6.5]
    assert np.isnan(run.tpot[3])


def test_the_request_admitted_last_is_evicted_and_computed_anew():
    """Two prompts of 3 tokens in a cache of 10: at 6 tokens each, the second has to go, with three
    tokens written; its last one comes when 6 tokens are computed again."""
    run = simulate(replica(one_second, kv_tokens=10), sent([(3, 4), (3, 4)], at=[0, 0]))
    assert run.done_s.tolist() == [4, 5]
    assert run.evictions == 1
    assert run.interrupted_s.tolist() == [2]
    assert run.iterations.prefill.tolist() == [6, 0, 0, 6]
    assert run.iterations.held_bytes.tolist() == [6, 10, 6, 6]
    assert run.itl(1.0) == pytest.approx(2)


def test_a_request_waits_until_its_whole_prompt_fits_the_cache():
    run = simulate(replica(one_second, kv_tokens=10), sent([(6, 3), (6, 1)], at=[0, 0]))
    assert run.first_token_s.tolist() == [1, 4]
    assert run.evictions == 0


def test_a_prompt_is_computed_in_one_microbatch_of_a_pipeline_and_others_beside_it():
    """Two microbatches of 4 tokens each: 10 tokens take three cycles, 3 tokens one."""
    requests = sent([(10, 1), (3, 2)], at=[0, 0])
    run = simulate(replica(one_second, budget=8, lanes=2), requests)
    assert run.iterations.prefill.tolist() == [7, 3, 3]
    assert run.first_token_s.tolist() == [3, 1]
    assert simulate(replica(one_second, budget=8), requests).first_token_s.tolist() == [2, 2]


def test_a_common_prefix_is_kept_once_and_not_computed():
    seen = []

    def step(*columns):
        seen.append(columns)
        return 1.0

    requests = sent([(10, 1)] * 3, at=[0, 0, 0], cached=8)
    run = simulate(replica(step, kv_tokens=8 + 3 * 2), requests)
    assert seen == [(0, 0.0, 6, 3 * 2 * (8 + 1.5), 24, 3)]
    assert run.iterations.held_bytes.tolist() == [8 + 3 * 2]


def test_a_request_that_no_cache_could_hold_is_refused():
    simulate(replica(one_second, kv_tokens=10), sent([(6, 5)], at=[0]))
    with pytest.raises(InvalidInput, match="12 tokens"):
        simulate(replica(one_second, kv_tokens=10), sent([(6, 6)], at=[0]))


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"output_tokens": np.array([0, 1])}, "/output_tokens"),
        ({"output_tokens": np.array([1])}, "/output_tokens"),
        ({"new_input_tokens": np.array([3, 1])}, "/new_input_tokens"),
        ({"concurrency": 2}, "/concurrency"),
        ({"sent_s": None}, "/concurrency"),
        ({"sent_s": None, "concurrency": 0}, "/concurrency"),
        ({"sent_s": np.array([1.0, 0.0])}, "/sent_s"),
    ],
)
def test_requests_that_cannot_be_are_refused(changes, pointer):
    requests = sent([(2, 3), (2, 3)], at=[0, 1])
    with pytest.raises(InvalidInput, match=pointer):
        replace(requests, **changes)


# Beside the yardstick


def yardstick(of, name, on, ranks, requests):
    """When the slow simulation, on recounted step times, gave first and last tokens."""
    step = ScalarStep(CONFIGS[name], device(on), "vllm", ranks, "bf16")
    slow = Simulation(step, Engine(of.max_num_seqs, of.max_num_batched_tokens, of.front_end_s))
    lengths = list(zip(requests.input_tokens, requests.output_tokens, strict=True))
    if requests.sent_s is not None:
        for at, one in zip(requests.sent_s, lengths, strict=True):
            slow._send(at, *map(int, one))
    left = iter(lengths if requests.sent_s is None else ())
    for one in islice(left, requests.concurrency):
        slow._send(0.0, *map(int, one))
    while len(slow.finished) < len(requests):
        for one in islice(left, slow._advance()):
            slow._send(slow.now, *map(int, one))
    return np.array([(each.first, each.done) for each in slow.requests]).T


@pytest.mark.parametrize(
    ("name", "on", "ranks", "serving"),
    [
        ("llama-3.1-8b", "h100", 1, {}),
        ("llama-3.1-8b", "h100", 2, {"max_num_batched_tokens": 512}),
        ("llama-3.1-70b", "h100", 8, {"max_num_seqs": 20}),
        ("qwen3-30b-a3b", "h200", 1, {"max_num_batched_tokens": 2048}),
    ],
)
@pytest.mark.parametrize(
    "load", [{"concurrency": 24}, {"concurrency": 3}, {"request_rate_per_s": 3.0}]
)
def test_first_and_last_tokens_come_when_a_simulation_step_by_step_has_them(
    name, on, ranks, serving, load
):
    of = served_by(name, on, 0.017, serving, tensor_parallel=ranks)
    mix = workload(Length(900, 2000), Length(120, 300), **load)
    requests = sample_requests(mix, 150, np.random.default_rng(5))
    at_least_two = np.maximum(requests.output_tokens, 2)
    requests = replace(requests, output_tokens=at_least_two)
    run = simulate(of, requests)
    assert run.evictions == 0
    first, done = yardstick(of, name, on, ranks, requests)
    np.testing.assert_allclose(run.first_token_s, first, rtol=1e-8)
    np.testing.assert_allclose(run.done_s, done, rtol=1e-8)


def block_by_block(of, blocks, requests):
    """When first and last tokens come, and how many are evicted: steps of a second each, in a pool
    of whole blocks. Every sequence is [index, prompt, computed, generated]."""
    size = of.pages.caches[0].block_tokens
    waiting = [[i, n, 0, 0] for i, n in enumerate(requests.input_tokens.tolist())]
    running: list[Any] = []
    outputs, evicted, now = requests.output_tokens.tolist(), 0, 0
    first, done = [0] * len(requests), [0] * len(requests)

    def taken(one):
        _, prompt, computed, generated = one
        tokens = prompt if computed < prompt else requests.input_tokens[one[0]] + generated
        return -(-int(tokens) // size)

    while waiting or running:
        pressed = False
        while sum(map(taken, running)) > blocks:
            index, _, _, generated = running.pop()
            waiting.insert(0, [index, int(requests.input_tokens[index]) + generated, 0, generated])
            evicted, pressed = evicted + 1, True
        budget = of.max_num_batched_tokens - sum(one[2] == one[1] for one in running)
        decoding = [one for one in running if one[2] == one[1]]
        in_work = [one for one in running if one[2] < one[1]]
        while budget > 0:
            if not in_work:
                full = len(running) == of.max_num_seqs or pressed or not waiting
                if full or sum(map(taken, [*running, waiting[0]])) > blocks:
                    break
                running.append(waiting.pop(0))
                in_work = [running[-1]]
            one = in_work.pop(0)
            share = min(budget, one[1] - one[2])
            one[2] += share
            budget -= share
            if one[2] == one[1]:
                decoding.append(one)
        now += 1
        for one in decoding:
            one[3] += 1
            first[one[0]] = first[one[0]] or now
            if one[3] == outputs[one[0]]:
                done[one[0]] = now
                running.remove(one)
    return np.array(first), np.array(done), evicted


@pytest.mark.parametrize("block", [1, 16])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_crowded_cache_evicts_as_a_pool_dealt_out_block_by_block(block, seed):
    """Exactly so where a block is a token; in larger ones, half of each last block is counted."""
    pages = Paging((PagedCache(1.0, UNBOUNDED, block),), 0.0, 0, block)
    mix = workload(Length(300, 700), Length(200, 500), saturate=True)
    requests = sample_requests(mix, 200, np.random.default_rng(seed))
    of = ReplicaModel(one_second, 6400.0, pages, 40, 512)
    run = simulate(of, requests)
    first, done, evicted = block_by_block(of, 6400 // block, requests)
    assert evicted > 50
    if block == 1:
        assert run.evictions == evicted
        np.testing.assert_allclose(run.first_token_s, first)
        np.testing.assert_allclose(run.done_s, done)
    assert run.evictions == pytest.approx(evicted, rel=0.2)
    assert run.duration == pytest.approx(done.max(), rel=0.02)
    assert run.ttft.mean() == pytest.approx(first.mean(), rel=0.03)


# Many steps at once


def one_by_one(seconds, steps):
    """Every step in a piece of its own."""
    for index in range(steps):
        yield 1, seconds(index), seconds(index)


@examples(40)
@given(served_layouts(), st.integers(0, 99), st.sampled_from([0.3, 0.8, 3.0]), st.booleans())
def test_steps_taken_at_once_end_when_steps_taken_one_by_one_do(served, seed, load, tight):
    of, on = served
    step = StepModel(of, [on], "vllm").step_function()
    kv_tokens = 3000 if tight else 1e9
    target = replica(step, kv_tokens, seqs=8, budget=700, front_end=1e-3)
    one = 60 * step(8, 500, 0, 0, 0, 0) + step(0, 0, 300, 45_000, 0, 1)
    mix = workload(Length(300, 700), Length(60, 150), request_rate_per_s=8 * load / one)
    requests = sample_requests(mix, 40, np.random.default_rng(seed))
    fast = simulate(target, requests)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulator, "linear_pieces", one_by_one)
        slow = simulate(target, requests)
    assert fast.evictions == slow.evictions
    np.testing.assert_allclose(fast.first_token_s, slow.first_token_s, rtol=1e-8)
    np.testing.assert_allclose(fast.done_s, slow.done_s, rtol=1e-8)
    for level in (0.5, 0.95, 0.99):
        assert fast.itl(level) == pytest.approx(slow.itl(level), rel=1e-6)
    assert fast.in_service == pytest.approx(slow.in_service, rel=1e-8)
    assert len(fast.iterations.count) <= len(slow.iterations.count)


@examples(60)
@given(
    st.lists(st.tuples(st.integers(1, 500), st.floats(0, 1e-5)), min_size=1, max_size=3),
    st.integers(1, 1000),
)
def test_pieces_of_a_bent_line_have_its_sum(bends, steps):
    def seconds(index):
        return 1e-3 + sum(slope * max(0, index - start) for start, slope in bends)

    pieces = list(linear_pieces(seconds, steps))
    assert sum(count for count, _, _ in pieces) == steps
    total = sum(count * (first + last) / 2 for count, first, last in pieces)
    assert total == pytest.approx(sum(map(seconds, range(steps))), rel=1e-7)


@examples(100)
@given(st.integers(1, 300), st.floats(1e-4, 1), st.floats(0, 1), st.floats(0, 1.2))
def test_a_piece_is_left_at_the_first_step_that_ends_at_the_time(count, first, more, share):
    last = first * (1 + more * (count > 1))
    ends = np.cumsum(np.linspace(first, last, count))
    target = share * ends[-1]
    expected = min(int(np.searchsorted(ends, target * (1 - 1e-9))) + 1, count)
    taken = steps_until(target, count, first, last)
    assert taken == expected or ends[min(expected, count) - 1] == pytest.approx(target)


# What always holds


@examples(40)
@given(served_layouts(), st.integers(0, 99), st.sampled_from([0.5, 2.0]), st.booleans())
def test_what_a_run_must_keep_to(served, seed, load, closed):
    of, on = served
    steps = StepModel(of, [on], "vllm")
    step = steps.step_function()
    target = replica(step, kv_tokens=4000, seqs=12, budget=512, front_end=2e-3)
    rate = load / (20 * step(6, 400, 256, 60_000, 0, 1))
    kind = {"concurrency": 20} if closed else {"request_rate_per_s": rate}
    mix = workload(Length(300, 700), Length(60, 150), prefix_cache_hit=0.25, **kind)
    requests = sample_requests(mix, 60, np.random.default_rng(seed))
    run = simulate(target, requests)
    rows, outputs = run.iterations, requests.output_tokens

    assert (run.first_token_s > run.sent_s + target.front_end_s).all()
    assert (run.done_s >= run.first_token_s).all()
    assert (rows.start_s[1:] >= (rows.start_s + rows.seconds)[:-1] * (1 - 1e-12)).all()
    assert (rows.held_bytes <= target.kv_bytes).all()
    assert (rows.decode + rows.prompts <= target.max_num_seqs).all()
    assert (rows.decode + rows.prefill <= target.max_num_batched_tokens).all()

    decoded = (rows.count * rows.decode).sum()
    assert decoded + len(run.interrupted_s) == (outputs - 1).sum()
    computed = (rows.count * rows.prefill).sum()
    assert computed >= requests.new_input_tokens.sum()
    assert run.evictions or computed == requests.new_input_tokens.sum()

    gaps = (rows.decode * rows.seconds).sum() + run.interrupted_s.sum()
    assert gaps == pytest.approx((run.done_s - run.first_token_s).sum())
    busy = rows.decode > 0
    floor = steps.floor(rows.decode[None, busy], rows.context[None, busy])[0]
    assert (rows.first_s[busy] >= floor * (1 - 1e-9)).all()

    ends = np.concatenate([run.done_s, run.sent_s])
    order = np.argsort(ends, kind="stable")
    inside = np.cumsum(np.repeat([-1, 1], len(requests))[order])[:-1]
    area = (inside * np.diff(ends[order])).sum()
    assert run.concurrency * run.duration == pytest.approx(area)  # Little's law
    assert inside.max() <= (20 if closed else len(requests))


def test_sequences_of_other_lengths_hold_no_more_than_counted_at_their_mean():
    """Where windows are filled by some and not by others, the mean length counts too much."""
    pages = Paging((PagedCache(2.0, 100, 16), PagedCache(1.0, UNBOUNDED, 16)), 7.0, 1, 16.0)
    of = ReplicaModel(one_second, 1e9, pages, 100, 512)
    for lengths in ([40, 400], [90, 95, 100], [10, 20, 5000], [400, 900]):
        each = sum(map(pages.held_bytes, lengths))
        counted = of.held_bytes(len(lengths), sum(lengths), 0)
        assert each * (1 - 1e-12) <= counted
        if min(lengths) > 100 or max(lengths) <= 100:
            assert counted == pytest.approx(each)


@pytest.mark.parametrize(
    ("name", "on", "split"),
    [
        ("llama-3.1-8b", "h100", {}),
        ("llama-3.1-70b", "h200", {"tensor_parallel": 4}),
        ("deepseek-v3", "h200", {"tensor_parallel": 16, "weights": "fp8_block"}),
    ],
)
def test_a_replica_holds_what_the_memory_fit_says(name, on, split):
    of, where = model(name), layout(on, **split)
    settings = engine_settings(Serving(), where.hardware, where.split, 4096)
    load = workload(1000, 500, concurrency=1)
    fit = memory_fit(of, [where], [settings], load)
    target = replica_model(of, where, settings)
    most = int(fit.max_concurrency.item())
    context = load.live_context
    assert target.kv_bytes == fit.kv_cache.item()
    assert target.held_bytes(most, most * context, 0) <= target.kv_bytes
    assert target.held_bytes(most + 1, (most + 1) * context, 0) > target.kv_bytes


# Limits that are known


@pytest.mark.parametrize("utilization", [0.4, 0.8])
@pytest.mark.parametrize("outputs", [Length(20), Length(20, 50)])
def test_one_sequence_at_a_time_waits_as_pollaczek_and_khinchine_say(utilization, outputs):
    """M/G/1: the mean wait is rate * E[S^2] / (2 (1 - rate * E[S])), S one step a token."""
    mix = workload(Length(8), outputs, request_rate_per_s=utilization / 20)
    requests = sample_requests(mix, 40_000, np.random.default_rng(3))
    assert requests.sent_s is not None
    run = simulate(replica(one_second, seqs=1), requests)
    service = requests.output_tokens.astype(float)
    rate = len(requests) / requests.sent_s[-1]
    wait = rate * (service**2).mean() / (2 * (1 - rate * service.mean()))
    assert run.ttft.mean() - 1 == pytest.approx(wait, rel=0.06)


@pytest.mark.parametrize("clients", [1, 7, 32])
def test_prompts_that_come_at_once_are_computed_one_after_the_other(clients):
    """A prompt fills a step, so that the i-th has its token after i prompts: (c + 1) / 2 of them on
    average."""
    of = served_by("llama-3.1-8b", "h100", 0.01, {"max_num_batched_tokens": 2048})
    run = simulate(of, sent([(2048, 1)] * clients, concurrency=clients))
    prompt = ScalarStep(CONFIGS["llama-3.1-8b"], device("h100"), "vllm", 1, "bf16").seconds(
        0, 0, 2048, 2048 * 2049 / 2, 0, 1
    )
    np.testing.assert_allclose(run.ttft, 0.01 + prompt * np.arange(1, clients + 1), rtol=1e-9)
    assert run.ttft.mean() == pytest.approx(0.01 + prompt * (clients + 1) / 2)


# Drawn requests


def test_drawn_lengths_have_the_mean_and_p95_of_the_workload():
    mix = workload(Length(1000, 2500), Length(300), saturate=True)
    requests = sample_requests(mix, 200_000, np.random.default_rng(1))
    assert requests.input_tokens.mean() == pytest.approx(1000, rel=0.01)
    assert np.quantile(requests.input_tokens, 0.95) == pytest.approx(2500, rel=0.01)
    assert set(requests.output_tokens.tolist()) == {300}
    assert requests.concurrency == 200_000


def test_benchmarks_draw_lengths_evenly_from_a_range():
    mix = workload(1000, 100, concurrency=8, prefix_cache_hit=0.5)
    requests = sample_requests(
        mix, 50_000, np.random.default_rng(1), input_range=(800, 1000), output_range=(1, 3)
    )
    assert (requests.input_tokens.min(), requests.input_tokens.max()) == (800, 1000)
    assert requests.input_tokens.mean() == pytest.approx(900, rel=0.005)
    np.testing.assert_allclose(np.bincount(requests.output_tokens)[1:] / 50_000, 1 / 3, atol=0.01)
    assert (abs(requests.new_input_tokens - requests.input_tokens / 2) <= 0.5).all()


@pytest.mark.parametrize("cv", [0.0, 0.5, 1.0, 3.0])
def test_times_between_arrivals_vary_as_asked(cv):
    mix = workload(10, 10, request_rate_per_s=4.0, arrival_cv=cv)
    times = sample_requests(mix, 200_000, np.random.default_rng(2)).sent_s
    assert times is not None
    between = np.diff(times)
    assert between.mean() == pytest.approx(0.25, rel=0.03)
    assert between.std() / between.mean() == pytest.approx(cv, rel=0.03, abs=1e-9)


def test_the_same_seed_draws_the_same_requests():
    mix = workload(Length(500, 900), Length(50, 90), request_rate_per_s=4.0)
    one, same, other = (sample_requests(mix, 50, np.random.default_rng(s)) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.input_tokens, same.input_tokens)
    np.testing.assert_array_equal(one.sent_s, same.sent_s)
    assert (one.input_tokens != other.input_tokens).any()
