"""Figures that anyone can work out from a model's published shape, to the last digit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.core.layouts import Split, stage_loads
from advisor.core.roofline import experts_read
from advisor.core.steps import StepModel
from tests.core.profiles import CONFIGS, IDEAL, device, layout, model, pages


def column(value: float) -> np.ndarray:
    return np.array([[float(value)]])


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("llama-3.1-8b", 8_030_261_248),
        ("llama-3.1-70b", 70_553_706_496),
        ("llama-3.2-3b", 3_212_749_824),
        ("mistral-7b", 7_241_732_096),
        ("qwen2.5-72b", 72_706_203_648),
        ("qwen3-32b", 32_762_123_264),
        ("qwen3-30b-a3b", 30_532_122_624),
        ("mixtral-8x7b", 46_702_792_704),
        ("deepseek-v2-lite", 15_706_484_224),
        ("gpt-oss-120b", 116_829_156_672),
    ],
)
def test_parameters_are_those_of_the_checkpoint(name, parameters):
    assert model(name).architecture.total_parameters == parameters


def test_deepseek_v3_has_its_published_parameters_without_the_draft_layer():
    shape = model("deepseek-v3").architecture
    router_corrections = 58 * 256
    norms = shape.parameters_by_part["norms"]
    assert shape.total_parameters - norms - router_corrections == 671_025_397_760
    assert shape.matmul_parameters == 36_624_596_992


def test_decode_multiplies_the_lm_head_but_not_the_embedding_table():
    shape = model("llama-3.1-8b").architecture
    assert shape.matmul_parameters == 7_504_658_432
    assert shape.total_parameters - shape.matmul_parameters == 128256 * 4096 + 65 * 4096


def test_tied_embeddings_are_stored_once_and_multiplied_all_the_same():
    tied = model("llama-3.2-3b").architecture
    apart = replace(tied, tied_embeddings=False)
    assert apart.total_parameters - tied.total_parameters == 128256 * 3072
    assert apart.matmul_parameters == tied.matmul_parameters


@pytest.mark.parametrize(
    ("name", "bytes_by_ranks"),
    [
        ("llama-3.1-70b", {1: 327_680, 2: 163_840, 4: 81_920, 8: 40_960, 16: 40_960}),
        ("qwen3-32b", {1: 262_144, 2: 131_072, 8: 32_768, 16: 32_768}),
        ("qwen3-30b-a3b", {1: 98_304, 4: 24_576, 8: 24_576}),
        ("deepseek-v3", {1: 70_272, 2: 70_272, 8: 70_272, 128: 70_272}),
        ("deepseek-v2-lite", {1: 31_104, 4: 31_104, 16: 31_104}),
        ("gpt-oss-120b", {1: 73_728, 8: 9_216, 64: 9_216}),
    ],
)
def test_kv_bytes_per_token_on_each_gpu(name, bytes_by_ranks):
    measured = {n: model(name).kv_bytes_per_token("bf16", n) for n in bytes_by_ranks}
    assert measured == bytes_by_ranks
    halved = {n: model(name).kv_bytes_per_token("fp8", n) for n in bytes_by_ranks}
    assert halved == {n: size / 2 for n, size in bytes_by_ranks.items()}


def test_a_sliding_window_stops_adding_bytes_once_it_is_full():
    stage = stage_loads(model("gpt-oss-120b"), Split(weights="mxfp4"))[0]
    held = pages(stage).held_bytes
    short, at_length = held(101) - held(100), held(100_001) - held(100_000)
    assert (short, at_length) == (73_728, 36_864)


def test_admission_reserves_what_vllm_prints_when_it_refuses_gpt_oss():
    stage = stage_loads(model("gpt-oss-120b"), Split(weights="mxfp4"))[0]
    assert pages(stage).admitted_bytes(131_072, 1_024) == 4_874_895_360


@pytest.mark.parametrize(
    ("name", "degrees"),
    [
        ("llama-3.1-8b", (1, 2, 4, 8, 16, 32)),
        ("llama-3.1-70b", (1, 2, 4, 8, 16, 32, 64)),
        ("llama-3.2-3b", (1, 2, 4, 8)),
        ("qwen3-30b-a3b", (1, 2, 4, 8, 16, 32)),
        ("deepseek-v3", (1, 2, 4, 8, 16)),  # 18,432 / 32 = 576 is no multiple of its FP8 blocks
        ("deepseek-v2-lite", (1, 2, 4, 8, 16)),
        ("gpt-oss-120b", (1, 2, 4, 8, 16, 32, 64)),
    ],
)
def test_tensor_parallel_degrees_divide_heads_and_widths(name, degrees):
    assert model(name).valid_tensor_parallel == degrees


def test_an_8b_prefill_is_counted_as_body_one_head_and_causal_pairs():
    """A device that reaches its peak and hides nothing spends exactly FLOP / peak on compute."""
    efficiency = IDEAL | {"overlap_residue": 1.0}
    ideal = replace(device("h100"), efficiency=efficiency)
    step = StepModel(model("llama-3.1-8b"), [layout(ideal)], "vllm")
    tokens, pairs = 8192, 8192 * 8193 / 2
    times = step.times(*map(column, (0, 1, tokens, pairs, 0, 1)))
    assert round(times.compute.item() * 989.4e12) == 131_944_593_489_920
    assert times.compute.item() * 1e3 == pytest.approx(133.358, abs=5e-4)


@pytest.mark.parametrize(("batch", "context", "milliseconds"), [(1, 0, 4.4804), (64, 1125, 7.2975)])
def test_the_decode_floor_of_8b_on_h100(batch, context, milliseconds):
    step = StepModel(model("llama-3.1-8b"), [layout("h100")], "vllm")
    floor = step.floor(column(batch), column(context)).item() * 1e3
    assert floor == pytest.approx(milliseconds, abs=5e-5)


@pytest.mark.parametrize(
    ("experts", "chosen", "tokens", "read"),
    [(128, 8, 32, 111.7710), (256, 8, 64, 222.4425), (128, 4, 16, 50.9811)],
)
def test_experts_that_a_batch_reads(experts, chosen, tokens, read):
    assert experts_read(experts, chosen, column(tokens)).item() == pytest.approx(read, abs=5e-5)


def test_every_config_has_a_kv_cache_and_a_context():
    for name in CONFIGS:
        document = model(name).as_document()
        assert document["kv_cache"]["bytes_per_token_by_precision"]["bf16"] > 0
        assert (
            sum(kind["layers"] for kind in document["kv_cache"]["layers_by_kind"])
            == (CONFIGS[name]["num_hidden_layers"])
        )
