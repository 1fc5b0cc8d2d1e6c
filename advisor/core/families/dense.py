"""Dense families: every token passes through every weight."""

from __future__ import annotations

from advisor.core.architecture import Layer
from advisor.core.config_reader import ConfigReader
from advisor.core.families.parts import dense, grouped_query, patterned, stacked, uniform, windowed
from advisor.core.families.register import family
from advisor.core.mixers import GroupedQueryAttention
from advisor.core.mlps import DenseMlp


@family("llama")
def llama(config: ConfigReader) -> tuple[Layer, ...]:
    """Llama 2 and 3, Code Llama and the many models that share their shape."""
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias)
    return uniform(config, attention, dense(config, bias=config.flag("mlp_bias")))


@family("mistral", "mistral3", "ministral")
def mistral(config: ConfigReader) -> tuple[Layer, ...]:
    """Mistral: as Llama, with a sliding window in its first release."""
    return stacked(windowed(config, grouped_query(config)), dense(config))


@family("qwen2", "qwen2_5_vl_text", "qwen2_vl_text")
def qwen2(config: ConfigReader) -> tuple[Layer, ...]:
    """Qwen2 and Qwen2.5: biases on queries, keys and values, never on the output."""
    return stacked(
        windowed(config, grouped_query(config, qkv_bias=True), on_by_default=False), dense(config)
    )


def qwen3_attention(config: ConfigReader) -> list[GroupedQueryAttention]:
    """Attention of Qwen3: norms of head size on queries and keys."""
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias, qk_norm="head")
    return windowed(config, attention, on_by_default=False)


@family("qwen3", "qwen3_vl_text")
def qwen3(config: ConfigReader) -> tuple[Layer, ...]:
    """Qwen3 dense."""
    return stacked(qwen3_attention(config), dense(config))


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


@family("gemma3", "gemma3_text", tied=True)
def gemma3(config: ConfigReader) -> tuple[Layer, ...]:
    """Gemma 3: five sliding layers to a full one, norms on queries and keys."""
    attention = grouped_query(config, qk_norm="head")
    return stacked(
        patterned(config, attention, "sliding_window_pattern", 6), dense(config), norms=4
    )


@family("phi3")
def phi3(config: ConfigReader) -> tuple[Layer, ...]:
    """Phi-3, Phi-3.5 and Phi-4: one matrix for queries, keys and values, no biases."""
    return stacked(windowed(config, grouped_query(config)), dense(config))


@family("opt", tied=True, biased_norms=True, position_offset=2)
def opt(config: ConfigReader) -> tuple[Layer, ...]:
    """OPT: learned positions, LayerNorm, biases everywhere, a plain MLP."""
    width = config.size("ffn_dim", "ffn_embed_dim", "intermediate_size")
    attention = grouped_query(config, qkv_bias=True, output_bias=True)
    return uniform(config, attention, DenseMlp(width, gated=False, bias=True), norms=4)


@family("gpt_neox", biased_norms=True)
def gpt_neox(config: ConfigReader) -> tuple[Layer, ...]:
    """GPT-NeoX and Pythia: attention and MLP side by side unless told otherwise."""
    bias = config.flag("attention_bias", True)
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias)
    parallel = config.flag("use_parallel_residual", True)
    return uniform(
        config, attention, dense(config, gated=False, bias=True), norms=4, parallel=parallel
    )


@family("falcon", biased_norms=True)
def falcon(config: ConfigReader) -> tuple[Layer, ...]:
    """Falcon: multi-query in the 7B, grouped with two input norms in the larger ones, parallel."""
    heads, hidden = config.size("num_attention_heads"), config.size("hidden_size")
    grouped = config.flag("new_decoder_architecture")
    default = 1 if config.flag("multi_query", True) and not grouped else heads
    kv_heads = config.size_or("num_kv_heads", config.size_or("num_key_value_heads", default))
    bias, parallel = config.flag("bias"), config.flag("parallel_attn", True)
    attention = GroupedQueryAttention(
        heads, kv_heads, hidden // heads, qkv_bias=bias, output_bias=bias
    )
    width = config.size_or("ffn_hidden_size", config.size_or("intermediate_size", 4 * hidden))
    norms = 4 if grouped or not parallel else 2
    mlp = DenseMlp(width, gated=False, bias=bias)
    return uniform(config, attention, mlp, norms=norms, parallel=parallel)
