"""Hybrids of attention with linear attention or short convolutions."""

from __future__ import annotations

from advisor.core.architecture import Layer
from advisor.core.config_reader import ConfigReader
from advisor.core.families.parts import (
    alike,
    experts,
    grouped_query,
    latent,
    nested,
    sparse_layers,
    state_value_bytes,
    switches,
)
from advisor.core.families.register import family
from advisor.core.families.shared_experts import shared_mlps
from advisor.core.mixers import KimiDeltaAttention, LightningAttention, Mixer, ShortConvolution
from advisor.core.mlps import DenseMlp


@family("kimi_linear")
def kimi_linear(config: ConfigReader) -> tuple[Layer, ...]:
    """Kimi Linear: three layers of delta attention to one of latent attention, experts in all but
    the first."""
    described = nested(config, "linear_attn_config")
    if described.flag("use_full_rank_gate"):
        detail = "A gate of full rank is not known."
        raise described.refuse("use_full_rank_gate", detail, given=True)
    delta = KimiDeltaAttention(
        num_heads=described.size("num_heads"),
        head_dim=described.size("head_dim"),
        conv_kernel=described.size("short_conv_kernel_size"),
    )
    full, linear = (described.whole_numbers(f"{kind}_layers") for kind in ("full_attn", "kda"))
    count = config.size("num_hidden_layers")
    if sorted((*full, *linear)) != list(range(1, count + 1)):
        detail = f"Together with kda_layers it names the layers from 1 to {count}."
        raise described.refuse("full_attn_layers", detail)
    config.get("num_nextn_predict_layers")
    mixers: list[Mixer] = [latent(config) if i + 1 in full else delta for i in range(count)]
    return tuple(map(Layer, mixers, shared_mlps(config, "num_experts", first=1)))


@family("bailing_hybrid")
def bailing_hybrid(config: ConfigReader) -> tuple[Layer, ...]:
    """Ling 3: five layers of delta attention to one of gated latent attention, all but the first
    two with experts."""
    config.get("num_nextn_predict_layers")
    head_dim, heads = config.size("head_dim"), config.size("num_attention_heads")
    kernel = config.size("short_conv_kernel_size")
    delta = KimiDeltaAttention(heads, head_dim, kernel, full_rank_gates=True)
    full, count = latent(config, head_gate=True), config.size("num_hidden_layers")
    types = config.names("layer_types", ("linear_attention", "full_attention"), count)
    if types is None:
        every = config.size("layer_group_size")
        linear = [(i + 1) % every > 0 for i in range(count)]
    else:
        linear = [each == "linear_attention" for each in types]
    mixers: list[Mixer] = [delta if each else full for each in linear]
    key = "num_experts" if config.get("num_experts") is not None else "num_local_experts"
    return tuple(map(Layer, mixers, shared_mlps(config, key, first=2)))


@family("minimax", "minimax_text_01", "minimax_m1")
def minimax(config: ConfigReader) -> tuple[Layer, ...]:
    """MiniMax-Text-01 and M1: seven layers of lightning attention to one of softmax attention, all
    before experts."""
    if alike(config, "shared_intermediate_size", 0):
        raise config.refuse("shared_intermediate_size", "Shared experts are not known here.")
    config.get("sliding_window")
    full, count = grouped_query(config), config.size("num_hidden_layers")
    lightning = LightningAttention(full.num_heads, full.head_dim, state_value_bytes(config))
    routed = experts(config, "num_local_experts", config.size("intermediate_size"))
    types = config.names("layer_types", ("linear_attention", "full_attention"), count)
    softmax = (
        switches(config, "attn_type_list")
        if types is None
        else [each == "full_attention" for each in types]
    )
    return tuple(Layer(full if each else lightning, routed) for each in softmax)


def _lfm2_mixers(config: ConfigReader) -> list[Mixer]:
    """Attention where `layer_types` or `full_attn_idxs` says so, short convolutions elsewhere."""
    attention = grouped_query(config, qk_norm="head")
    convolution = ShortConvolution(
        channels=config.size("hidden_size"),
        conv_kernel=config.size("conv_L_cache"),
        bias=config.flag("conv_bias"),
    )
    count = config.size("num_hidden_layers")
    types = config.names("layer_types", ("conv", "full_attention"), count)
    if types is None:
        listed = config.whole_numbers("full_attn_idxs")
        types = ["full_attention" if i in listed else "conv" for i in range(count)]
    return [attention if each == "full_attention" else convolution for each in types]


@family("lfm2", tied=True)
def lfm2(config: ConfigReader) -> tuple[Layer, ...]:
    """LFM2: an MLP of two thirds of the width that is given, rounded up, unless told otherwise."""
    width = config.size("block_ff_dim", "intermediate_size")
    if config.flag("block_auto_adjust_ff_dim", True):
        multiplier = config.get("block_ffn_dim_multiplier", 1.0)
        if type(multiplier) not in (int, float) or not 0 < multiplier <= 1000:
            raise config.refuse("block_ffn_dim_multiplier", "It is a number.", given=multiplier)
        multiple = config.size_or("block_multiple_of", 256, minimum=1)
        width = -(-int(multiplier * int(2 * width / 3)) // multiple) * multiple
    return tuple(Layer(mixer, DenseMlp(width)) for mixer in _lfm2_mixers(config))


@family("lfm2_moe", tied=True)
def lfm2_moe(config: ConfigReader) -> tuple[Layer, ...]:
    """LFM2 mixtures: first layers dense, then routed experts alone."""
    plain = DenseMlp(config.size("intermediate_size"))
    routed = experts(
        config, "num_experts", config.size("moe_intermediate_size"),
        router_bias=config.flag("use_expert_bias", True),
    )  # fmt: skip
    sparse = sparse_layers(config, config.size_or("num_dense_layers", 2))
    return tuple(
        Layer(mixer, routed if each else plain)
        for mixer, each in zip(_lfm2_mixers(config), sparse, strict=True)
    )
