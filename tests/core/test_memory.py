"""Weights and KV cache on each rank: against a recount, and how they split."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.catalog.loader import model_documents
from advisor.core.engines import engine_settings
from advisor.core.layouts import Layout, Split, split_layers, stage_loads
from advisor.core.memory import activation_bytes, kv_cache_bytes, memory_fit
from advisor.core.model import ModelProfile
from advisor.core.precision import KV_BYTES
from advisor.core.workload import Serving
from tests.core import scalar
from tests.core.profiles import CONFIGS, answer, device, model, pages, planned, workload
from tests.core.strategies import examples, models, served_layouts

GIB = 2**30


def splits_of(name):
    degrees = [n for n in model(name).valid_tensor_parallel if n <= 16]
    return [Split(n, m, weights="bf16") for n in degrees for m in (1, 3)]


# gpt-oss quantizes its experts alone, and only in its own format.
STORED = [("gpt-oss-120b", "mxfp4")] + [
    (name, storage)
    for name in CONFIGS
    for storage in ("bf16", "fp8", "int4_awq")
    if name != "gpt-oss-120b"
]


@pytest.mark.parametrize(("name", "storage"), STORED)
def test_weights_of_every_rank_agree_with_a_recount_from_the_config(name, storage):
    config = CONFIGS[name]
    for split in splits_of(name):
        ranks, stages = split.tensor_parallel, split.pipeline_parallel
        counted = stage_loads(model(name), Split(ranks, stages, weights=storage))
        layers = scalar.stage_layers(config, stages)
        for stage, mine in zip(counted, layers, strict=True):
            expected = scalar.stage_bytes(config, mine, ranks, storage)
            vectors = sum(2 * scalar.vectors(config, i) for i in mine) + 2 * config["hidden_size"]
            assert expected <= stage.weight_bytes <= expected + vectors
            assert stage.layers == len(mine)


@pytest.mark.parametrize("name", ["qwen3-30b-a3b", "deepseek-v3"])
def test_expert_parallelism_keeps_whole_experts_and_the_same_bytes(name):
    for ranks in (2, 4, 8):
        spread = stage_loads(model(name), Split(ranks, expert_parallel=ranks))[0]
        sliced = stage_loads(model(name), Split(ranks))[0]
        assert spread.weight_bytes == pytest.approx(sliced.weight_bytes, rel=1e-12)
        assert spread.expert_bytes == ranks * sliced.expert_bytes


@pytest.mark.parametrize("name", [name for name in CONFIGS if name != "llama-3.2-3b"])
@pytest.mark.parametrize("stages", [1, 2, 5])
def test_the_ranks_of_a_pipeline_store_the_checkpoint_exactly_once(name, stages):
    shape = model(name).architecture
    stored = sum(each.weight_bytes for each in stage_loads(model(name), Split(1, stages)))
    assert stored == 2 * shape.total_parameters


@pytest.mark.parametrize("name", CONFIGS)
def test_weights_over_all_ranks_never_fall_below_the_checkpoint(name):
    checkpoint = 2 * model(name).architecture.total_parameters
    for split in splits_of(name):
        stages = stage_loads(model(name), split)
        stored = split.tensor_parallel * sum(each.weight_bytes for each in stages)
        assert stored >= checkpoint * (1 - 1e-6)


@examples(40)
@given(models(), st.sampled_from(["bf16", "fp8"]))
def test_weights_and_kv_bytes_of_a_rank_never_rise_with_tensor_parallelism(of, kv_cache):
    degrees = of.valid_tensor_parallel
    loads = [stage_loads(of, Split(n, weights="fp8", kv_cache=kv_cache))[0] for n in degrees]
    weights = [each.weight_bytes for each in loads]
    kept = [pages(each).held_bytes(3000) for each in loads]
    padding = 1 + 64 / of.architecture.vocab_size
    assert all(b <= a * padding for a, b in pairwise(weights))
    assert kept == sorted(kept, reverse=True)
    for ranks, size in zip(degrees, kept, strict=True):
        assert size * ranks >= kept[0] * (1 - 1e-12)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("kv_cache", KV_BYTES)
def test_kv_bytes_per_token_agree_with_a_recount_from_the_config(name, kv_cache):
    config = CONFIGS[name]
    for ranks in model(name).valid_tensor_parallel:
        kept = [scalar.attention(config, i, ranks) for i in range(config["num_hidden_layers"])]
        per_token = sum(each.cached for each in kept) * KV_BYTES[kv_cache]
        assert model(name).kv_bytes_per_token(kv_cache, ranks) == per_token
        stage = stage_loads(model(name), Split(ranks, kv_cache=kv_cache))[0]
        alone = pages(stage, "generic")
        assert alone.held_bytes(100) == pytest.approx((100 + 7.5) * per_token)
        assert alone.admitted_bytes(96, 8192) >= 96 * per_token


@pytest.mark.parametrize("name", ["deepseek-v3", "deepseek-v2-lite"])
def test_a_latent_cache_is_the_same_on_every_rank(name):
    sizes = {model(name).kv_bytes_per_token("bf16", n) for n in (1, 2, 4, 8, 16)}
    assert len(sizes) == 1


@examples(100)
@given(st.integers(1, 200), st.integers(1, 200))
def test_layers_are_dealt_out_evenly_and_the_last_stage_gets_no_extra(layers, stages):
    if stages > layers:
        layers, stages = stages, layers
    sizes = split_layers(layers, stages)
    assert sum(sizes) == layers
    assert max(sizes) - min(sizes) <= 1
    assert sizes[-1] == min(sizes)


@examples(40)
@given(served_layouts())
def test_longer_requests_never_keep_or_reserve_less(served):
    of, on = served
    for stage in stage_loads(of, on.split):
        taken = pages(stage)
        for rule in (taken.held_bytes, lambda n, taken=taken: taken.admitted_bytes(n, 2048)):
            sizes = [rule(n) for n in (1, 16, 17, 100, 127, 128, 129, 5000, 100_000)]
            assert sizes == sorted(sizes)


def test_the_tightest_stage_sets_the_capacity_of_a_pipeline():
    """33 layers in two stages: the one with 17 layers holds less, and nothing is pooled."""
    uneven = planned(
        "llama-3.1-70b", "h100", workload(2000, 500, saturate=True),
        limits={"tensor_parallel": (4,), "pipeline_parallel": (1, 3)},
        weights=("fp8",),
    )  # fmt: skip
    memory = uneven.evaluator.memory
    stages = [layout.split.pipeline_parallel for layout in uneven.evaluator.layouts]
    deep = stages.index(3)
    loads = stage_loads(uneven.request.model, uneven.evaluator.layouts[deep].split)
    context = uneven.request.workload.live_context
    most = max(pages(load).held_bytes(context) for load in loads)
    assert memory.max_concurrency[deep] <= memory.kv_cache[deep] / most * (1 + 1e-9)


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("qwen3-32b", 1), ("qwen3-32b", 8), ("gpt-oss-120b", 1), ("gpt-oss-120b", 4),
        ("mistral-7b", 2), ("deepseek-v3", 8),
    ],
)  # fmt: skip
def test_capacity_in_tokens_times_bytes_stays_within_the_cache_of_each_gpu(name, ranks):
    """One answer has one capacity: tokens of a replica, each kept on every rank that needs it."""
    given_ranks = {"tensor_parallel": (ranks,), "expert_parallel": (1,)}
    found = answer(
        name,
        "mi300x",
        workload(3000, 600, saturate=True),
        limits=given_ranks,
        weights=("mxfp4" if name == "gpt-oss-120b" else "int4_awq",),
    )
    memory = found["candidates"][0]["memory"]
    per_token = model(name).kv_bytes_per_token("bf16", ranks)
    if name in ("qwen3-32b", "deepseek-v3"):
        assert memory["kv_capacity_tokens"] * per_token <= memory["kv_cache_gib"] * GIB * 1.00001
        assert memory["kv_capacity_tokens"] * per_token >= memory["kv_cache_gib"] * GIB * 0.999
    parts = [memory[f"{part}_gib"] for part in ("weights", "activation", "reserve", "kv_cache")]
    assert sum(parts) == pytest.approx(191.7, rel=1e-4)
    mean_context = 3000 + 600 / 2
    slots, unused = memory["max_concurrency"], 7.5
    assert slots * mean_context <= memory["kv_capacity_tokens"]
    assert memory["kv_capacity_tokens"] <= (slots + 1) * (mean_context + unused) + 1


def test_a_shared_prefix_is_kept_once_and_leaves_room_for_more_requests():
    def concurrency(hit):
        load = workload(4000, 200, saturate=True, prefix_cache_hit=hit)
        found = planned(load=load, limits={"tensor_parallel": (1,)})
        return found.evaluator.memory.max_concurrency[0]

    without, half, whole = concurrency(0.0), concurrency(0.5), concurrency(1.0)
    assert without < half < whole
    unused = 7.5
    assert half == pytest.approx((without * (4100 + unused) - 2000) / (2100 + unused), rel=1e-9)


@pytest.mark.parametrize("name", ["mistral-7b", "gpt-oss-120b"])
@pytest.mark.parametrize("hit", [0.5, 0.9, 1.0])
def test_a_prefix_longer_than_the_window_can_be_shared(name, hit):
    """A model of windows alone keeps the window of each request, however long the prefix is."""
    load = workload(20_000, 300, saturate=True, prefix_cache_hit=hit)
    found = answer(name, "h200", load, limits={"tensor_parallel": (1,)})
    memory = found["recommended"]["memory"]
    assert 1 <= memory["max_concurrency"] < 10**7
    assert memory["kv_capacity_tokens"] < 10**9


def test_a_smaller_cache_format_holds_twice_as_much():
    found = planned(kv_cache=("bf16", "fp8"), limits={"tensor_parallel": (1,)})
    wide, narrow = found.evaluator.memory.max_concurrency
    assert narrow == pytest.approx(2 * wide)


WINDOWS_FIRST = {
    "model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 18, "num_attention_heads": 32, "num_key_value_heads": 32,
    "head_dim": 128, "vocab_size": 32000, "max_position_embeddings": 131072,
    "sliding_window": 8192, "layer_types": 12 * ["sliding_attention"] + 6 * ["full_attention"],
    "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip


def test_every_stage_of_a_pipeline_has_to_hold_a_request():
    """131,072 tokens take 12 GiB of 6 layers (16 KiB a token and layer), and 7 GiB are left beside
    them; the 12 layers with windows hold fewer short requests, but any length."""
    of = ModelProfile.from_mapping({"name": "windows-first", "hf_config": WINDOWS_FIRST})

    def plan(memory_gib):
        on = replace(device("h100"), memory_gib=memory_gib)
        return planned(
            of, on, workload(1000, 100, saturate=True), objective="throughput",
            limits={"tensor_parallel": (1,), "pipeline_parallel": (2,)},
            serving={
                "pipeline_layers": (12, 6), "max_model_len": 131_072, "max_num_seqs": 64,
                "max_num_batched_tokens": 256,
            },
        )  # fmt: skip

    (refused,) = plan(13.66).rejected
    assert refused.code == "does_not_fit"
    assert "needs 12.00 GiB" in refused.detail
    memory = plan(22.0).evaluator.memory
    assert memory.fits.tolist() == [True]
    assert memory.need[0] < 12 * GIB  # what is shown is the stage that holds fewest requests


def test_a_stage_that_fits_by_less_than_the_error_makes_the_plan_uncertain():
    fits = {}
    of = ModelProfile.from_mapping({"name": "windows-first", "hf_config": WINDOWS_FIRST})
    for tenths in range(150, 230):
        layout = Layout(
            replace(device("h100"), memory_gib=tenths / 10), Split(1, 2, pipeline_layers=(12, 6))
        )
        ask = Serving(max_model_len=131_072, max_num_seqs=64, max_num_batched_tokens=256)
        found = [engine_settings(ask, layout.hardware, layout.split, 0)]
        memory = memory_fit(of, [layout], found, workload(1000, 100, saturate=True))
        second = stage_loads(of, layout.split)[1]
        activation = activation_bytes(of, found[0], second)
        left = kv_cache_bytes(layout, found[0], second.weight_bytes, activation)
        assert memory.fits[0] == (left.value >= 12 * GIB)
        fits[tenths] = (memory.fits[0], memory.uncertain[0])
        if memory.fits[0]:
            assert memory.uncertain[0] == (left.low < 12 * GIB)
    assert len(set(fits.values())) == 3


def test_fewer_sequences_are_proposed_where_their_logits_leave_no_room():
    """65,536 sequences of 128,256 logits at 38.6 bytes would be 302 GiB."""
    serving = {"max_num_seqs": 65_536, "max_num_batched_tokens": 65_536, "sampler": "pytorch"}
    fixed = {"tensor_parallel": (1,)}
    (refused,) = answer("llama-3.1-8b", "h100", limits=fixed, serving=serving)["rejected"]
    assert refused["code"] == "does_not_fit"
    proposed = int(re.findall(r"With max_num_seqs (\d+) it fits", refused["remedy"])[0])
    for seqs, rejections in ((proposed, 0), (2 * proposed, 1)):
        found = answer("llama-3.1-8b", "h100", limits=fixed,
                       serving=serving | {"max_num_seqs": seqs})  # fmt: skip
        assert len(found["rejected"]) == rejections


def test_a_default_that_is_lowered_to_the_blocks_of_state_is_told():
    hybrid = next(each for each in model_documents() if each["name"].startswith("qwen3-next"))
    of = ModelProfile.from_mapping(hybrid)
    found = answer(
        of, replace(device("h100"), memory_gib=43.0), workload(1000, 200, saturate=True),
        objective="throughput", limits={"tensor_parallel": (4,), "expert_parallel": (1,)},
    )  # fmt: skip
    started = found["recommended"]["serving"]["max_num_seqs"]
    (told,) = [w for w in found["warnings"] if w["code"] == "default_max_num_seqs_lowered"]
    assert 1 < started < 256  # 43 GiB a rank hold 37.2 of weights
    assert f"start it with max_num_seqs {started}" in told["detail"]


@pytest.mark.parametrize("memory_gib", [43.0, 44.2])
def test_the_sequences_proposed_for_a_recurrent_model_have_a_block_of_state_each(memory_gib):
    hybrid = next(each for each in model_documents() if each["name"].startswith("qwen3-next"))
    of = ModelProfile.from_mapping(hybrid)

    def rejected(sequences):
        return answer(
            of, replace(device("h100"), memory_gib=memory_gib), workload(1000, 200, saturate=True),
            objective="throughput", limits={"tensor_parallel": (4,), "expert_parallel": (1,)},
            serving={"max_num_seqs": sequences},
        )["rejected"]  # fmt: skip

    (refused,) = rejected(1024)
    proposed = int(re.findall(r"max_num_seqs (?:to )?(\d+)", refused["remedy"])[0])
    assert proposed >= 128
    assert rejected(proposed) == []
