"""Which splits engines refuse, by what they printed, documented or read from their source."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.architecture import Architecture, Layer
from advisor.core.enumeration import Rejection, enumerate_layouts
from advisor.core.mixers import GroupedQueryAttention
from advisor.core.mlps import DenseMlp, MoeMlp
from advisor.core.model import ModelProfile
from advisor.core.parallelism import FORMAT_RULES, context_parallel_faults, tensor_parallel_faults
from tests.core.profiles import CONFIGS, config, model, request
from tests.core.strategies import examples

QWEN3_235B: dict[str, Any] = CONFIGS["qwen3-30b-a3b"] | {
    "hidden_size": 4096,
    "num_hidden_layers": 94,
    "num_attention_heads": 64,
    "intermediate_size": 12288,
    "moe_intermediate_size": 1536,
}
MAMBA: dict[str, Any] = {
    "model_type": "mamba2",
    "hidden_size": 4096,
    "num_hidden_layers": 64,
    "num_heads": 128,
    "head_dim": 64,
    "state_size": 128,
    "n_groups": 8,
    "expand": 2,
    "conv_kernel": 4,
    "vocab_size": 32768,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}

QWEN3_5: dict[str, Any] = {
    "model_type": "qwen3_5_text",
    "hidden_size": 5120,
    "intermediate_size": 17408,
    "num_hidden_layers": 64,
    "layer_types": (3 * ["linear_attention"] + ["full_attention"]) * 16,
    "num_attention_heads": 24,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 48,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "vocab_size": 248320,
    "max_position_embeddings": 262144,
}


def read(hf_config: dict[str, Any]) -> ModelProfile:
    return ModelProfile.from_mapping({"name": "any", "hf_config": hf_config})


def rejected(of: ModelProfile | str, weights: str, **limits: Any) -> list[Rejection]:
    """What is rejected of the layouts asked for; expert parallelism only where it is."""
    one = {"expert_parallel": (1,), "max_accelerators": 10_000}
    degrees = {name: (degree,) for name, degree in limits.items()}
    return enumerate_layouts(request(of, "h200", limits=one | degrees, weights=(weights,)))[1]


@pytest.mark.parametrize(
    ("hf_config", "weights", "ranks", "code", "figures"),
    [
        # SGLang of DeepSeek-R1 on 32 GPUs: 18432 / 32 is not divisible by block_n = 128.
        (CONFIGS["deepseek-v3"], "fp8_block", 32, "fp8_block", ("mlp", "18432", "32", "576")),
        # Qwen3-235B-A22B-FP8 and MiniMax-M2 at TP 8: 1536 / 8.
        (QWEN3_235B, "fp8_block", 8, "fp8_block", ("experts", "1536", "8", "192", "128")),
        (CONFIGS["qwen3-30b-a3b"], "fp8_block", 4, "fp8_block", ("experts", "768", "192")),
        *(
            (config("qwen3-30b-a3b", moe_intermediate_size=320), "fp8_block", ranks, "fp8_block",
             ("experts", "320", f"{320 / ranks:g}"))
            for ranks in (2, 4, 8)
        ),
        # Qwen2.5-VL-72B and InternVL3-78B AWQ: 29568 are 231 groups of 128.
        (CONFIGS["qwen2.5-72b"], "int4_awq", 2, "int4_group", ("mlp", "29568", "14784", "128")),
        (CONFIGS["qwen2.5-72b"], "int4_gptq", 4, "int4_group", ("mlp", "29568", "7392")),
    ],
)  # fmt: skip
def test_what_engines_refused_is_rejected_with_their_figures(
    hf_config, weights, ranks, code, figures
):
    (rejection,) = rejected(read(hf_config), weights, tensor_parallel=ranks)
    assert rejection.code == f"{code}_not_divisible"
    for figure in figures:
        assert figure in rejection.detail


@pytest.mark.parametrize(
    ("hf_config", "weights", "ranks"),
    [
        (CONFIGS["deepseek-v3"], "fp8_block", 16),  # two nodes of eight, as DeepSeek documents
        (QWEN3_235B, "fp8_block", 4),  # what its model card says instead of 8
        (QWEN3_235B, "bf16", 8),
        (CONFIGS["qwen3-30b-a3b"], "fp8_block", 2),
        # Qwen padded its quantized 72B models to 29696 "to make sure [they] can use 8
        # tensor-parallel in vllm" (Qwen2-VL-72B-Instruct-AWQ on Hugging Face).
        (config("qwen2.5-72b", intermediate_size=29696), "int4_awq", 8),
        # vLLM's moe_wna16 halves the groups of experts: 768 / 4 = 192 are three of 64.
        (CONFIGS["qwen3-30b-a3b"], "int4_awq", 4),
        (CONFIGS["gpt-oss-120b"], "mxfp4", 8),  # 2880 / 8 = 360: padded
        (CONFIGS["qwen2.5-72b"], "fp8", 8),  # one scale a tensor or channel: nothing to divide
    ],
)
def test_what_engines_serve_is_not_rejected(hf_config, weights, ranks):
    assert rejected(read(hf_config), weights, tensor_parallel=ranks) == []


def test_experts_in_blocks_fit_where_expert_parallelism_leaves_them_whole():
    assert rejected(read(QWEN3_235B), "fp8_block", tensor_parallel=8, expert_parallel=8) == []
    (rejection,) = rejected(read(QWEN3_235B), "fp8_block", tensor_parallel=8)
    assert rejection.remedy == (
        "tensor_parallel 4 is the nearest that divides (possible: 1, 2, 4). "
        "At tensor_parallel 8, expert_parallel 2 divides."
    )


def test_the_remedy_lists_the_degrees_of_the_format():
    (rejection,) = rejected("deepseek-v3", "fp8_block", tensor_parallel=32)
    assert rejection.remedy is not None
    assert "tensor_parallel 16 is the nearest" in rejection.remedy
    assert "(possible: 1, 2, 4, 8, 16)" in rejection.remedy


def test_the_degrees_of_a_profile_are_those_of_its_own_format():
    assert model("deepseek-v3").valid_tensor_parallel == (1, 2, 4, 8, 16)
    plain = read(config("deepseek-v3", quantization_config=...))
    assert plain.valid_tensor_parallel == (1, 2, 4, 8, 16, 32, 64, 128)


def test_only_what_a_checkpoint_quantizes_is_bound_by_its_format():
    experts_alone = {
        "quant_method": "fp8",
        "weight_block_size": [128, 128],
        "modules_to_not_convert": ["re:.*self_attn.*", "re:model.layers.[0-2].mlp.*"],
    }
    described = config("deepseek-v3", quantization_config=experts_alone)
    described["n_shared_experts"] = 0
    spread = read(described)
    assert spread.architecture.quantized_parts == ("experts",)
    assert rejected(spread, "fp8_block", tensor_parallel=32, expert_parallel=32) == []


@examples(200)
@given(st.sampled_from(sorted(FORMAT_RULES)), st.integers(1, 300), st.integers(1, 64))
def test_a_rank_begins_where_a_block_does(weights, units, ranks):
    """Cut the rows and columns of an MLP rank by rank, and look where the cuts are."""
    width = 32 * units
    attention = GroupedQueryAttention(64 * ranks, 64 * ranks, 128)
    shape = Architecture("any", 8192, 1000, None, False, (Layer(attention, DenseMlp(width)),))
    found = tensor_parallel_faults(shape, ranks, weights=weights, quantized=("mlp",))
    cuts = [rank * width / ranks for rank in range(ranks)]
    blocks = [multiple for _, multiple in FORMAT_RULES[weights].values()]
    assert bool(found) == any(cut % block for cut in cuts for block in (1, *blocks))


@pytest.mark.parametrize("name", [*CONFIGS, "mamba"])
def test_every_split_matrix_divides_over_every_degree_that_is_valid(name):
    of = read(MAMBA) if name == "mamba" else model(name)
    degrees, shape = of.valid_tensor_parallel, of.architecture
    assert len(degrees) > 3
    split = [m for m, _ in shape.matrices() if m.split != "none" and m.matmul_parameters]
    for degree in degrees:
        for matrix in split:
            if matrix.part == "lm_head":  # padded
                continue
            size = matrix.inputs if matrix.split == "rows" else matrix.piece
            assert size % matrix.ways(degree) == 0, (matrix, degree)


@pytest.mark.parametrize(
    ("changes", "ranks", "what"),
    [
        ({}, 16, "mamba_num_groups"),  # 8 groups
        ({"n_groups": 1}, 16, None),  # one is copied to every rank
        ({}, 3, "mamba_num_heads"),
    ],
)
def test_groups_of_a_state_space_divide_unless_there_is_one(changes, ranks, what):
    """vLLM 0.33, mamba_mixer2.py: the two assertions on num_heads and n_groups."""
    faults = tensor_parallel_faults(read(MAMBA | changes).architecture, ranks)
    assert (faults[0].what if faults else None) == what


def test_experts_divide_over_expert_parallel_ranks():
    """vllm#52435: 256 experts do not divide over 3 ranks."""
    faults = tensor_parallel_faults(model("deepseek-v3").architecture, 3, 3)
    assert ("num_experts", 256, 3) in [(f.what, f.size, f.degree) for f in faults]


def served_by_vllm(heads: int, kv_heads: int, ranks: int, degree: int) -> bool:
    """vLLM 0.33's conditions on decode context parallelism of grouped-query attention."""
    if degree == 1:
        return True
    enough = ranks > kv_heads and degree <= ranks // kv_heads
    return enough and heads // kv_heads % degree == 0


@pytest.mark.parametrize("heads", [8, 16, 24, 64])
@pytest.mark.parametrize("kv_heads", [1, 2, 4, 8])
def test_a_context_is_shared_out_where_vllm_does(heads, kv_heads):
    layer = Layer(GroupedQueryAttention(heads, kv_heads, 128), None)
    shape = Architecture("any", 1024, 1000, None, False, (layer,))
    for ranks in (2**i for i in range(7)):
        for degree in (2**i for i in range(ranks.bit_length())):
            faults = context_parallel_faults(shape, ranks, degree)
            assert (not faults) == served_by_vllm(heads, kv_heads, ranks, degree)


@pytest.mark.parametrize(
    ("of", "ranks", "degree", "code"),
    [
        ("llama-3.1-70b", 8, 2, "kv_head_copies_not_divisible"),
        ("llama-3.1-70b", 16, 2, None),
        ("deepseek-v3", 8, 8, None),  # every rank holds the latent
        ("deepseek-v3", 8, 3, "decode_context_parallel_not_divisible"),
        ("mamba", 8, 2, "no_attention"),
    ],
)
def test_a_context_cannot_be_shared_out_over_ranks_that_hold_other_heads(of, ranks, degree, code):
    profile = read(MAMBA) if of == "mamba" else model(of)
    found = rejected(profile, "bf16", tensor_parallel=ranks, decode_context_parallel=degree)
    assert [one.code for one in found] == ([code] if code else [])
    assert all(one.remedy for one in found)
    assert all(one.as_dict()["decode_context_parallel"] == degree for one in found)


def test_the_nearest_degree_holds_with_a_shared_context():
    (found,) = rejected("llama-3.1-70b", "bf16", tensor_parallel=8, decode_context_parallel=2)
    assert "(possible: 16, 32, 64)" in str(found.remedy)


def test_a_thousand_layouts_are_checked_in_a_moment():
    moe = MoeMlp(96, 8, 1536 + 64)
    layers = tuple(Layer(GroupedQueryAttention(96, 8, 128), moe) for _ in range(90))
    shape = Architecture("any", 6144, 100_000, None, False, layers)
    limits = {
        "tensor_parallel": tuple(range(1, 65)),
        "pipeline_parallel": (1, 2, 4),
        "attention_data_parallel": (1, 2),
        "max_accelerators": 10_000,
    }
    asked = request(
        ModelProfile("any", shape), "h200", limits=limits, weights=("bf16", "fp8_block")
    )
    start = time.process_time()
    valid, refused = enumerate_layouts(asked)
    assert len(valid) + len(refused) > 1000
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("version", "weights", "codes"),
    [
        ("0.24.0", "int4_g32", ["marlin_tile_not_divisible"]),
        ("0.33.0", "int4_g32", []),
        ("0.24.0", "int4_awq", ["int4_group_not_divisible"]),
        ("0.24.0", "int4_gptq", ["int4_group_not_divisible"]),
    ],
)
def test_tiles_are_refused_until_they_are_padded(version, weights, codes):
    """11,008 / 8 = 1,376: whole groups of 32, no whole tile of 64 or 128."""
    llama_2 = CONFIGS["llama-3.1-8b"] | {"intermediate_size": 11008}
    asked = request(
        read(llama_2), "h200", limits={"tensor_parallel": (8,)}, weights=(weights,),
        serving={"engine_version": version},
    )  # fmt: skip
    found = enumerate_layouts(asked)[1]
    assert [each.code for each in found] == codes
    assert all("tensor_parallel 2 is the nearest" in (each.remedy or "") for each in found)


def test_windows_cannot_share_out_their_context():
    found = rejected("gpt-oss-120b", "mxfp4", tensor_parallel=16, decode_context_parallel=2)
    assert [each.code for each in found] == ["context_in_windows"]


@pytest.mark.parametrize(
    ("engine", "version", "of", "served"),
    [
        ("vllm", "0.10.1.1", "dense", False),
        ("vllm", "0.10.2", "dense", True),
        ("vllm", "0.25.1", "dense", True),
        ("vllm", "0.25.1", "hybrid", False),
        ("vllm", "0.26.0", "hybrid", True),
        ("vllm", "0.33.0", "hybrid", True),
        ("sglang", "0.5.6", "dense", False),
        ("tensorrt_llm", "1.0", "dense", False),
        ("generic", None, "hybrid", True),
    ],
)
def test_an_engine_shares_out_the_context_of_models_that_its_version_can(
    engine, version, of, served
):
    """vLLM, kv_cache_coordinator.py: hybrids are asserted away to 0.25, and allowed from 0.26."""
    profile, ranks = (read(QWEN3_5), 8) if of == "hybrid" else (model("llama-3.1-70b"), 16)
    asked = request(
        profile, "h200", weights=("bf16",), serving={"engine": engine, "engine_version": version},
        limits={"tensor_parallel": (ranks,), "decode_context_parallel": (2,)},
    )  # fmt: skip
    found = [each.code for each in enumerate_layouts(asked)[1]]
    assert found == ([] if served else ["decode_context_parallel_unsupported"])


def test_where_one_rank_stands_alone_no_divisor_of_it_is_proposed():
    for name in ("expert_parallel", "attention_data_parallel", "decode_context_parallel"):
        (found,) = rejected("qwen3-30b-a3b", "bf16", **{"tensor_parallel": 1, name: 2})
        assert found.remedy == f"Use {name} 1, or 2 ranks or a multiple of them."


def test_stages_of_a_pipeline_that_has_another_number_of_them_are_refused():
    for pipeline, codes in ((1, ["pipeline_layers_of_other_stages"]), (2, [])):
        asked = request(
            "llama-3.1-8b", "h200", serving={"pipeline_layers": (20, 12)},
            limits={"tensor_parallel": (1,), "pipeline_parallel": (pipeline,)},
        )  # fmt: skip
        assert [each.code for each in enumerate_layouts(asked)[1]] == codes
