"""Model families against counts that others made: publishers, and transformers' own classes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.core.architecture import Architecture, Layer, as_mapping, from_mapping
from advisor.core.errors import InvalidInput
from advisor.core.families import FAMILIES
from advisor.core.layouts import Split, stage_loads
from advisor.core.mixers import (
    UNBOUNDED,
    AttentionWithMamba,
    CompressedAttention,
    GroupedQueryAttention,
    KimiDeltaAttention,
    LatentAttention,
    LightningAttention,
    Mamba2,
    ShortConvolution,
)
from advisor.core.mlps import DenseMlp
from advisor.core.model import ModelProfile, read_hf_config

DATA = json.loads((Path(__file__).parent / "data" / "families.json").read_text(encoding="utf-8"))
PUBLISHED = {entry["name"]: entry for entry in DATA["published"]}
COUNTED = DATA["counted"]["models"]

NOMINAL = 0.09
"""How far a nominal size ("7B" of 7.6e9) strays from the count."""

published = pytest.mark.parametrize("entry", PUBLISHED.values(), ids=PUBLISHED)
counted = pytest.mark.parametrize(
    "entry",
    COUNTED,
    ids=[f"{entry['config']['model_type']}-{i}" for i, entry in enumerate(COUNTED)],
)


def profile(config):
    return ModelProfile("a-model", read_hf_config(config))


def kinds(shape):
    """The mixer of each layer, in the words of `layer_types`."""
    return [kind(layer.mixer) for layer in shape.layers]


OTHERS = {
    "mamba1": "linear_attention",
    "mamba2": "linear_attention",
    "gated_delta_net": "linear_attention",
    "kimi_delta_attention": "linear_attention",
    "lightning_attention": "linear_attention",
    "short_convolution": "conv",
    "gqa_mamba2": "hybrid",
}
COMPRESSED = {None: "sliding", 4: "compressed_sparse", 128: "heavily_compressed"}


def kind(mixer):
    if mixer is None:
        return "mlp"
    if mixer.kind in OTHERS:
        return OTHERS[mixer.kind]
    if mixer.kind == "compressed":
        return f"{COMPRESSED[mixer.compress_rate]}_attention"
    if mixer.kind == "mla":
        return "indexed_attention" if mixer.index_topk else "full_attention"
    if mixer.window is None:
        return "full_attention"
    return "chunked_attention" if mixer.chunked else "sliding_attention"


SYNONYMS = {"moe": "mlp", "mamba": "linear_attention", "attention": "full_attention"}


@published
def test_a_model_has_its_published_number_of_parameters(entry):
    total = read_hf_config(entry["config"]).total_parameters / 1e9
    digits = len(f"{entry['published_b']:g}".replace(".", "").rstrip("0"))
    expected = entry.get("rel", 0.01 if digits >= 3 else NOMINAL)
    assert total == pytest.approx(entry["published_b"], rel=expected)


exact = [
    entry for entry in PUBLISHED.values() if round(entry["published_b"], 3) != entry["published_b"]
]


@pytest.mark.parametrize("entry", exact, ids=lambda entry: entry["name"])
def test_a_count_published_in_full_is_met_to_the_last_parameter(entry):
    assert read_hf_config(entry["config"]).total_parameters == round(entry["published_b"] * 1e9)


with_active = [entry for entry in PUBLISHED.values() if "active_b" in entry]


@pytest.mark.parametrize("entry", with_active, ids=lambda entry: entry["name"])
def test_a_model_uses_its_published_number_of_parameters_for_a_token(entry):
    active = read_hf_config(entry["config"]).active_parameters / 1e9
    assert active == pytest.approx(entry["active_b"], rel=0.05)


@counted
def test_parameters_are_those_that_transformers_makes(entry):
    assert read_hf_config(entry["config"]).total_parameters == entry["parameters"]


@pytest.mark.parametrize("entry", [entry for entry in COUNTED if entry["layer_types"]], ids=str)
def test_layers_slide_where_those_of_transformers_do(entry):
    theirs = [SYNONYMS.get(each, each) for each in entry["layer_types"]]
    assert kinds(read_hf_config(entry["config"])) == theirs


@counted
def test_a_read_architecture_survives_its_written_form(entry):
    shape = read_hf_config(entry["config"])
    assert from_mapping(json.loads(json.dumps(as_mapping(shape)))) == shape


def test_every_family_is_counted():
    seen = {FAMILIES[entry["config"]["model_type"]].read for entry in COUNTED}
    assert {name for name, family in FAMILIES.items() if family.read not in seen} == set()


# What a sequence takes in the cache

with_cache = [entry for entry in PUBLISHED.values() if "kv_bytes_per_token" in entry]


@pytest.mark.parametrize("entry", with_cache, ids=lambda entry: entry["name"])
def test_a_token_caches_what_its_attention_layers_keep(entry):
    assert profile(entry["config"]).kv_bytes_per_token("bf16") == entry["kv_bytes_per_token"]


def counted_config(model_type, **changes):
    config = next(e["config"] for e in COUNTED if e["config"]["model_type"] == model_type)
    return {key: value for key, value in (config | changes).items() if value is not ...}


GEMMA_4_E2B = {
    "model_type": "gemma4_text",
    "hidden_size": 1536,
    "intermediate_size": 6144,
    "num_hidden_layers": 35,
    "num_attention_heads": 8,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "vocab_size": 262144,
    "num_kv_shared_layers": 20,
    "use_double_wide_mlp": True,
    "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 7,
}


def test_layers_that_borrow_keys_and_values_cache_none_and_read_those_of_another():
    """Gemma 4 E2B: 15 of 35 layers cache; 12 slide with heads of 256, 3 are full with 512."""
    of = profile(GEMMA_4_E2B)
    assert of.kv_bytes_per_token("bf16") == 2 * 2 * (12 * 256 + 3 * 512)
    (load,) = stage_loads(of, Split())
    assert sum(cache.kv_bytes for cache in load.caches) == 2 * 2 * (12 * 256 + 3 * 512)
    assert sum(cache.read_bytes for cache in load.caches) == 2 * 2 * (28 * 256 + 7 * 512)


def test_one_projection_for_keys_and_values_is_stored_once_and_cached_twice():
    """As vLLM does: it loads the key projection into both slots, and caches both."""
    once = {"attention_k_eq_v": True, "num_kv_shared_layers": 0, "use_double_wide_mlp": False}
    apart = profile(GEMMA_4_E2B | once | {"attention_k_eq_v": False})
    once = profile(GEMMA_4_E2B | once)
    assert once.kv_bytes_per_token("bf16") == apart.kv_bytes_per_token("bf16")
    saved = apart.architecture.total_parameters - once.architecture.total_parameters
    assert saved == 7 * 1536 * 512


def test_a_table_of_per_layer_inputs_is_stored_but_not_active():
    """The model card of Gemma 4 gives E2B as 2.3B effective and 5.1B, of which 0.45B are encoders
    of images and sound."""
    shape = read_hf_config(GEMMA_4_E2B)
    assert shape.active_parameters / 1e9 == pytest.approx(2.3, rel=0.01)
    assert shape.total_parameters / 1e9 + 0.45 == pytest.approx(5.1, rel=0.01)
    table, embedding = 262144 * 35 * 256, 262144 * 1536
    assert shape.parameters_by_part["embedding"] == table + embedding


@pytest.mark.parametrize("split", [Split(), Split(tensor_parallel=2), Split(2, 2)], ids=str)
def test_every_parameter_is_stored_on_the_ranks_of_one_replica(split):
    """Nothing is replicated in a model of matrices alone, and what is, is counted once a rank."""
    of = profile(counted_config("gemma4_text", vocab_size=256, vocab_size_per_layer_input=64))
    stored = sum(load.weight_bytes for load in stage_loads(of, split)) * split.tensor_parallel
    total = of.architecture.total_parameters * 2
    assert stored >= total
    if split == Split():
        assert stored == total


def test_a_bias_of_the_lm_head_is_stored_whether_or_not_the_table_is_tied():
    for tied in (True, False):
        config = counted_config("phimoe", tie_word_embeddings=tied, lm_head_bias=True)
        biased, plain = profile(config), profile(config | {"lm_head_bias": False})
        more = config["vocab_size"]
        for count in ("total_parameters", "active_parameters"):
            assert getattr(biased.architecture, count) - getattr(plain.architecture, count) == more
        assert biased.architecture.matmul_parameters == plain.architecture.matmul_parameters
        bytes_of = [stage_loads(each, Split())[0].weight_bytes for each in (biased, plain)]
        assert bytes_of[0] - bytes_of[1] == 2 * more


def test_keys_and_values_of_different_sizes_are_cached_as_they_are():
    """MiMo-V2-Flash: nine full layers with 4 KV heads and 39 sliding ones with 8, of 192 + 128."""
    config = counted_config(
        "mimo_v2_flash", num_hidden_layers=48, num_attention_heads=64, num_key_value_heads=4,
        head_dim=192, v_head_dim=128, mlp_layer_types=..., moe_layer_freq=[0] + [1] * 47,
        layer_types=..., hybrid_layer_pattern=[int(i > 0 and (i + 1) % 6 > 0) for i in range(48)],
    )  # fmt: skip
    of = profile(config)
    full, sliding = 9 * 4 * (192 + 128), 39 * 8 * (192 + 128)
    assert of.kv_bytes_per_token("bf16") == 2 * (full + sliding)
    assert sum(layer.mlp.kind == "dense" for layer in of.architecture.layers if layer.mlp) == 1


DEEPSEEK_V4_FLASH = {
    "model_type": "deepseek_v4",
    "hidden_size": 4096,
    "num_hidden_layers": 43,
    "num_attention_heads": 64,
    "num_key_value_heads": 1,
    "head_dim": 512,
    "q_lora_rank": 1024,
    "o_groups": 8,
    "o_lora_rank": 1024,
    "sliding_window": 128,
    "index_topk": 512,
    "index_n_heads": 64,
    "index_head_dim": 128,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 6,
    "hc_mult": 4,
    "vocab_size": 129280,
    "max_position_embeddings": 1048576,
    "compress_ratios": [0, 0] + [4, 128] * 20 + [4, 0],
}


def test_deepseek_v4_has_its_published_number_of_parameters():
    """284B, of which a token uses 13B (model card of deepseek-ai/DeepSeek-V4-Flash)."""
    shape = read_hf_config(DEEPSEEK_V4_FLASH)
    assert shape.total_parameters / 1e9 == pytest.approx(284, rel=0.005)
    assert shape.active_parameters / 1e9 == pytest.approx(13, rel=0.05)


def test_deepseek_v4_pro_keeps_its_published_cache_at_a_million_tokens():
    """9.62 GiB a sequence of 2^20 tokens in bf16, indexed keys too, for 30 layers with entries of 4
    tokens and 31 of 128: vLLM's announcement of DeepSeek V4, 2026-04-24."""
    pro = DEEPSEEK_V4_FLASH | {
        "num_hidden_layers": 61,
        "num_attention_heads": 128,
        "compress_ratios": [128, 128] + [4, 128] * 29 + [4],
    }
    mixers = [layer.mixer for layer in read_hf_config(pro).layers]
    caches = [cache for mixer in mixers if mixer for cache in mixer.caches(1)]
    vectors = sum(2 * cache.elements * min(2**20, cache.kept) for cache in caches)
    assert (vectors + 30 * 2**20 / 4 * 128 * 2) / 2**30 == pytest.approx(9.62, abs=0.005)


def test_compressed_attention_keeps_a_window_and_an_entry_for_every_few_tokens():
    """A layer at a million tokens, by hand: 128 raw vectors of 512, an entry for every four tokens,
    an indexed key of 128 bytes and 4 of scale with each, and the inputs of two unfinished entries
    (8 tokens, two halves, input and gate, in fp32)."""
    sparse = read_hf_config(DEEPSEEK_V4_FLASH).layers[2].mixer
    assert isinstance(sparse, CompressedAttention)
    kept = [min(1e6, each.kept) for each in sparse.caches(1)]
    sizes = [2 * each.elements + each.fixed_bytes for each in sparse.caches(1)]
    held = [size * tokens for size, tokens in zip(sizes, kept, strict=True)]
    assert held == [128 * 1024, 250_000 * 1024, 250_000 * 132, 8 * 4 * 2 * 2 * (512 + 128)]
    assert sparse.caches(1)[1].read == 512 * 4
    assert [each.elements for each in sparse.caches(8)] == [
        each.elements for each in sparse.caches(1)
    ]


def test_layers_that_take_the_picks_of_an_earlier_indexer_cache_no_keys_for_it():
    own = LatentAttention(64, 2048, 512, 192, 64, 256, 2048, index_heads=32, index_head_dim=128)
    taken = replace(own, index_heads=0, index_head_dim=0)
    assert [(c.elements, c.fixed_bytes) for c in own.caches(1)] == [(576, 0), (0, 132)]
    assert [(c.elements, c.fixed_bytes) for c in taken.caches(1)] == [(576, 0)]
    assert own.caches(1)[0].read == taken.caches(1)[0].read == 2048


def test_minimax_m2_lists_the_kind_of_its_layers_as_its_forerunners_did():
    layers = counted_config("minimax_m2")["num_hidden_layers"]
    listed = counted_config("minimax_m2", attn_type_list=[1] * layers, shared_intermediate_size=0)
    assert read_hf_config(listed) == read_hf_config(counted_config("minimax_m2"))


def test_attention_beside_mamba_keeps_a_cache_and_a_state():
    """Falcon-H1-7B: 44 layers of 2 KV heads of 128; 24 heads of 128 x 256 in fp32, and the last
    three inputs of 3072 + 2 x 256 channels."""
    mixer = AttentionWithMamba(
        attention=GroupedQueryAttention(12, 2, 128),
        state_space=Mamba2(24, 128, 256, num_groups=1, conv_kernel=4),
    )
    layer = Layer(mixer, DenseMlp(12288))
    of = ModelProfile("h1", Architecture("falcon_h1", 3072, 130048, 262144, False, (layer,) * 44))
    assert of.kv_bytes_per_token("bf16") == 44 * 2 * 2 * 2 * 128
    assert of.state_bytes_per_sequence == 44 * (4 * 24 * 128 * 256 + 2 * 3 * (3072 + 2 * 256))
    assert layer.all_reduces == 3


@pytest.mark.parametrize(
    ("mixer", "state"),
    [
        # shapes of vLLM's MambaStateShapeCalculator: kda, linear_attention, short_conv
        (KimiDeltaAttention(32, 128, 4), 4 * 32 * 128 * 128 + 2 * 3 * (3 * 32 * 128)),
        (LightningAttention(64, 128), 4 * 64 * 128 * 128),
        (ShortConvolution(2048, 3), 2 * 2 * 2048),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_a_recurrent_mixer_keeps_its_state_split_over_ranks_and_caches_nothing(mixer, state):
    assert (mixer.state_bytes(1), mixer.state_bytes(2)) == (state, state / 2)
    assert mixer.caches(1) == ()
    assert mixer.split_faults(2) == []
    assert mixer.split_faults(7)


def test_layers_are_counted_by_their_list_where_the_config_has_no_number():
    config = counted_config("nemotron_h", hybrid_override_pattern=..., num_hidden_layers=...)
    config |= {"layers_block_type": ["mamba", "moe", "attention"]}
    assert kinds(read_hf_config(config)) == ["linear_attention", "mlp", "full_attention"]


def test_a_recurrent_state_has_the_format_asked_for_and_its_convolution_inputs_are_bf16():
    fp32 = {"mamba_ssm_cache_dtype": "float32"}
    nano = profile(PUBLISHED["nemotron-3-nano-30b-a3b"]["config"] | fp32)
    assert nano.state_bytes_per_sequence == 23 * (4 * 64 * 64 * 128 + 2 * 3 * (4096 + 2 * 8 * 128))
    fp32 = {"mamba_ssm_dtype": "float32"}
    qwen = profile(PUBLISHED["qwen3.5-27b"]["config"] | fp32)
    assert qwen.state_bytes_per_sequence == 48 * (4 * 48 * 128 * 128 + 2 * 3 * (2 * 16 + 48) * 128)
    assert (nano.state_bytes_per_sequence, qwen.state_bytes_per_sequence) == (49082368, 153944064)


def test_a_recurrent_state_without_a_format_has_the_models():
    """vLLM's `auto`; Qwen3-Next's block of 544 tokens holds a state in 16 bits."""
    config = PUBLISHED["qwen3.5-27b"]["config"]
    short, long = (profile(config | {"torch_dtype": each}) for each in ("bfloat16", "float32"))
    convolution = 48 * 2 * 3 * (2 * 16 + 48) * 128
    assert long.state_bytes_per_sequence - convolution == 2 * (
        short.state_bytes_per_sequence - convolution
    )
    with pytest.raises(InvalidInput, match="mamba_ssm_dtype"):
        profile(config | {"mamba_ssm_dtype": "int3"})


QWEN3_0_6B = {
    "model_type": "qwen3",
    "hidden_size": 1024,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 3072,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "tie_word_embeddings": True,
}


@pytest.mark.parametrize(
    ("config", "context", "gib"),
    [
        (PUBLISHED["gemma-3-27b-it"]["config"], 131072, 10.41),
        (PUBLISHED["deepseek-v3"]["config"], 163840, 10.72),
        (PUBLISHED["kimi-k2.5"]["config"], 262144, 17.16),
        (QWEN3_0_6B, 40960, 4.38),
    ],
    ids=["gemma-3-27b", "deepseek-v3.1", "kimi-k2.5", "qwen3-0.6b"],
)
def test_one_formula_does_not_fit_all_caches(config, context, gib):
    """Sizes that unslothai/unsloth pull request 4757 states for sequences of full length."""
    layers = read_hf_config(config).layers
    caches = [cache for layer in layers if layer.mixer for cache in layer.mixer.caches(1)]
    kept = sum(2 * cache.elements * min(context, cache.kept) for cache in caches)
    assert kept / 2**30 == pytest.approx(gib, abs=0.006)


def test_gemma_3_has_ten_full_layers_and_fifty_two_sliding_ones():
    layers = read_hf_config(PUBLISHED["gemma-3-27b-it"]["config"]).layers
    windows = [layer.mixer.caches(1)[0].kept for layer in layers if layer.mixer]
    assert (windows.count(UNBOUNDED), windows.count(1024)) == (10, 52)


def test_llama_4_attends_in_chunks_but_for_every_fourth_layer():
    scout = kinds(read_hf_config(PUBLISHED["llama-4-scout-17b-16e"]["config"]))
    assert scout == (["chunked_attention"] * 3 + ["full_attention"]) * 12


def test_a_state_space_model_has_no_longest_context():
    shape = read_hf_config(PUBLISHED["mamba-codestral-7b"]["config"])
    assert shape.context_length is None


def test_what_the_published_gemma_3_leaves_out_is_taken_from_its_config_class():
    """The text_config of google/gemma-3-4b-it, and 3.88e9 of the report's table 1."""
    text = {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
        "sliding_window": 1024,
    }
    shape = read_hf_config({"model_type": "gemma3", "text_config": text})
    assert shape.total_parameters / 1e9 == pytest.approx(3.88, rel=0.002)
    assert shape.context_length == 131072


@pytest.mark.parametrize(
    ("model_type", "change"),
    [
        ("opt", {"word_embed_proj_dim": 32}),
        ("ernie4_5_moe", {"use_bias": True}),
        ("smollm3", {"use_sliding_window": True, "layer_types": None}),
        ("stablelm", {"qk_layernorm": True}),
        ("nemotron_h", {"mlp_bias": True, "hybrid_override_pattern": "MEM*-E"}),
        ("nemotron_h", {"hybrid_override_pattern": "MM"}),
        ("llama4_text", {"no_rope_layers": [1]}),
        ("mpt", {"no_bias": False}),
        ("mpt", {"attn_config": None}),
        ("hunyuan_v1_moe", {"use_cla": True}),
        ("hunyuan_v1_moe", {"moe_intermediate_size": [32, 64]}),
        ("hunyuan_v1_moe", {"moe_intermediate_size": 1000}),
        ("falcon_h1", {"projectors_bias": True, "mamba_proj_bias": False}),
        ("gemma4_text", {"num_kv_shared_layers": 100}),
        ("gemma4_text", {"use_bidirectional_attention": "all"}),
        ("gemma4_text", {"per_layer_config": {"0": {"head_dim": 64}}}),
        ("kimi_linear", {"routed_expert_hidden_size": 64}),
        ("kimi_linear", {"mla_use_output_gate": True}),
        ("llama", {"lm_head_bias": True}),
        ("lfm2", {"block_ffn_dim_multiplier": "1", "block_auto_adjust_ff_dim": True}),
        ("minimax", {"shared_intermediate_size": [64]}),
        ("minimax_m2", {"attn_type_list": [0, 1, 1]}),
        ("glm_moe_dsa", {"indexer_types": ["shared"]}),
        ("granite", {"compress_ratios": [4]}),
        ("mimo_v2_flash", {"swa_head_dim": 7}),
        ("mimo_v2_flash", {"layer_types": None, "hybrid_layer_pattern": [2]}),
        ("hy_v3", {"mlp_layer_types": ["dense"]}),
        ("deepseek_v4", {"expert_dtype": "fp4"}),
        ("laguna", {"gating": "per-element"}),
        ("laguna", {"num_attention_heads_per_layer": [1]}),
        ("step3p5", {"use_head_wise_attn_gate": False}),
        ("step3p5", {"moe_layers_enum": "3-44"}),
        ("step3p5", {"attention_other_setting": {"head_dim": 9}}),
        ("deepseek_v4", {"compress_ratios": [0, 8] * 9}),
        ("deepseek_v4", {"compress_rates": {"compressed_sparse_attention": 8}}),
        ("cohere2_moe", {"layer_types": None, "mlp_layer_types": None, "first_k_dense_replace": 1}),
    ],
)
def test_what_a_family_is_not_known_to_do_is_refused_by_its_key(model_type, change):
    config = next(e["config"] for e in COUNTED if e["config"]["model_type"] == model_type)
    with pytest.raises(InvalidInput) as caught:
        read_hf_config(config | change)
    assert set(caught.value.errors[0].pointer.split("/")) & {*change, "layer_types"}
