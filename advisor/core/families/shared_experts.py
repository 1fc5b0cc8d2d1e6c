"""Mixtures of experts with shared ones beside them, their first layers mostly dense."""

from __future__ import annotations

from dataclasses import replace

from advisor.core.architecture import Layer
from advisor.core.config_reader import ConfigReader
from advisor.core.families.parts import (
    dense,
    experts,
    grouped_query,
    nested,
    patterned,
    sizes,
    sparse_layers,
    switches,
    windowed,
)
from advisor.core.families.register import family
from advisor.core.mixers import GroupedQueryAttention
from advisor.core.mlps import DenseMlp, Mlp


def shared_mlps(
    config: ConfigReader, count_key: str = "n_routed_experts", first: int = 0
) -> list[Mlp]:
    """The MLP of each layer: first ones dense, then experts with shared ones beside them."""
    width = config.size("moe_intermediate_size")
    shared = config.size_or("n_shared_experts", 0) * width
    routed = experts(config, count_key, width, shared_intermediate_size=shared, router_bias=True)
    return [routed if is_sparse else dense(config) for is_sparse in sparse_layers(config, first)]


@family("glm4_moe")
def glm4_moe(config: ConfigReader) -> tuple[Layer, ...]:
    """GLM-4.5 and later: first layers dense, a shared expert, norms on queries and keys in some."""
    config.get("num_nextn_predict_layers")
    norm = "head" if config.flag("use_qk_norm") else "none"
    attention = grouped_query(config, qkv_bias=config.flag("attention_bias"), qk_norm=norm)
    return tuple(Layer(attention, mlp) for mlp in shared_mlps(config))


@family("glm4v_moe_text")
def glm4v_moe(config: ConfigReader) -> tuple[Layer, ...]:
    """GLM-4.5V below its vision encoder: as GLM-4.5, with biases unless told otherwise."""
    attention = grouped_query(config, qkv_bias=config.flag("attention_bias", True))
    return tuple(Layer(attention, mlp) for mlp in shared_mlps(config, first=1))


@family("dots1")
def dots1(config: ConfigReader) -> tuple[Layer, ...]:
    """dots.llm1: Qwen3's attention before DeepSeek's experts."""
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias, qk_norm="head")
    return tuple(map(Layer, windowed(config, attention, on_by_default=False), shared_mlps(config)))


@family("ernie4_5_moe", tied=True)
def ernie4_5_moe(config: ConfigReader) -> tuple[Layer, ...]:
    """ERNIE 4.5 mixtures: first layers dense, a correction per expert."""
    if config.flag("use_bias"):
        raise config.refuse("use_bias", "Experts of this family have no biases.", given=True)
    attention = grouped_query(config)
    width = config.size("moe_intermediate_size")
    shared = config.size_or("n_shared_experts", 0) * width
    routed = experts(
        config, "moe_num_experts", width, shared_intermediate_size=shared, router_bias=True
    )
    plain = dense(config)
    count = config.size("num_hidden_layers")
    first = config.size_or("moe_layer_start_index", 1)
    every = config.size_or("moe_layer_interval", 1, minimum=1)
    sparse = [i >= first and (i + 1) % every == 0 for i in range(count)]
    return tuple(Layer(attention, routed if each else plain) for each in sparse)


@family("solar_open")
def solar_open(config: ConfigReader) -> tuple[Layer, ...]:
    """Solar Open: no dense layers, biases on queries, keys and values where told."""
    attention = grouped_query(config, qkv_bias=config.flag("attention_bias"))
    return tuple(Layer(attention, mlp) for mlp in shared_mlps(config))


@family("hy_v3")
def hy_v3(config: ConfigReader) -> tuple[Layer, ...]:
    """Hy3: norms on queries and keys, the first layer dense."""
    if config.flag("mlp_bias"):
        raise config.refuse("mlp_bias", "Experts of this family have no biases.", given=True)
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias, qk_norm="head")
    return tuple(Layer(attention, mlp) for mlp in shared_mlps(config, "num_experts", first=1))


@family("exaone_moe")
def exaone_moe(config: ConfigReader) -> tuple[Layer, ...]:
    """K-EXAONE: three sliding layers to a full one, the first layer dense."""
    config.get("num_nextn_predict_layers")
    attention = patterned(
        config, grouped_query(config, qk_norm="head"), "sliding_window_pattern", 4
    )
    return tuple(map(Layer, attention, shared_mlps(config, "num_experts", first=1)))


@family("afmoe")
def afmoe(config: ConfigReader) -> tuple[Layer, ...]:
    """Trinity: three sliding layers to a full one, gated attention, norms around each block."""
    bias = config.flag("attention_bias")
    attention = grouped_query(
        config, qkv_bias=bias, output_bias=bias, qk_norm="head", output_gate=True
    )
    if bias:
        raise config.refuse("attention_bias", "The gate of this family has no bias.", given=True)
    mixers = patterned(config, attention, "global_attn_every_n_layers", 4)
    mlps = shared_mlps(config, "num_experts", first=config.size_or("num_dense_layers", 1))
    return tuple(Layer(mixer, mlp, norms=4) for mixer, mlp in zip(mixers, mlps, strict=True))


@family("mimo_v2_flash")
def mimo_v2_flash(config: ConfigReader) -> tuple[Layer, ...]:
    """MiMo-V2-Flash: sliding layers have sinks and KV heads of their own number, and values have
    smaller heads than keys."""
    bias = config.flag("attention_bias")
    full = grouped_query(config, qkv_bias=bias, value_head_dim=config.size("v_head_dim"))
    sliding = replace(
        full,
        num_kv_heads=config.size_or("swa_num_key_value_heads", 2 * full.num_kv_heads, minimum=1),
        window=config.size("sliding_window"),
        sinks=True,
    )
    same = {
        "attention_chunk_size": config.size("sliding_window"),
        "swa_num_attention_heads": full.num_heads,
        "swa_head_dim": full.head_dim,
        "swa_v_head_dim": config.size("v_head_dim"),
    }
    for key, expected in same.items():
        if config.size_or(key, expected) != expected:
            detail = "Sliding layers differ in KV heads and window alone."
            raise config.refuse(key, detail)
    count = config.size("num_hidden_layers")
    types = config.names("layer_types", ("sliding_attention", "full_attention"), count)
    slides = (
        switches(config, "hybrid_layer_pattern")
        if types is None
        else [each == "sliding_attention" for each in types]
    )
    mixers = [sliding if each else full for each in slides]
    return tuple(map(Layer, mixers, shared_mlps(config, first=1)))


@family("cohere2_moe", tied=True)
def cohere2_moe(config: ConfigReader) -> tuple[Layer, ...]:
    """Command A mixtures: as Command A, with experts beside the attention but in the first layers,
    which have a window pattern and a width of their own."""
    bias, first = config.flag("attention_bias"), config.size_or("first_k_dense_replace", 0)
    if config.get("layer_types") is None and first:
        raise config.refuse("layer_types", "Sliding layers of this family are named one by one.")
    config.get("prefix_dense_sliding_window_pattern")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias)
    mixers = patterned(config, attention, "sliding_window_pattern", 4)
    width = config.size("intermediate_size")
    shared = config.size_or("n_shared_experts", 0) * width
    routed = experts(config, "num_experts", width, shared_intermediate_size=shared)
    plain = DenseMlp(config.size("prefix_dense_intermediate_size", "intermediate_size"))
    return tuple(
        Layer(mixer, routed if each else plain, norms=1, parallel=True)
        for mixer, each in zip(mixers, sparse_layers(config, first), strict=True)
    )


def _heads_gated(config: ConfigReader, heads: list[int]) -> list[GroupedQueryAttention]:
    """Attention with a gate on each head, of another number of heads in each layer."""
    bias = config.flag("attention_bias")
    attention = grouped_query(
        config, qkv_bias=bias, output_bias=bias, qk_norm="head", head_gate=True
    )
    if any(each % attention.num_kv_heads for each in heads):
        detail = f"Heads do not divide over {attention.num_kv_heads} KV heads in each layer."
        raise config.refuse("num_key_value_heads", detail, given=attention.num_kv_heads)
    windows = windowed(config, attention, on_by_default=False)
    return [replace(mixer, num_heads=each) for mixer, each in zip(windows, heads, strict=True)]


@family("laguna")
def laguna(config: ConfigReader) -> tuple[Layer, ...]:
    """Laguna: gated heads, of a number of their own in each layer; the first layer dense."""
    if config.get("gating", True) not in (True, "per-head"):
        raise config.refuse("gating", "Gates on other than heads are not known.")
    count = config.size("num_hidden_layers")
    heads = sizes(config, "num_attention_heads_per_layer")
    mixers = _heads_gated(config, heads or [config.size("num_attention_heads")] * count)
    routed = experts(
        config, "num_experts", config.size("moe_intermediate_size"),
        shared_intermediate_size=config.size("shared_expert_intermediate_size"), router_bias=True,
    )  # fmt: skip
    mlps = [routed if each else dense(config) for each in sparse_layers(config, 1)]
    return tuple(map(Layer, mixers, mlps))


@family("step3p5")
def step3p5(config: ConfigReader) -> tuple[Layer, ...]:
    """Step 3.5 and 3.7 Flash: gated heads, more of them in sliding layers; lists of layers go on
    into the multi-token-prediction layers, which are not loaded."""
    full, count = config.size("num_attention_heads"), config.size("num_hidden_layers")
    kv_heads = config.size("num_key_value_heads", "num_attention_groups")
    head_dim = config.size("head_dim")
    if not config.flag("use_head_wise_attn_gate", True):
        raise config.refuse("use_head_wise_attn_gate", "Heads of this family are gated.")
    config.get("num_nextn_predict_layers")
    types = config.get("layer_types")
    types = types[:count] if isinstance(types, list) else ["full_attention"] * count
    sliding = config.size_or("num_sliding_attention_heads", full, minimum=1)
    if config.get("attention_other_setting") is not None:
        other = nested(config, "attention_other_setting")
        sliding = other.size_or("num_attention_heads", full, minimum=1)
        same = {"num_attention_groups": kv_heads, "head_dim": head_dim}
        for key, expected in same.items():
            if other.size_or(key, expected) != expected:
                raise other.refuse(key, "Sliding layers differ in their heads alone.")
    usual = ConfigReader(
        {**config.config, "layer_types": types, "num_key_value_heads": kv_heads}, config.pointer
    )
    mixers = _heads_gated(usual, [sliding if t == "sliding_attention" else full for t in types])
    config.read |= usual.read
    width = config.size("moe_intermediate_size")
    shared = config.size("share_expert_dim", "share_expert_dims")
    key = "moe_num_experts" if config.get("moe_num_experts") else "n_routed_experts"
    routed = experts(config, key, width, shared_intermediate_size=shared, router_bias=True)
    sparse = _step_sparse(config, count)
    return tuple(
        Layer(mixer, routed if each else dense(config))
        for mixer, each in zip(mixers, sparse, strict=True)
    )


def _step_sparse(config: ConfigReader, count: int) -> list[bool]:
    """Which layers have experts: by `mlp_layer_types`, or the numbers in `moe_layers_enum`."""
    enumerated = config.get("moe_layers_enum")
    if enumerated is None:
        return sparse_layers(config, 3)
    numbers = enumerated.split(",") if isinstance(enumerated, str) else enumerated
    if not isinstance(numbers, list) or not all(str(each).strip().isdigit() for each in numbers):
        raise config.refuse("moe_layers_enum", "It lists layers by their numbers.")
    listed = {int(each) for each in numbers}
    return [i in listed for i in range(count)]
