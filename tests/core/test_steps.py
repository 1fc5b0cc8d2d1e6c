"""The time of one step: against a scalar recount, and what must hold on any machine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.layouts import Layout, Split
from advisor.core.roofline import (
    ON_ARRAYS,
    ON_FLOATS,
    experts_read,
    pairs_in_window,
    slowest_rank_experts,
)
from advisor.core.steps import CAUSES, StepModel, expected_maximum
from tests.core.profiles import CONFIGS, device, layout, model
from tests.core.scalar import ScalarStep
from tests.core.strategies import examples, served_layouts, spread

BATCHES = np.array([[1.0, 2.0, 7.0, 33.0, 256.0, 1024.0]])


def at(value):
    return np.array([[float(value)]])


def step_seconds(steps, decode, context=1000, prefill=0, before=0):
    """A step that computes `prefill` tokens of one prompt after `before` of its tokens."""
    pairs = prefill * (before + (prefill + 1) / 2)
    last = 1 if prefill else 0
    columns = map(at, (decode, context, prefill, pairs, before, last))
    return steps.times(*columns).total.item()


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("on", ["h100", "mi300x", "a100"])
@pytest.mark.parametrize("ranks", [1, 4, 8])
def test_step_and_floor_agree_with_a_recount_from_the_config(name, on, ranks):
    own = model(name).architecture.weights_precision
    for storage in dict.fromkeys([own] if own == "mxfp4" else [own, "int4_awq", "fp8"]):
        split = layout(on, tensor_parallel=ranks, weights=storage)
        steps = StepModel(model(name), [split], "vllm")
        recount = ScalarStep(CONFIGS[name], device(on), "vllm", ranks, storage)
        for decode, context, prefill, before in [
            (1, 1, 0, 0), (64, 2000, 0, 0), (300, 500, 0, 0), (0, 1, 3000, 0),
            (17, 900, 4096, 8192),
        ]:  # fmt: skip
            pairs = prefill * (before + (prefill + 1) / 2)
            arguments = (decode, context, prefill, pairs, before, 1 if prefill else 0)
            times = steps.times(*map(at, arguments)).total.item()
            assert times == pytest.approx(recount.seconds(*arguments), rel=1e-9)
            floor = steps.floor(at(decode), at(context)).item()
            assert floor == pytest.approx(recount.floor(decode, context), rel=1e-9)


@examples(80)
@given(served_layouts(), spread(1, 100_000))
def test_no_decode_step_is_faster_than_its_floor(served, context):
    of, on = served
    steps = StepModel(of, [on], "vllm")
    none = np.zeros_like(BATCHES)
    times = steps.times(BATCHES, at(context), none, none, none, none).total
    floor = steps.floor(BATCHES, at(context))
    assert (floor > 0).all()
    assert (times >= floor * (1 - 1e-12)).all()


@examples(60)
@given(served_layouts(), st.integers(0, 500), spread(1, 50_000), st.integers(0, 16_000))
def test_the_shares_of_a_step_sum_to_one(served, decode, context, prefill):
    of, on = served
    steps = StepModel(of, [on], "vllm")
    last = float(prefill > 0)
    tokens = max(decode, 1)
    columns = map(at, (tokens, context, prefill, prefill**2 / 2, 0, last))
    shares = steps.times(*columns).shares()
    assert tuple(shares) == CAUSES
    assert all(share.min() >= 0 for share in shares.values())
    assert sum(share.item() for share in shares.values()) == pytest.approx(1, abs=1e-12)


@examples(80)
@given(served_layouts(), st.integers(1, 600), spread(1, 20_000), st.integers(1, 16_000))
def test_a_mixed_step_takes_no_longer_than_its_two_halves_and_no_less_than_either(
    served, decode, context, prefill
):
    of, on = served
    steps = StepModel(of, [on], "vllm")
    mixed = step_seconds(steps, decode, context, prefill)
    alone = step_seconds(steps, decode, context), step_seconds(steps, 0, context, prefill)
    assert mixed <= sum(alone) * (1 + 1e-9)
    assert mixed >= max(alone) * (1 - 1e-9)


@examples(60)
@given(served_layouts(), spread(1, 20_000))
def test_a_larger_batch_never_takes_less_time_nor_more_for_each_sequence(served, context):
    of, on = served
    steps = StepModel(of, [on], "vllm")
    none = np.zeros_like(BATCHES)
    times = steps.times(BATCHES, at(context), none, none, none, none).total
    assert (np.diff(times) >= -1e-12 * times[:, 1:]).all()
    assert (np.diff(times / BATCHES) <= 1e-12).all()


@examples(40)
@given(served_layouts(), st.integers(100, 8000), st.integers(2, 16))
def test_cutting_a_prompt_into_chunks_never_makes_it_faster(served, prompt, chunks):
    of, on = served
    steps = StepModel(of, [on], "vllm")
    whole = step_seconds(steps, 0, prefill=prompt)
    size = prompt / chunks
    cut = sum(step_seconds(steps, 0, prefill=size, before=i * size) for i in range(chunks))
    assert cut >= whole * (1 - 1e-9)


@pytest.mark.parametrize("name", ["llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v3"])
def test_a_pipeline_reads_weights_for_each_microbatch_so_it_does_not_shorten_tpot(name):
    of = model(name)
    for stages in (2, 4, 8):
        deep = StepModel(of, [layout("h200", pipeline_parallel=stages, tensor_parallel=8)], "vllm")
        flat = StepModel(of, [layout("h200", tensor_parallel=8)], "vllm")
        assert step_seconds(deep, 1) > step_seconds(flat, 1)
        assert deep.floor(at(1), at(100)).item() >= flat.floor(at(1), at(0)).item()


def test_a_pipeline_computes_as_many_prompts_at_once_as_it_has_stages():
    """Of 80 equal layers: four prompts in a cycle of four stages take as long as one passes, but
    for the LM head at the end."""
    deep = StepModel(model("llama-3.1-70b"), [layout("h200", pipeline_parallel=4)], "vllm")
    step, pairs = deep.step_function(), 2048 * 2049 / 2
    one = step(0, 0, 2048, pairs, 0, 1)
    assert step(0, 0, 4 * 2048, 4 * pairs, 0, 4) == pytest.approx(one, rel=0.02)
    assert step(0, 0, 8 * 2048, 8 * pairs, 0, 8) > 1.9 * one


@examples(60)
@given(
    st.integers(2, 512).flatmap(lambda e: st.tuples(st.just(e), st.integers(1, e - 1))),
    spread(1, 20_000),
)
def test_experts_read_lie_between_one_tokens_and_all(experts_and_chosen, tokens):
    experts, chosen = experts_and_chosen
    read = experts_read(experts, chosen, at(tokens)).item()
    assert chosen * (1 - 1e-9) <= read <= min(experts, chosen * tokens) * (1 + 1e-9)


@pytest.mark.parametrize("experts", [1, 2, 8])
def test_a_token_that_uses_all_experts_reads_all(experts):
    assert experts_read(experts, experts, at(1)).item() == experts
    assert experts_read(experts, experts, at(100)).item() == experts


@pytest.mark.parametrize(("tokens", "ratio"), [(1, 2.56), (16, 1.31), (64, 1.09)])
def test_the_busiest_of_eight_ranks_reads_more_experts_than_the_mean(tokens, ratio):
    """Largest over mean of 256 experts, 8 a token, counted over random routings."""
    read = experts_read(256, 8, at(tokens))
    most = slowest_rank_experts(256, read, at(8), expected_maximum(at(8)), ON_ARRAYS)
    share = most.item() / (read.item() / 8)
    assert share == pytest.approx(ratio, rel=0.12)


def test_every_sequence_of_a_step_costs_as_much_on_one_device_as_on_another_of_its_kind():
    many = [layout("h100", tensor_parallel=n) for n in (1, 2, 4, 8)]
    together = StepModel(model("llama-3.1-70b"), many, "vllm")
    none = np.zeros_like(BATCHES)
    rows = together.times(BATCHES, at(700), none, none, none, none).total
    for row, one in zip(rows, many, strict=True):
        alone = StepModel(model("llama-3.1-70b"), [one], "vllm")
        times = alone.times(BATCHES, at(700), none, none, none, none).total
        np.testing.assert_allclose(row, times[0], rtol=1e-12)


def test_layouts_of_different_depth_are_evaluated_together_as_alone():
    deep = [layout("h100", tensor_parallel=8, pipeline_parallel=n) for n in (1, 3, 2)]
    together = StepModel(model("qwen3-30b-a3b"), deep, "vllm")
    context = np.array([[500.0], [700.0], [900.0]])
    rows = together.times(BATCHES, context, *[np.zeros_like(BATCHES)] * 4).total
    floors = together.floor(BATCHES, context)
    for i, one in enumerate(deep):
        alone = StepModel(model("qwen3-30b-a3b"), [one], "vllm")
        times = alone.times(BATCHES, context[[i]], *[np.zeros_like(BATCHES)] * 4).total
        np.testing.assert_allclose(rows[i], times[0], rtol=1e-12)
        np.testing.assert_allclose(floors[i], alone.floor(BATCHES, context[[i]])[0], rtol=1e-12)


@examples(80)
@given(
    served_layouts(), st.integers(1, 300), spread(1, 20_000), st.integers(0, 8000), st.booleans()
)
def test_steps_of_floats_take_as_long_as_those_of_arrays(served, decode, context, prefill, apart):
    of, on = served
    split = on.split
    if apart and split.tensor_parallel > 1:
        groups = split.tensor_parallel
        on = Layout(on.hardware, replace(split, attention_data_parallel=groups))
    together = StepModel(of, [layout(on.hardware), on], "vllm")
    for prompts in (0, 1, 3):
        columns = (decode, context, prefill, prefill * 700.0, 0.3 * prefill, prompts)
        times = together.times(*map(at, columns)).total[:, 0]
        one_by_one = [together.step_function(i)(*columns) for i in range(2)]
        np.testing.assert_allclose(one_by_one, times, rtol=1e-12)


def test_steps_of_floats_exchange_the_parts_of_a_context_too():
    split = layout("h200", tensor_parallel=16, decode_context_parallel=8, weights="fp8_block")
    steps = StepModel(model("deepseek-v3"), [split], "vllm")
    columns = (64, 3000, 0, 0, 0, 0)
    alone = replace(split, split=replace(split.split, decode_context_parallel=1))
    whole = StepModel(model("deepseek-v3"), [alone], "vllm")
    assert steps.step_function()(*columns) == pytest.approx(
        steps.times(*map(at, columns)).total.item(), rel=1e-12
    )
    assert steps.times(*map(at, columns)).interconnect > whole.times(*map(at, columns)).interconnect


def test_a_slow_link_makes_tensor_parallelism_slower_than_one_accelerator():
    on = device("l40s")
    one = StepModel(model("llama-3.1-8b"), [layout(on)], "vllm")
    eight = StepModel(model("llama-3.1-8b"), [layout(on, tensor_parallel=8)], "vllm")
    assert step_seconds(eight, 0, prefill=8192) > step_seconds(one, 0, prefill=8192) / 2
    links = eight.times(*map(at, (1, 1, 8192, 8192 * 4096, 0, 1)))
    assert links.interconnect.item() > links.compute.item()


def test_two_accelerators_of_a_mesh_use_one_link_and_all_of_a_switch_the_whole():
    mesh, switch = device("mi300x"), device("h100")
    pair = StepModel(model("llama-3.1-70b"), [Layout(mesh, Split(2))], "vllm")
    of_switch = StepModel(model("llama-3.1-70b"), [Layout(switch, Split(2))], "vllm")
    columns = list(map(at, (1, 1, 8192, 8192 * 4096, 0, 1)))
    ratio = pair.times(*columns).interconnect / of_switch.times(*columns).interconnect
    assert ratio.item() == pytest.approx(7 * 450 / 448, rel=0.03)  # latencies are alike


@pytest.mark.parametrize("before", [0, 3, 10, 40])
@pytest.mark.parametrize("tokens", [0, 1, 7, 30])
@pytest.mark.parametrize("window", [1, 8, 16])
def test_pairs_in_a_window_are_those_counted_one_by_one(before, tokens, window):
    expected = sum(min(before + i, window) for i in range(1, tokens + 1))
    assert pairs_in_window(before, tokens, window, ON_FLOATS) == expected
