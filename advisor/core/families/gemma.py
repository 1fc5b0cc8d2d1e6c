"""Gemma: dense but for one of them, tied embeddings, most layers sliding."""

from __future__ import annotations

from dataclasses import replace

from advisor.core.architecture import Layer
from advisor.core.config_reader import ConfigReader
from advisor.core.families.parts import dense, experts, grouped_query, patterned, stacked, uniform
from advisor.core.families.register import family
from advisor.core.mixers import GroupedQueryAttention
from advisor.core.mlps import DenseMlp, Mlp


@family("gemma", tied=True)
def gemma(config: ConfigReader) -> tuple[Layer, ...]:
    """Gemma 1: as Llama, with tied embeddings and wide heads."""
    return uniform(config, grouped_query(config), dense(config))


@family("gemma2", tied=True)
def gemma2(config: ConfigReader) -> tuple[Layer, ...]:
    """Gemma 2: every second layer in full, norms before and after each block."""
    attention = grouped_query(config)
    return stacked(
        patterned(config, attention, "sliding_window_pattern", 2), dense(config), norms=4
    )


GEMMA_3_DEFAULTS = {
    "vocab_size": 262208,
    "max_position_embeddings": 131072,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
}
"""Those of transformers' Gemma3TextConfig, which the published `text_config`s leave out."""


@family("gemma3", "gemma3_text", tied=True, defaults=GEMMA_3_DEFAULTS)
def gemma3(config: ConfigReader) -> tuple[Layer, ...]:
    """Gemma 3: five sliding layers to a full one, norms on queries and keys."""
    attention = grouped_query(config, qk_norm="head")
    return stacked(
        patterned(config, attention, "sliding_window_pattern", 6), dense(config), norms=4
    )


GEMMA_4_DEFAULTS = {
    "max_position_embeddings": 131072,
    "sliding_window": 512,
    "global_head_dim": 512,
    "hidden_size_per_layer_input": 256,
    "vocab_size_per_layer_input": 262144,
}
"""Those of transformers' Gemma4TextConfig."""


GEMMA_4_UNIFIED_DEFAULTS = GEMMA_4_DEFAULTS | {
    "max_position_embeddings": 262144,
    "sliding_window": 1024,
    "hidden_size_per_layer_input": 0,
}
"""Those of Gemma4UnifiedTextConfig (Gemma 4 12B)."""


@family("gemma4_unified", "gemma4_unified_text", tied=True, defaults=GEMMA_4_UNIFIED_DEFAULTS)
@family("gemma4", "gemma4_text", tied=True, defaults=GEMMA_4_DEFAULTS)
def gemma4(config: ConfigReader) -> tuple[Layer, ...]:
    """Gemma 4: in the small ones, the last layers borrow keys and values, and each layer has a
    token embedding of its own; in 26B-A4B, experts run beside the MLP, with norms of their own."""
    attention = _gemma4_attention(config)
    own = config.size_or("hidden_size_per_layer_input", 0)
    first = len(attention) - config.size_or("num_kv_shared_layers", 0)
    if first < 1:
        raise config.refuse("num_kv_shared_layers", "The first layer has none to borrow from.")
    norms = 4 + (4 if config.flag("enable_moe_block") else 0) + bool(own)
    return tuple(
        Layer(
            replace(mixer, borrows_kv=i >= first),
            _gemma4_mlp(config, borrows=i >= first),
            norms=norms,
            per_layer_input=own,
        )
        for i, mixer in enumerate(attention)
    )


def _gemma4_mlp(config: ConfigReader, borrows: bool) -> Mlp:
    """The MLP, twice as wide where told in layers that borrow; experts have a scale each."""
    width = config.size("intermediate_size")
    if config.flag("use_double_wide_mlp") and borrows:
        width *= 2
    if not config.flag("enable_moe_block"):
        return DenseMlp(width)
    size = config.size("moe_intermediate_size")
    return experts(config, "num_experts", size, shared_intermediate_size=width, router_bias=True)


def _gemma4_attention(config: ConfigReader) -> list[GroupedQueryAttention]:
    """Five sliding layers to a full one, the last always full. Full ones have wider heads and, in
    the large models, one projection for keys and values, of which engines cache both."""
    if config.get("use_bidirectional_attention") == "all":
        raise config.refuse("use_bidirectional_attention", "A model that generates is causal.")
    bias, once = config.flag("attention_bias"), config.flag("attention_k_eq_v")
    window = config.size("sliding_window")
    sliding = grouped_query(config, qkv_bias=bias, output_bias=bias, qk_norm="head", window=window)
    kv_heads = config.size_or("num_global_key_value_heads", sliding.num_kv_heads, minimum=1)
    if sliding.num_heads % kv_heads:
        raise config.refuse(
            "num_global_key_value_heads", f"It has to divide {sliding.num_heads} heads.",
            given=kv_heads,
        )  # fmt: skip
    full = replace(
        sliding,
        window=None,
        head_dim=config.size("global_head_dim"),
        num_kv_heads=kv_heads if once else sliding.num_kv_heads,
        keys_as_values=once,
    )
    count = config.size("num_hidden_layers")
    types = config.names("layer_types", ("sliding_attention", "full_attention"), count)
    slides = (
        [(i + 1) % 6 > 0 for i in range(count)]
        if types is None
        else [each == "sliding_attention" for each in types]
    )
    return [sliding if each else full for each in slides[:-1]] + [full]
