"""Quantized checkpoints, as the tools that write them describe them."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest

from advisor.core.architecture import Architecture
from advisor.core.errors import FieldError, InvalidInput
from advisor.core.model import ModelProfile, read_hf_config
from advisor.core.precision import WEIGHT_BYTES
from tests.core.profiles import config

NEMOTRON_3_NANO: dict[str, Any] = {
    "model_type": "nemotron_h",
    "conv_kernel": 4,
    "head_dim": 128,
    "hidden_size": 2688,
    "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    "intermediate_size": 1856,
    "mamba_head_dim": 64,
    "mamba_num_heads": 64,
    "max_position_embeddings": 262144,
    "mlp_bias": False,
    "moe_intermediate_size": 1856,
    "moe_shared_expert_intermediate_size": 3712,
    "n_groups": 8,
    "n_routed_experts": 128,
    "n_shared_experts": 1,
    "num_attention_heads": 32,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 52,
    "num_key_value_heads": 2,
    "ssm_state_size": 128,
    "tie_word_embeddings": False,
    "use_bias": False,
    "use_conv_bias": True,
    "vocab_size": 131072,
    "torch_dtype": "bfloat16",
}
PATTERN = NEMOTRON_3_NANO["hybrid_override_pattern"]
LLAMA_405B: dict[str, Any] = config(
    "llama-3.1-70b",
    hidden_size=16384,
    num_hidden_layers=126,
    num_attention_heads=128,
    intermediate_size=53248,
)
QKVO = [f"self_attn.{each}_proj" for each in "qkvo"]
GATE_UP_DOWN = ["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]


def llama(**described: Any) -> Architecture:
    return read_hf_config(config("llama-3.1-8b", quantization_config=described))


def modelopt(**quantization: Any) -> dict[str, Any]:
    """An hf_quant_config.json."""
    return {"producer": {"name": "modelopt", "version": "0.29.0"}, "quantization": quantization}


def refusal(hf_config: dict[str, Any], beside: dict[str, Any] | None = None) -> FieldError:
    with pytest.raises(InvalidInput) as caught:
        read_hf_config(hf_config, beside)
    (error,) = caught.value.errors
    return error


def stored_bytes(shape: Architecture) -> float:
    """All weights, in the formats of their parts."""
    kept, plain = WEIGHT_BYTES[shape.weights_precision], WEIGHT_BYTES[shape.plain_precision]
    return sum(
        count * (kept if part in shape.quantized_parts else plain)
        for part, count in shape.parameters_by_part.items()
    )


def test_nf4_takes_what_the_qlora_paper_says():
    """Dettmers et al. 2023, section 3: scales of 32 bits for blocks of 64 add 0.5 bits. Quantized
    again they add 0.127, but engines expand them when they load."""
    assert 8 * WEIGHT_BYTES["nf4"] - 4 == 0.5


@pytest.mark.parametrize(
    ("described", "weights"),
    [
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4",
             "bnb_4bit_use_double_quant": True, "llm_int8_skip_modules": None},
            "nf4",
        ),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "nf4"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 64, "desc_act": True}, "int4_g64"),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, "int4_channel"),
        ({"quant_method": "gptq", "bits": 8, "group_size": 128, "desc_act": False}, "int8"),
        ({"quant_method": "awq", "w_bit": 4, "q_group_size": 32}, "int4_g32"),
        ({"quant_method": "auto-round", "bits": 4, "group_size": 128}, "int4_gptq"),
        ({"quant_method": "fp8", "activation_scheme": "static"}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "FP8_PB_WO"}, "fp8_block"),
        ({"quant_algo": "W4A16_AWQ", "group_size": 64}, "int4_g64"),
    ],
)  # fmt: skip
def test_the_format_is_read_with_its_groups(described, weights):
    shape = llama(**described)
    assert (shape.weights_precision, shape.quantized_parts) == (weights, ("attention", "mlp"))


@pytest.mark.parametrize(
    ("weights", "storage"),
    [
        ({"type": "int", "num_bits": 4, "strategy": "group", "group_size": 128}, "int4_gptq"),
        ({"type": "int", "num_bits": 4, "strategy": "group", "group_size": 64}, "int4_g64"),
        ({"type": "int", "num_bits": 4, "strategy": "channel"}, "int4_channel"),
        ({"type": "int", "num_bits": 8, "strategy": "channel"}, "int8"),
        ({"type": "float", "num_bits": 8, "strategy": "channel"}, "fp8"),
        ({"type": "float", "num_bits": 8, "strategy": "block", "block_structure": [128, 128]},
         "fp8_block"),
        ({"type": "float", "num_bits": 4, "strategy": "tensor_group", "group_size": 16}, "nvfp4"),
        ({"type": "float", "num_bits": 4, "strategy": "group", "group_size": 32}, "mxfp4"),
    ],
)  # fmt: skip
def test_compressed_tensors_are_read_by_their_weights(weights, storage):
    groups = {"group_0": {"targets": ["Linear"], "weights": weights}}
    shape = llama(quant_method="compressed-tensors", config_groups=groups, ignore=["lm_head"])
    assert (shape.weights_precision, shape.quantized_parts) == (storage, ("attention", "mlp"))


@pytest.mark.parametrize(
    ("weight", "storage"),
    [
        ({"dtype": "fp8_e4m3", "qscheme": "per_tensor", "group_size": None}, "fp8"),
        ({"dtype": "int8", "qscheme": "per_tensor", "group_size": None}, "int8"),
        ({"dtype": "fp4", "qscheme": "per_group", "group_size": 32}, "mxfp4"),
        ({"dtype": "uint4", "qscheme": "per_group", "group_size": 128}, "int4_awq"),
    ],
)
def test_quark_quantizes_linear_layers_too_with_mxfp4(weight, storage):
    shape = llama(
        quant_method="quark", exclude=["lm_head"], layer_quant_config={},
        global_quant_config={"weight": weight},
    )  # fmt: skip
    assert (shape.weights_precision, shape.quantized_parts) == (storage, ("attention", "mlp"))


def test_the_kv_cache_of_quark_is_read_from_what_its_projections_put_out():
    weight = {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}
    cached = {"weight": weight, "output_tensors": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}}
    shape = llama(
        quant_method="quark",
        exclude=["lm_head"],
        global_quant_config={"weight": weight, "output_tensors": None},
        layer_quant_config={"*k_proj": cached, "*v_proj": cached},
    )
    assert (shape.weights_precision, shape.kv_cache_precision) == ("fp8", "fp8")


def test_groups_of_compressed_tensors_may_name_their_modules():
    four = {"type": "int", "num_bits": 4, "strategy": "group", "group_size": 128}
    groups = {"group_0": {"targets": ["re:.*mlp.*"], "weights": four}}
    shape = llama(quant_method="compressed-tensors", config_groups=groups)
    assert (shape.weights_precision, shape.quantized_parts) == ("int4_gptq", ("mlp",))
    eight = {"type": "float", "num_bits": 8, "strategy": "channel"}
    groups = {"group_0": {"targets": ["Linear"], "weights": eight}} | {"group_1": groups["group_0"]}
    profile = ModelProfile.from_mapping(
        {
            "name": "any",
            "hf_config": config(
                "llama-3.1-8b",
                quantization_config={"quant_method": "compressed-tensors", "config_groups": groups},
            ),
        }
    )
    assert profile.architecture.quantized_parts == ("mlp",)
    assert "attention is stored as fp8 beside int4_gptq" in profile.warnings[0]["detail"]


def test_rules_of_gptqmodel_leave_modules_out():
    shape = llama(quant_method="gptq", bits=4, group_size=128, dynamic={"-:.*attn.*": {}})
    assert shape.quantized_parts == ("mlp",)


@pytest.mark.parametrize(
    "key",
    [
        "modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules", "exclude",
        "llm_int8_skip_modules",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "left_out",
    [
        ["lm_head", "*self_attn*"],
        ["self_attn"],
        ["re:.*self_attn.*"],
        ["model.layers.*.self_attn"],
        [f"model.layers.{i}.self_attn*" for i in range(32)],
        [f"model.layers.{i}.{name}" for i in range(32) for name in QKVO],
        [f"layers.{i}.self_attn" for i in range(32)],
        [r"re:model\.layers\.\d+\.self_attn\.(q|k|v|o)_proj"],
        ["model.layers.?.self_attn", "model.layers.1*.self_attn", "*layers.[23]?.self_attn"],
    ],
)
def test_what_is_left_out_is_read_in_every_spelling(key, left_out):
    shape = llama(quant_method="fp8", **{key: left_out})
    assert shape.quantized_parts == ("mlp",)


def test_layers_of_other_towers_leave_nothing_out():
    others = [f"vision_model.layers.{i}.self_attn.{n}" for i in range(32) for n in QKVO]
    assert llama(quant_method="fp8", ignore=others).quantized_parts == ("attention", "mlp")


def test_a_checkpoint_that_leaves_everything_out_is_not_quantized():
    shape = llama(quant_method="fp8", ignore=["re:.*"])
    assert (shape.weights_precision, shape.quantized_parts) == ("bf16", ())


def test_llama_405b_fp8_keeps_attention_and_its_outer_layers():
    """The Llama 3 report, section 6.2: neither self-attention nor the first and last layer is
    quantized. vLLM printed 57.752 GiB of weights on each of 8 GPUs (vllm#6746)."""
    left_out = [f"model.layers.{i}.{name}" for i in range(126) for name in QKVO]
    left_out += [f"model.layers.{i}.{name}" for i in (0, 125) for name in GATE_UP_DOWN]
    described = {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0}
    quantized = described | {"modules_to_not_convert": left_out}
    profile = ModelProfile.from_mapping(
        {"name": "any", "hf_config": LLAMA_405B | {"quantization_config": quantized}}
    )
    assert profile.architecture.weights_precision == "fp8"
    assert profile.architecture.quantized_parts == ("mlp",)
    on_each_gib = stored_bytes(profile.architecture) / 8 / 2**30
    assert on_each_gib == pytest.approx(57.752, rel=0.03)
    (warning,) = profile.warnings
    assert warning["code"] == "partly_quantized"
    assert "124 of 126" in warning["detail"]


def test_deepseek_nvfp4_keeps_its_attention():
    """hf_quant_config.json of nvidia/DeepSeek-R1-NVFP4 lists self_attn and router of each layer."""
    layers = range(61)
    excluded = [f"model.layers.{i}.self_attn*" for i in layers]
    excluded += [f"model.layers.{i}.mlp.gate" for i in layers]
    excluded += [f"model.layers.{i}.input_layernorm" for i in layers]
    excluded += ["model.norm", "lm_head", "model.embed_tokens"]
    second = modelopt(
        quant_algo="NVFP4", kv_cache_quant_algo="FP8", group_size=16, exclude_modules=excluded
    )
    shape = read_hf_config(config("deepseek-v3", quantization_config=...), second)
    assert shape.weights_precision == "nvfp4"
    assert shape.quantized_parts == ("mlp", "experts", "shared_experts")
    assert (shape.plain_precision, shape.kv_cache_precision) == ("bf16", "fp8")


def test_nemotron_3_nano_nvfp4_keeps_attention_and_the_layers_before_it():
    """Its hf_quant_config.json excludes the six attention layers and the Mamba layer before each:
    23 - 6 = 17 Mamba layers are quantized."""
    excluded = ["lm_head"]
    for i in (i for i, kind in enumerate(PATTERN) if kind == "*"):
        excluded += [f"backbone.layers.{i - 1}.mixer.{name}" for name in ("in_proj", "out_proj")]
        excluded += [f"backbone.layers.{i}.mixer.{name}_proj" for name in "qkvo"]
    second = modelopt(
        quant_algo="NVFP4", kv_cache_quant_algo="FP8", group_size=16, exclude_modules=excluded
    )
    profile = ModelProfile.from_mapping(
        {"name": "nano-nvfp4", "hf_config": NEMOTRON_3_NANO, "hf_quant_config": second}
    )
    shape = profile.architecture
    assert shape.quantized_parts == ("state_space", "experts", "shared_experts")
    assert (shape.weights_precision, shape.kv_cache_precision) == ("nvfp4", "fp8")
    assert [w["code"] for w in profile.warnings] == ["partly_quantized"]
    assert "state_space is quantized in 17 of 23 layers" in profile.warnings[0]["detail"]


def mixed(**other: str) -> dict[str, Any]:
    """NVFP4 experts beside FP8 shared experts and Mamba projections: NVIDIA's recipe for Nemotron 3
    Ultra, here of the Nano's shape. `other` formats by layer index replace that of the experts."""
    listed: dict[str, Any] = {}
    for i, kind in enumerate(PATTERN):
        below = f"backbone.layers.{i}.mixer"
        if kind == "M":
            listed |= {f"{below}.{name}": {"quant_algo": "FP8"} for name in ("in_proj", "out_proj")}
        if kind == "E":
            own = {"quant_algo": other.get(f"layer_{i}", "NVFP4"), "group_size": 16}
            for name in ("up_proj", "down_proj"):
                listed |= {f"{below}.experts.{e}.{name}": own for e in range(3)}
                listed[f"{below}.shared_experts.{name}"] = {"quant_algo": "FP8"}
    return modelopt(
        quant_algo="MIXED_PRECISION", kv_cache_quant_algo="FP8", quantized_layers=listed
    )


def test_of_mixed_formats_that_of_most_weights_counts_and_the_others_in_16_bits():
    profile = ModelProfile.from_mapping(
        {"name": "any", "hf_config": NEMOTRON_3_NANO, "hf_quant_config": mixed()}
    )
    shape = profile.architecture
    assert (shape.weights_precision, shape.quantized_parts) == ("nvfp4", ("experts",))
    assert [warning["detail"] for warning in profile.warnings] == [
        "state_space is stored as fp8 beside nvfp4, and counted as bf16.",
        "shared_experts is stored as fp8 beside nvfp4, and counted as bf16.",
    ]


@pytest.mark.parametrize(
    ("second", "pointer", "word"),
    [
        (mixed(layer_1="FP8"), "/quantization/quantized_layers", "experts"),
        (mixed(layer_1="W2A16"), "/quantization/quantized_layers", "experts.0.up_proj"),
        (modelopt(quant_algo="MIXED_PRECISION"), "/quantization/quantized_layers", "lists"),
        (modelopt(quant_algo="W2A16"), "/quantization", "not known"),
        (modelopt(quant_algo="NVFP4_AWQ", group_size=32), "/quantization/group_size", "16"),
        ({"producer": {"name": "modelopt"}}, "/quantization", "object"),
    ],
)
def test_a_second_file_that_cannot_be_read_is_refused_by_its_key(second, pointer, word):
    error = refusal(NEMOTRON_3_NANO, second)
    assert error.pointer == f"/hf_quant_config{pointer}"
    assert word in error.detail


def test_two_descriptions_agree_or_are_refused():
    first = config(
        "llama-3.1-8b",
        quantization_config={
            "quant_method": "modelopt",
            "quant_algo": "FP8",
            "ignore": ["lm_head"],
        },
    )
    same = modelopt(quant_algo="FP8", kv_cache_quant_algo=None, exclude_modules=["lm_head"])
    assert read_hf_config(first, same) == read_hf_config(first)
    other = refusal(first, modelopt(quant_algo="NVFP4", exclude_modules=["lm_head"]))
    assert other.pointer == "/hf_quant_config/quantization"


@pytest.mark.parametrize(
    ("described", "key", "allowed"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 96}, "/group_size", [-1, 32, 64, 128]),
        ({"quant_method": "fp8", "weight_block_size": [64, 64]}, "/weight_block_size",
         [[128, 128]]),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}},
          "layer_quant_config": {"*.q_proj": {"weight": {"dtype": "int8"}}}},
         "/layer_quant_config", None),
        ({"quant_method": "gptq", "bits": 4, "dynamic": {"+:.*down.*": {"bits": 8}}}, "/dynamic",
         None),
    ],
)  # fmt: skip
def test_a_layout_of_scales_that_is_not_known_is_refused_by_its_key(described, key, allowed):
    error = refusal(config("llama-3.1-8b", quantization_config=described))
    assert error.pointer == f"/hf_config/quantization_config{key}"
    if allowed:
        assert error.allowed == allowed


def test_one_layer_left_out_is_told_and_the_part_stays_quantized():
    """An AWQ checkpoint of Llama 3 8B that leaves out `layers.31.mlp`."""
    described = {"quant_method": "awq", "bits": 4, "modules_to_not_convert": ["layers.31.mlp"]}
    profile = ModelProfile.from_mapping(
        {"name": "any", "hf_config": config("llama-3.1-8b", quantization_config=described)}
    )
    assert profile.architecture.quantized_parts == ("attention", "mlp")
    assert "mlp is quantized in 31 of 32 layers" in profile.warnings[0]["detail"]
    again = ModelProfile.from_mapping(profile.as_document())
    assert again.warnings == profile.warnings


@pytest.mark.parametrize(
    "name", ["llama-8b-fp8", "llama.awq", "llama-gptq-int4", "llama-nvfp4", "llama-w4a16"]
)
def test_a_name_that_tells_of_a_quantization_the_config_lacks_is_warned_of(name):
    plain = {"name": name, "hf_config": config("llama-3.1-8b")}
    (warning,) = ModelProfile.from_mapping(plain).warnings
    assert warning["code"] == "name_without_quantization"
    assert "hf_quant_config" in warning["detail"]
    second = {"hf_quant_config": modelopt(quant_algo="FP8")}
    assert ModelProfile.from_mapping(plain | second).warnings == ()


@pytest.mark.parametrize("name", ["llama-8b", "print8-instruct", "fp80"])
def test_other_names_are_not_warned_of(name):
    assert (
        ModelProfile.from_mapping({"name": name, "hf_config": config("llama-3.1-8b")}).warnings
        == ()
    )


@pytest.mark.parametrize(
    "pattern",
    ["model.layers.{i}.mlp.x", "*a*a*a*a*b{i}*", "model.layers.1{i}*.mlp", "re:(a|b).*{i}"],
)
def test_thousands_of_modules_are_read_or_refused_in_a_moment(pattern):
    many = [pattern.replace("{i}", str(i)) for i in range(15_000)]
    described = config("llama-3.1-8b", quantization_config={"quant_method": "fp8", "ignore": many})
    start = time.process_time()
    with contextlib.suppress(InvalidInput):
        read_hf_config(described)
    assert time.process_time() - start < 3


def test_an_expression_with_more_choices_than_anyone_writes_is_refused():
    expression = "re:" + 4 * f"({'|'.join(map(str, range(1000)))})"
    described = {"quant_method": "fp8", "ignore": [f"{expression}.*"]}
    error = refusal(config("llama-3.1-8b", quantization_config=described))
    assert error.pointer == "/hf_config/quantization_config"


@pytest.mark.parametrize(
    ("quantization", "key"),
    [
        ({"quant_algo": "FP8", "kv_cache_quant_algo": "NVFP4"}, "kv_cache_quant_algo"),
        ({"quant_algo": "FP8", "kv_cache_quant_algo": []}, "kv_cache_quant_algo"),
        ({"quant_algo": "FP8", "kv_cache_quant_algo": {}}, "kv_cache_quant_algo"),
        ({"quant_algo": "FP8", "exclude_modules": "lm_head"}, "exclude_modules"),
        ({"quant_algo": "FP8", "exclude_modules": [1, None, {}]}, "exclude_modules"),
        ({"quant_algo": "NVFP4", "group_size": 64}, "group_size"),
        ({"quant_algo": "NVFP4", "group_size": "x"}, "group_size"),
        ({"quant_algo": ["FP8"]}, "quant_algo"),
    ],
)
def test_a_second_file_with_values_of_no_meaning_is_refused_by_their_key(quantization, key):
    error = refusal(config("llama-3.1-8b"), modelopt(**quantization))
    assert error.pointer == f"/hf_quant_config/quantization/{key}"


@pytest.mark.parametrize(
    ("described", "key"),
    [
        ({"quant_method": "nvfp4", "group_size": 64}, "group_size"),
        ({"quant_method": "modelopt_fp4", "group_size": "x"}, "group_size"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": "yes"}, "load_in_4bit"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": 1}, "load_in_8bit"),
        ({"quant_method": "gptq", "bits": 4, "dynamic": []}, "dynamic"),
        ({"quant_method": "fp8", "weight_block_size": []}, "weight_block_size"),
        ({"quant_method": "fp8", "modules_to_not_convert": "lm_head"}, "modules_to_not_convert"),
        ({"quant_method": "fp8", "kv_cache_scheme": {"type": "int", "num_bits": 4}},
         "kv_cache_scheme"),
        ({"quant_method": {}, "quant_algo": "FP8"}, "quant_method"),
        ({"quant_method": "quark", "layer_quant_config": [], "global_quant_config": {
            "weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}}}, "layer_quant_config"),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {
            "targets": "Linear", "weights": {"type": "float", "num_bits": 8}}}}, "config_groups"),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {
            "targets": ["Linear"], "weights": {"type": "float", "num_bits": 4, "group_size": 64}}}},
         "config_groups"),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {
            "weights": {"type": "int", "num_bits": 4, "strategy": "rows"}}}}, "config_groups"),
    ],
)  # fmt: skip
def test_values_of_no_meaning_are_refused_by_their_key(described, key):
    error = refusal(config("llama-3.1-8b", quantization_config=described))
    assert error.pointer == f"/hf_config/quantization_config/{key}"


def test_a_checkpoint_may_quantize_its_kv_cache_alone():
    """As NVIDIA's Model Optimizer writes it: `quant_algo` null, `kv_cache_quant_algo` FP8."""
    for algorithm, stored in (("FP8", "fp8"), ("INT8", "int8")):
        beside = modelopt(quant_algo=None, kv_cache_quant_algo=algorithm)
        shape = read_hf_config(config("llama-3.1-8b"), beside)
        assert (shape.weights_precision, shape.kv_cache_precision) == ("bf16", stored)
    error = refusal(config("llama-3.1-8b"), modelopt(quant_algo=None, kv_cache_quant_algo=None))
    assert error.pointer == "/hf_quant_config/quantization"


def test_a_checkpoint_that_quantizes_the_lesser_half_of_its_layers_says_so():
    """39 of 80 layers: all count in 16 bits."""
    left_out = [f"model.layers.{i}" for i in range(41)]
    described = {"quant_method": "fp8", "modules_to_not_convert": left_out}
    profile = ModelProfile.from_mapping({
        "name": "partly",
        "hf_config": config("llama-3.1-70b", quantization_config=described),
    })  # fmt: skip
    assert profile.architecture.weights_precision == "bf16"
    assert [each["detail"] for each in profile.warnings] == [
        f"{part} is quantized in 39 of 80 layers: all count as unquantized."
        for part in ("attention", "mlp")
    ]
