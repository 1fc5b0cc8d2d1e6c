"""Model families against counts that others made: publishers, and transformers' own classes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.core.architecture import as_mapping, from_mapping
from advisor.core.errors import InvalidInput
from advisor.core.families import FAMILIES
from advisor.core.mixers import UNBOUNDED
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


def kind(mixer):
    if mixer is None:
        return "mlp"
    if mixer.kind in ("mamba1", "mamba2", "gated_delta_net"):
        return "linear_attention"
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


def test_a_recurrent_state_is_fp32_and_its_convolution_inputs_are_bf16():
    nano = profile(PUBLISHED["nemotron-3-nano-30b-a3b"]["config"])
    assert nano.state_bytes_per_sequence == 23 * (4 * 64 * 64 * 128 + 2 * 3 * (4096 + 2 * 8 * 128))
    qwen = profile(PUBLISHED["qwen3.5-27b"]["config"])
    assert qwen.state_bytes_per_sequence == 48 * (4 * 48 * 128 * 128 + 2 * 3 * (2 * 16 + 48) * 128)
    assert (nano.state_bytes_per_sequence, qwen.state_bytes_per_sequence) == (49082368, 153944064)


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
    ],
)
def test_what_a_family_is_not_known_to_do_is_refused_by_its_key(model_type, change):
    config = next(e["config"] for e in COUNTED if e["config"]["model_type"] == model_type)
    with pytest.raises(InvalidInput) as caught:
        read_hf_config(config | change)
    assert caught.value.errors[0].pointer.split("/")[-1] in {*change, "layer_types"}
