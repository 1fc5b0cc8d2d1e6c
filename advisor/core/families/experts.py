"""Mixtures of experts over grouped-query attention."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from advisor.core.architecture import Layer
from advisor.core.config_reader import ConfigReader
from advisor.core.families.dense import qwen3_attention
from advisor.core.families.parts import (
    alike,
    dense,
    experts,
    grouped_query,
    nested,
    patterned,
    stacked,
    switches,
    uniform,
    windowed,
)
from advisor.core.families.register import family
from advisor.core.mixers import GroupedQueryAttention
from advisor.core.mlps import DenseMlp, Mlp


def qwen_mlps(config: ConfigReader, **details: Any) -> list[Mlp]:
    """The MLP of each layer: `decoder_sparse_step` and `mlp_only_layers` leave some dense."""
    routed = experts(config, "num_experts", config.size("moe_intermediate_size"), **details)
    step = config.size_or("decoder_sparse_step", 1, minimum=1)
    only = config.whole_numbers("mlp_only_layers")
    sparse = [
        i not in only and (i + 1) % step == 0 for i in range(config.size("num_hidden_layers"))
    ]
    return [routed if is_sparse else dense(config) for is_sparse in sparse]


@family("qwen3_moe", "qwen3_vl_moe_text")
def qwen3_moe(config: ConfigReader) -> tuple[Layer, ...]:
    """Qwen3 mixture of experts."""
    return tuple(map(Layer, qwen3_attention(config), qwen_mlps(config)))


@family("qwen2_moe")
def qwen2_moe(config: ConfigReader) -> tuple[Layer, ...]:
    """Qwen1.5 and Qwen2 mixtures: a gated shared expert beside the routed ones."""
    shared = config.size("shared_expert_intermediate_size")
    mlps = qwen_mlps(config, shared_intermediate_size=shared, shared_gate=True)
    attention = windowed(config, grouped_query(config, qkv_bias=True), on_by_default=False)
    return tuple(map(Layer, attention, mlps))


@family("mixtral")
def mixtral(config: ConfigReader) -> tuple[Layer, ...]:
    """Mixtral: every layer has experts of the full intermediate size."""
    routed = experts(config, "num_local_experts", config.size("intermediate_size"))
    return stacked(windowed(config, grouped_query(config)), routed)


@family("gpt_oss")
def gpt_oss(config: ConfigReader) -> tuple[Layer, ...]:
    """gpt-oss: alternating windows, attention sinks, experts with biases."""
    bias = config.flag("attention_bias", True)
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias, sinks=True)
    routed = experts(
        config, "num_local_experts", config.size("intermediate_size"), bias=True, router_bias=True
    )
    return stacked(patterned(config, attention, "sliding_window_pattern", 2), routed)


@family("llama4_text")
def llama4(config: ConfigReader) -> tuple[Layer, ...]:
    """Llama 4: attention in chunks but for every fourth layer, one routed and one shared expert,
    dense layers between in Maverick. Its norms on queries and keys have no weights."""
    count = config.size("num_hidden_layers")
    bias = config.flag("attention_bias")
    width = config.size("intermediate_size")
    routed = experts(config, "num_local_experts", width, shared_intermediate_size=width)
    every = config.size_or("interleave_moe_layer_step", 1, minimum=1)
    plain = (
        dense(config)
        if every == 1
        else replace(dense(config), intermediate_size=config.size("intermediate_size_mlp"))
    )
    attention = _chunked(config, grouped_query(config, qkv_bias=bias, output_bias=bias), count)
    return tuple(
        Layer(each, routed if (i + 1) % every == 0 else plain) for i, each in enumerate(attention)
    )


def _chunked(
    config: ConfigReader, full: GroupedQueryAttention, count: int
) -> list[GroupedQueryAttention]:
    chunk = config.optional_size("attention_chunk_size")
    if chunk is None:
        return [full] * count
    chunked = replace(full, window=chunk, chunked=True)
    types = config.names("layer_types", ("chunked_attention", "full_attention"), count)
    if types is not None:
        return [chunked if kind == "chunked_attention" else full for kind in types]
    rotary = config.get("no_rope_layers") or [(i + 1) % 4 for i in range(count)]
    if not isinstance(rotary, list) or len(rotary) != count:
        raise config.refuse("no_rope_layers", f"It has one entry for each of {count} layers.")
    return [chunked if rotated else full for rotated in rotary]


@family("minimax_m2")
def minimax_m2(config: ConfigReader) -> tuple[Layer, ...]:
    """MiniMax-M2: norms over all query and key heads, routed experts alone."""
    if config.get("attn_type_list") is not None and not all(switches(config, "attn_type_list")):
        raise config.refuse("attn_type_list", "Linear attention is of MiniMax-Text-01 and M1.")
    norm = "full" if config.flag("use_qk_norm") else "none"
    attention = grouped_query(config, qk_norm=norm)
    bias = config.flag("use_routing_bias")
    routed = experts(
        config, "num_local_experts", config.size("intermediate_size"), router_bias=bias
    )
    return stacked([attention] * config.size("num_hidden_layers"), routed)


@family("olmoe", "flex_olmo")
def olmoe(config: ConfigReader) -> tuple[Layer, ...]:
    """OLMoE and FlexOlmo: norms over all query and key heads, experts in every layer."""
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias, qk_norm="full")
    return uniform(
        config, attention, experts(config, "num_experts", config.size("intermediate_size"))
    )


@family("granitemoe", "granitemoeshared")
def granitemoe(config: ConfigReader) -> tuple[Layer, ...]:
    """Granite 3 mixtures: routed experts, in some with a shared one beside them."""
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias)
    return uniform(config, attention, granite_mlp(config))


def granite_mlp(config: ConfigReader) -> Mlp:
    """Routed experts of Granite with a shared one beside them, or that one alone."""
    shared = config.size_or("shared_intermediate_size", 0)
    config.get("num_experts_per_tok")
    if shared and not config.get("num_local_experts"):
        return DenseMlp(shared)
    width = config.size("intermediate_size")
    return experts(config, "num_local_experts", width, shared_intermediate_size=shared)


@family("phimoe", end_norms=2, head_bias=False)
def phimoe(config: ConfigReader) -> tuple[Layer, ...]:
    """Phi-3.5-MoE: LayerNorm, and a switch each for biases of the attention and the LM head."""
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias)
    routed = experts(config, "num_local_experts", config.size("intermediate_size"))
    return stacked(windowed(config, attention), routed, norms=4)


@family("dbrx")
def dbrx(config: ConfigReader) -> tuple[Layer, ...]:
    """DBRX: attention and experts described in objects of their own."""
    heads, hidden = config.size("num_attention_heads"), config.size("hidden_size")
    kv_heads = nested(config, "attn_config").size("kv_n_heads")
    blocks = nested(config, "ffn_config")
    attention = grouped_query(
        ConfigReader(
            {"num_attention_heads": heads, "num_key_value_heads": kv_heads, "hidden_size": hidden},
            f"{config.pointer}/attn_config",
        )
    )
    routed = experts(blocks, "moe_num_experts", blocks.size("ffn_hidden_size"))
    return uniform(config, attention, routed)


@family("hunyuan_v1_moe")
def hunyuan_moe(config: ConfigReader) -> tuple[Layer, ...]:
    """Hunyuan-A13B: every layer has experts of the full intermediate size, some of them shared."""
    unknown = {"use_cla": False, "use_mla": False, "use_qk_norm": True, "moe_layer_num_skipped": 0}
    for key, usual in unknown.items():
        if config.get(key, usual) != usual:
            raise config.refuse(key, "This is not known here.", given=config.get(key))
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias, qk_norm="head")
    width = config.size("intermediate_size")
    if alike(config, "moe_intermediate_size", width) != width:
        raise config.refuse("moe_intermediate_size", f"Experts are {width} wide, as MLPs are.")
    shared, chosen = alike(config, "n_shared_experts", 1), alike(config, "num_experts_per_tok")
    routed = experts(config, "num_experts", width, chosen, shared_intermediate_size=shared * width)
    return uniform(config, attention, routed)
