"""Reading a config.json: what is refused, by which key, and what survives the round trip."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from advisor.core.architecture import as_mapping, from_mapping
from advisor.core.errors import InvalidInput
from advisor.core.families import FAMILIES
from advisor.core.mixers import GroupedQueryAttention
from advisor.core.model import ModelProfile, read_hf_config
from tests.core.profiles import CONFIGS, config, model
from tests.core.strategies import examples, models


def refusal(changed):
    """The one error of a config that is refused."""
    with pytest.raises(InvalidInput) as caught:
        read_hf_config(changed)
    (error,) = caught.value.errors
    assert error.detail
    json.dumps(error.as_dict(), allow_nan=False)
    return error


def attentions(shape):
    """The attention of every layer, each of the grouped-query kind."""
    mixers = [layer.mixer for layer in shape.layers]
    assert {type(mixer) for mixer in mixers} == {GroupedQueryAttention}
    return mixers


def test_an_unknown_family_is_refused_with_the_nearest_known():
    error = refusal(config("qwen3-32b", model_type="qwen33"))
    assert error.pointer == "/hf_config/model_type"
    assert error.given == "qwen33"
    assert error.nearest in FAMILIES
    assert error.nearest.startswith("qwen3")


@pytest.mark.parametrize("given_type", [..., None, 3, ["llama"], {}])
def test_a_config_without_a_family_is_refused(given_type):
    assert refusal(config("llama-3.1-8b", model_type=given_type)).pointer.endswith("/model_type")


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("llama-3.1-8b", "hidden_size"),
        ("llama-3.1-8b", "num_hidden_layers"),
        ("llama-3.1-8b", "num_attention_heads"),
        ("llama-3.1-8b", "intermediate_size"),
        ("llama-3.1-8b", "vocab_size"),
        ("llama-3.1-8b", "max_position_embeddings"),
        ("qwen3-30b-a3b", "num_experts"),
        ("qwen3-30b-a3b", "num_experts_per_tok"),
        ("qwen3-30b-a3b", "moe_intermediate_size"),
        ("mixtral-8x7b", "num_local_experts"),
        ("deepseek-v3", "kv_lora_rank"),
        ("deepseek-v3", "qk_rope_head_dim"),
        ("deepseek-v3", "v_head_dim"),
        ("deepseek-v3", "n_routed_experts"),
    ],
)
def test_a_missing_key_is_named(name, key):
    error = refusal(config(name, **{key: ...}))
    assert error.pointer == f"/hf_config/{key}"
    assert key in error.detail


def test_a_misspelt_key_is_answered_with_the_one_that_was_given():
    error = refusal(config("llama-3.1-8b", hidden_size=..., hiden_size=4096))
    assert error.nearest == "hiden_size"


@pytest.mark.parametrize("wrong", ["4096", 4096.0, True, False, -1, 0, 10**12, [4096], {}, 1e308])
@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("llama-3.1-8b", "hidden_size"), ("llama-3.1-8b", "num_key_value_heads"),
        ("qwen3-32b", "head_dim"), ("qwen3-30b-a3b", "num_experts"),
        ("deepseek-v3", "kv_lora_rank"), ("gpt-oss-120b", "sliding_window"),
        ("mixtral-8x7b", "num_experts_per_tok"),
    ],
)  # fmt: skip
def test_a_size_is_a_whole_number_above_zero(name, key, wrong):
    error = refusal(config(name, **{key: wrong}))
    assert error.pointer == f"/hf_config/{key}"
    assert error.given == wrong


@pytest.mark.parametrize("wrong", ["true", 1, 0, [], {}])
def test_a_flag_is_true_or_false(wrong):
    assert refusal(config("llama-3.1-8b", tie_word_embeddings=wrong)).given == wrong


@pytest.mark.parametrize("kv_heads", [3, 64])
def test_heads_that_do_not_divide_over_kv_heads_are_refused(kv_heads):
    error = refusal(config("llama-3.1-8b", num_key_value_heads=kv_heads))
    assert error.pointer == "/hf_config/num_key_value_heads"
    assert error.given == kv_heads


def test_a_hidden_size_that_does_not_divide_over_the_heads_needs_a_head_size():
    assert refusal(config("llama-3.1-8b", hidden_size=4100)).pointer == "/hf_config/head_dim"
    shape = read_hf_config(config("llama-3.1-8b", hidden_size=4100, head_dim=128))
    assert {attention.head_dim for attention in attentions(shape)} == {128}


@pytest.mark.parametrize(
    ("name", "key", "most"),
    [("qwen3-30b-a3b", "num_experts_per_tok", 128), ("mixtral-8x7b", "num_experts_per_tok", 8)],
)
def test_a_token_cannot_use_more_experts_than_there_are(name, key, most):
    error = refusal(config(name, **{key: most + 1}))
    assert (error.pointer, error.given) == (f"/hf_config/{key}", most + 1)
    assert str(most) in str(error.allowed)
    moe = read_hf_config(config(name, **{key: most})).moe
    assert moe is not None
    assert moe.experts_per_token == most


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("llama-3.1-8b", "kv_lora_rank", 512),
        ("llama-3.1-8b", "num_local_experts", 16),
        ("llama-3.1-8b", "sliding_window", 4096),
        ("qwen3-32b", "num_experts", 128),
        ("mistral-7b", "num_local_experts", 8),
        ("qwen3-30b-a3b", "shared_expert_intermediate_size", 2048),
        ("deepseek-v3", "index_topk", 2048),
        ("llama-3.1-8b", "mamba_num_heads", 64),
        ("qwen3-32b", "linear_num_value_heads", 32),
    ],
)
def test_a_key_of_another_architecture_is_refused_rather_than_ignored(name, key, value):
    error = refusal(config(name, **{key: value}))
    assert error.pointer == f"/hf_config/{key}"


def test_a_key_of_another_architecture_that_is_switched_off_is_no_fault():
    off = config("llama-3.1-8b", kv_lora_rank=None, num_local_experts=0, mlp_only_layers=[])
    assert read_hf_config(off) == model("llama-3.1-8b").architecture


@pytest.mark.parametrize("layers", [2001, 10**9, 10**30])
def test_a_layer_count_beyond_any_model_is_refused_at_once(layers):
    error = refusal(config("llama-3.1-8b", num_hidden_layers=layers))
    assert error.pointer == "/hf_config/num_hidden_layers"
    assert error.given == layers


def test_layer_types_name_every_layer():
    wrong = refusal(config("gpt-oss-120b", layer_types=["full_attention"]))
    assert wrong.pointer == "/hf_config/layer_types"
    kinds = ["linear_attention", *CONFIGS["gpt-oss-120b"]["layer_types"][1:]]
    wrong = refusal(config("gpt-oss-120b", layer_types=kinds))
    assert "linear_attention" in wrong.detail
    assert wrong.allowed == ["full_attention", "sliding_attention"]


def test_sliding_layers_need_a_window():
    assert refusal(config("gpt-oss-120b", sliding_window=None)).pointer.endswith("sliding_window")


@pytest.mark.parametrize("name", ["qwen2.5-72b", "qwen3-32b"])
def test_a_window_that_is_not_used_makes_no_layer_slide(name):
    off = config(name, sliding_window=4096, use_sliding_window=False)
    assert {attention.window for attention in attentions(read_hf_config(off))} == {None}
    on = config(name, sliding_window=4096, use_sliding_window=True, max_window_layers=10)
    windows = [attention.window for attention in attentions(read_hf_config(on))]
    assert windows == [None] * 10 + [4096] * (len(windows) - 10)


@pytest.mark.parametrize("name", ["qwen2.5-72b", "qwen3-32b", "qwen3-30b-a3b"])
def test_qwen_slides_only_when_it_is_switched_on(name):
    """transformers' default of use_sliding_window is false for these families."""
    silent = config(name, sliding_window=4096, use_sliding_window=...)
    assert {attention.window for attention in attentions(read_hf_config(silent))} == {None}


def test_a_nested_text_config_is_read_and_named_in_errors():
    inner = config("llama-3.1-8b")
    outer = {"model_type": "llava", "text_config": inner, "vision_config": {"hidden_size": 1}}
    assert read_hf_config(outer) == model("llama-3.1-8b").architecture
    del inner["vocab_size"]
    assert refusal(outer).pointer == "/hf_config/text_config/vocab_size"


@pytest.mark.parametrize(
    ("described", "weights"),
    [
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8_block"),
        ({"quant_method": "awq", "bits": 4}, "int4_awq"),
        ({"quant_method": "gptq", "bits": 4}, "int4_gptq"),
        ({"quant_method": "gptq", "bits": 8}, "int8"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
    ],
)
def test_the_format_of_a_quantized_checkpoint_is_read(described, weights):
    shape = read_hf_config(config("llama-3.1-8b", quantization_config=described))
    assert shape.weights_precision == weights
    assert {"attention", "mlp"} <= set(shape.quantized_parts)
    assert shape.plain_precision == "bf16"


def test_mxfp4_quantizes_the_experts_alone():
    shape = model("gpt-oss-120b").architecture
    assert (shape.weights_precision, shape.quantized_parts) == ("mxfp4", ("experts",))


@pytest.mark.parametrize(
    "described",
    [
        {}, {"quant_method": "bitsandbytes"}, {"quant_method": "awq", "bits": 3},
        {"quant_method": "awq"}, {"quant_method": "compressed-tensors"}, {"quant_method": 7},
        "fp8", 8, [], {"quant_method": "compressed-tensors", "config_groups": {"a": {}}},
    ],
)  # fmt: skip
def test_a_quantization_that_is_not_known_is_refused(described):
    error = refusal(config("llama-3.1-8b", quantization_config=described))
    assert error.pointer.startswith("/hf_config/quantization_config")


numbers = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | numbers | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)  # fmt: skip
quantization_keys = st.sampled_from(
    ["quant_method", "quant_algo", "bits", "w_bit", "config_groups", "ignore",
     "modules_to_not_convert", "kv_cache_scheme", "kv_cache_quant_algo", "weight_block_size"]
)  # fmt: skip
quantizations = st.dictionaries(
    quantization_keys,
    st.sampled_from(["fp8", "awq", "gptq", "modelopt", "compressed-tensors", 4, 8]) | json_values,
)


@examples(250)
@given(st.sampled_from(sorted(CONFIGS)), st.data())
def test_any_value_under_any_key_is_read_or_refused_but_never_breaks(name, data):
    key = data.draw(st.sampled_from([*CONFIGS[name], "torch_dtype", "text_config", "dtype"]))
    changed = config(name) | {key: data.draw(json_values)}
    read_or_refuse(changed)


@examples(250)
@given(quantizations)
@example({"quant_method": "compressed-tensors", "config_groups": ["a"]})
@example({"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": "int4"}}})
@example({"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {"type": []}}}})
@example({"quant_method": "fp8", "modules_to_not_convert": 5})
@example({"quant_method": "fp8", "ignore": True})
@example({"quant_method": "gptq", "bits": [4]})
def test_any_quantization_is_read_or_refused_but_never_breaks(described):
    read_or_refuse(config("llama-3.1-8b", quantization_config=described))


@pytest.mark.parametrize("wrong", [5, "a", [[1]], [None], {"a": 1}, True])
def test_layers_left_dense_are_a_list_of_layers(wrong):
    assert refusal(config("qwen3-30b-a3b", mlp_only_layers=wrong)).pointer.endswith("_layers")


def read_or_refuse(changed):
    try:
        shape = read_hf_config(changed)
    except InvalidInput as refused:
        for error in refused.errors:
            assert error.pointer.startswith("/hf_config/")
    else:
        assert shape.total_parameters > 0


@pytest.mark.parametrize("name", CONFIGS)
def test_an_architecture_survives_its_written_form(name):
    shape = model(name).architecture
    written = json.loads(json.dumps(as_mapping(shape), allow_nan=False))
    assert from_mapping(written) == shape


@examples(60)
@given(models())
def test_any_architecture_survives_its_written_form(of):
    written = json.loads(json.dumps(as_mapping(of.architecture), allow_nan=False))
    assert from_mapping(written) == of.architecture
    assert len(written["layer_pattern"]) <= len(of.architecture.layers)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_written_profile_describes_the_same_model(name):
    document = json.loads(json.dumps(model(name).as_document(), allow_nan=False))
    again = ModelProfile.from_mapping({"name": name, "architecture": document["architecture"]})
    assert again.as_document() == document
    assert sum(document["parameters"]["by_part"].values()) == document["parameters"]["total"]


@pytest.mark.parametrize("wrong", [[], {}, "", 0, False, 1.5, ["float32"], [[]]])
@pytest.mark.parametrize(
    "key", ["torch_dtype", "dtype", "mamba_ssm_dtype", "mamba_ssm_cache_dtype"]
)
def test_a_format_that_is_no_name_is_refused_by_its_key(key, wrong):
    hybrid = {
        "model_type": "qwen3_5_text", "linear_num_key_heads": 16, "linear_num_value_heads": 64,
        "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
    }  # fmt: skip
    of = config("qwen3-32b", **hybrid | {"torch_dtype": ..., key: wrong})
    assert refusal(of).pointer == f"/hf_config/{key}"


@pytest.mark.parametrize("wrong", [[], "", 0, False, "llama", [{}]])
def test_a_text_part_that_is_no_object_is_refused(wrong):
    assert refusal(config("llama-3.1-8b", text_config=wrong)).pointer == "/hf_config/text_config"
