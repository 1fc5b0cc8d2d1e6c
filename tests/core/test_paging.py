"""Blocks of the KV cache: against a pool that is filled block by block, and by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.engines import engine_settings
from advisor.core.layouts import CacheLoad, Split, stage_loads
from advisor.core.mixers import UNBOUNDED
from advisor.core.model import ModelProfile
from advisor.core.paging import paging
from advisor.core.workload import Serving
from tests.core.profiles import config, device, model, pages
from tests.core.strategies import examples

MIB = 2**20


def stage(kinds, states=(0, 0.0)):
    """A stage of `(layers, bytes per token, window)` caches and `(layers, bytes)` states."""
    caches = tuple(
        CacheLoad(
            layers=layers, kept=window, read=window, latent=False, kv_bytes=layers * size,
            read_bytes=layers * size, decode_flop=0, prefill_flop=0,
        )
        for layers, size, window in kinds
    )  # fmt: skip
    count, size = states
    base = stage_loads(model("llama-3.1-8b"), Split())[0]
    return replace(base, caches=caches, state_layers=count, state_bytes=count * size)


def admitted_one_by_one(kinds, room, tokens, batched, even_group):
    """Requests that a pool takes before one finds no block, dealing out every block by itself."""
    counts = [layers for layers, _, _ in kinds]
    group = max(counts) if max(counts) < even_group * min(counts) else min(counts)
    page = max(16 * size for _, size, _ in kinds)
    left, admitted = room // (page * group), 0
    while True:
        for layers, size, window in kinds:
            block = 16 * (page // (16 * size))
            for _ in range(0, layers, group):
                kept = tokens if window == UNBOUNDED else int(min(window - 1 + batched, tokens))
                left -= len(range(0, kept, block)) + (window != UNBOUNDED)
        if left < 0:
            return admitted
        admitted += 1


@examples(60)
@given(
    st.integers(1, 12), st.integers(1, 12), st.sampled_from([256, 512, 1024]),
    st.sampled_from([64, 1024]), st.integers(1, 6000),
    st.sampled_from([("0.11.0", 1.0), ("0.12.0", 1.25), ("0.33.0", 1.5)]),
)  # fmt: skip
def test_a_shared_pool_admits_what_fits_block_by_block(
    full, sliding, size, window, tokens, version
):
    kinds = [(full, size, UNBOUNDED), (sliding, 512, float(window))]
    taken = pages(stage(kinds), engine_version=version[0])
    blocks = 64 * MIB // taken.block_bytes
    one = taken.admitted_bytes(tokens, 512)
    expected = admitted_one_by_one(kinds, 64 * MIB, tokens, 512, version[1])
    assert blocks * taken.block_bytes // one == expected


@pytest.mark.parametrize("engine", ["vllm", "generic", "tensorrt_llm", "sglang"])
def test_a_sequence_leaves_half_its_last_block_empty_on_average(engine):
    taken = pages(stage([(4, 100, UNBOUNDED)]), engine)
    block = taken.caches[0].block_tokens
    blocks = [math.ceil(n / block) * block * 400 for n in range(1, 1 + 50 * block)]
    held = [taken.held_bytes(n) for n in range(1, 1 + 50 * block)]
    assert sum(held) == pytest.approx(sum(blocks))


def test_blocks_grow_until_one_holds_a_recurrent_state():
    """12 attention layers of 1,024 bytes a token and 36 with a state of 548,864 bytes: 544 tokens a
    block, as Qwen3-Next prints at TP 2."""
    taken = pages(stage([(12, 1024, UNBOUNDED)], (36, 548_864)), engine_version="0.11.0")
    assert [(each.block_tokens, each.groups) for each in taken.caches] == [(544, 1)]
    assert taken.state_groups == 3
    assert taken.block_bytes == 544 * 1024 * 12
    assert taken.state_bytes == 3 * taken.block_bytes


def test_before_the_hybrid_manager_a_window_saved_no_memory():
    kinds = [(10, 512, UNBOUNDED), (50, 512, 1024.0)]
    old, new = (pages(stage(kinds), engine_version=v) for v in ("0.9.0", "0.9.2"))
    assert old.admitted_bytes(16_000, 2048) == 60 * 512 * 16_000
    assert new.admitted_bytes(16_000, 2048) < old.admitted_bytes(16_000, 2048) / 3


def test_early_engines_padded_the_rows_of_a_latent_cache():
    """576 values become 640 (DeepSeek-R1 on vLLM 0.7: 78,083 bytes a token as printed)."""
    load = stage_loads(model("deepseek-v3"), Split(8))[0]
    assert pages(load, engine_version="0.7.3").caches[0].kv_bytes == 61 * 640 * 2
    assert pages(load, engine_version="0.8.0").caches[0].kv_bytes == 61 * 576 * 2


def test_context_parallel_ranks_share_out_the_tokens_of_a_sequence():
    """Kimi-K2 over 8 ranks keeps the same latent on each, or an eighth of its tokens."""
    name = "deepseek-v3"
    alone = stage_loads(model(name), Split(8))[0]
    shared = stage_loads(model(name), Split(8, decode_context_parallel=8))[0]
    assert pages(alone).admitted_bytes(1024, 0) == 8 * pages(shared).admitted_bytes(1024, 0)
    assert shared.weight_bytes == alone.weight_bytes


@pytest.mark.parametrize(
    ("engine", "version", "kv_cache", "latent"),
    [
        ("vllm", "0.33.0", "fp8", 656),  # 512 values, 4 scales of 4 bytes, 64 values of 2 bytes
        ("vllm", "0.33.0", "bf16", 1152),
        ("sglang", "0.5.6", "fp8", 656),
        ("generic", None, "fp8", 576),
    ],
)
def test_a_sparse_latent_in_fp8_keeps_its_scales_and_rotary_values(
    engine, version, kv_cache, latent
):
    """DeepSeek-V3.2 (vLLM: MLAAttentionSpec; SGLang: NSATokenToKVPool), and 132 bytes of index."""
    shape = {"model_type": "deepseek_v32", "index_n_heads": 64, "index_head_dim": 128}
    of = ModelProfile.from_mapping(
        {"name": "v3.2", "hf_config": config("deepseek-v3", index_topk=2048, **shape)}
    )
    split = Split(8, kv_cache=kv_cache)
    serving = Serving(engine=engine, engine_version=version)
    found = engine_settings(serving, device("h200"), split, 4096)
    pages = paging(stage_loads(of, split)[0], found)
    assert sum(each.kv_bytes for each in pages.caches) == pytest.approx(61 * (latent + 132))
