"""Model families: one function each, from the keys of a `config.json` to layers.

Adding a family is one function with `@family("its_model_type")` and a test against its published
parameter count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from advisor.core.architecture import (
    Architecture,
    DenseMlp,
    GroupedQueryAttention,
    LatentAttention,
    Layer,
    MoeMlp,
)
from advisor.core.config_reader import ConfigReader
from advisor.core.errors import between

MAX_LAYERS = 2000


@dataclass(frozen=True)
class Family:
    """How one `model_type` is read: its layers, and whether embeddings are tied by default."""

    read: Callable[[ConfigReader], tuple[Layer, ...]]
    tied_by_default: bool = False


FAMILIES: dict[str, Family] = {}

SHAPING_KEYS = frozenset(
    [
        "num_experts",
        "num_local_experts",
        "n_routed_experts",
        "num_experts_per_tok",
        "n_shared_experts",
        "moe_intermediate_size",
        "shared_expert_intermediate_size",
        "moe_layer_freq",
        "first_k_dense_replace",
        "decoder_sparse_step",
        "mlp_only_layers",
        "kv_lora_rank",
        "q_lora_rank",
        "qk_nope_head_dim",
        "qk_rope_head_dim",
        "v_head_dim",
        "sliding_window",
        "layer_types",
        "attention_chunk_size",
        "index_topk",
        "index_head_dim",
        "mamba_num_heads",
        "mamba_expand",
        "ssm_state_size",
        "state_size",
        "linear_num_value_heads",
        "linear_num_key_heads",
        "attn_layer_period",
        "hybrid_override_pattern",
        "layers_block_type",
        "parallel_attn",
        "multi_query",
        "new_decoder_architecture",
        "num_nextn_predict_layers",
    ]
)
"""Keys that change a model's shape: one that a family does not read means it is not that family."""


def family(*model_types: str, tied: bool = False) -> Callable[[Any], Any]:
    """Register the reader of one or more `model_type`s."""

    def register(read: Callable[[ConfigReader], tuple[Layer, ...]]) -> Any:
        for model_type in model_types:
            FAMILIES[model_type] = Family(read, tied)
        return read

    return register


def unread_shaping_keys(config: ConfigReader) -> list[str]:
    """Keys set in the config that shape the model but that its family did not read."""
    return sorted(k for k in SHAPING_KEYS & set(config.config) - config.read if config.config[k])


def base_architecture(config: ConfigReader, model_type: str) -> Architecture:
    """Everything but precision: the common keys, and the family's layers."""
    chosen = FAMILIES[model_type]
    count = config.size("num_hidden_layers")
    if count > MAX_LAYERS:
        raise config.refuse(
            "num_hidden_layers",
            "No model has so many layers.",
            given=count,
            allowed=between(1, MAX_LAYERS),
        )
    return Architecture(
        family=model_type,
        hidden_size=config.size("hidden_size"),
        vocab_size=config.size("vocab_size"),
        context_length=config.size("max_position_embeddings"),
        tied_embeddings=config.flag("tie_word_embeddings", chosen.tied_by_default),
        layers=chosen.read(config),
    )


def grouped_query(config: ConfigReader, **details: Any) -> GroupedQueryAttention:
    """Attention by the keys that most families share; `head_dim` is its own fact where given."""
    heads = config.size("num_attention_heads")
    kv_heads = config.size_or("num_key_value_heads", heads, minimum=1)
    if heads % kv_heads:
        raise config.refuse(
            "num_key_value_heads", f"{heads} heads do not divide over {kv_heads} KV heads.",
            given=kv_heads,
        )  # fmt: skip
    head_dim = config.optional_size("head_dim")
    if head_dim is None:
        hidden = config.size("hidden_size")
        if hidden % heads:
            raise config.refuse("head_dim", f"{hidden} does not divide over {heads} heads.")
        head_dim = hidden // heads
    return GroupedQueryAttention(heads, kv_heads, head_dim, **details)


def windowed(config: ConfigReader, attention: GroupedQueryAttention) -> list[GroupedQueryAttention]:
    """The attention of each layer, sliding where `layer_types` (or, without it,
    `use_sliding_window` past `max_window_layers`) says so."""
    count = config.size("num_hidden_layers")
    window = config.optional_size("sliding_window")
    types = config.names("layer_types", ("sliding_attention", "full_attention"), count)
    if types is None:
        on = window is not None and config.flag("use_sliding_window", True)
        first = config.size_or("max_window_layers", 0) if on else count
        types = ["full_attention" if i < first else "sliding_attention" for i in range(count)]
    if "sliding_attention" in types and window is None:
        raise config.refuse("sliding_window", "layer_types names sliding layers without a window.")
    sliding = replace(attention, window=window)
    return [sliding if kind == "sliding_attention" else attention for kind in types]


@family("llama")
def llama(config: ConfigReader) -> tuple[Layer, ...]:
    """Llama 2 and 3, Code Llama and the many models that share their shape."""
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias)
    mlp = DenseMlp(config.size("intermediate_size"), bias=config.flag("mlp_bias"))
    return (Layer(attention, mlp),) * config.size("num_hidden_layers")


@family("mistral")
def mistral(config: ConfigReader) -> tuple[Layer, ...]:
    """Mistral: as Llama, with a sliding window in its first release."""
    mlp = DenseMlp(config.size("intermediate_size"))
    return tuple(Layer(attention, mlp) for attention in windowed(config, grouped_query(config)))


@family("qwen2")
def qwen2(config: ConfigReader) -> tuple[Layer, ...]:
    """Qwen2 and Qwen2.5: biases on queries, keys and values, never on the output."""
    mlp = DenseMlp(config.size("intermediate_size"))
    attention = grouped_query(config, qkv_bias=True)
    return tuple(Layer(each, mlp) for each in windowed(config, attention))


def _qwen3_attention(config: ConfigReader) -> list[GroupedQueryAttention]:
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias, qk_norm=True)
    return windowed(config, attention)


@family("qwen3")
def qwen3(config: ConfigReader) -> tuple[Layer, ...]:
    """Qwen3 dense: norms on queries and keys."""
    mlp = DenseMlp(config.size("intermediate_size"))
    return tuple(Layer(attention, mlp) for attention in _qwen3_attention(config))


@family("qwen3_moe")
def qwen3_moe(config: ConfigReader) -> tuple[Layer, ...]:
    """Qwen3 mixture of experts; `decoder_sparse_step` and `mlp_only_layers` leave layers dense."""
    dense = DenseMlp(config.size("intermediate_size"))
    experts = _experts(config, "num_experts", config.size("moe_intermediate_size"))
    step = config.size_or("decoder_sparse_step", 1, minimum=1)
    only = set(config.get("mlp_only_layers", ()))
    return tuple(
        Layer(attention, experts if i not in only and (i + 1) % step == 0 else dense)
        for i, attention in enumerate(_qwen3_attention(config))
    )


@family("mixtral")
def mixtral(config: ConfigReader) -> tuple[Layer, ...]:
    """Mixtral: every layer has experts of the full intermediate size."""
    experts = _experts(config, "num_local_experts", config.size("intermediate_size"))
    return tuple(Layer(attention, experts) for attention in windowed(config, grouped_query(config)))


@family("gpt_oss")
def gpt_oss(config: ConfigReader) -> tuple[Layer, ...]:
    """gpt-oss: alternating windows, attention sinks, experts with biases."""
    bias = config.flag("attention_bias", True)
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias, sinks=True)
    experts = _experts(
        config, "num_local_experts", config.size("intermediate_size"), bias=True, router_bias=True
    )
    return tuple(Layer(each, experts) for each in windowed(config, attention))


@family("deepseek_v2", "deepseek_v3")
def deepseek(config: ConfigReader) -> tuple[Layer, ...]:
    """DeepSeek V2 and V3, R1: latent attention, first layers dense, shared experts beside the
    routed. The multi-token-prediction layer is not loaded unless speculation asks for it."""
    config.get("num_nextn_predict_layers")
    attention = LatentAttention(
        num_heads=config.size("num_attention_heads"),
        q_lora_rank=config.optional_size("q_lora_rank"),
        kv_lora_rank=config.size("kv_lora_rank"),
        qk_nope_head_dim=config.size("qk_nope_head_dim"),
        qk_rope_head_dim=config.size("qk_rope_head_dim"),
        v_head_dim=config.size("v_head_dim"),
    )
    width = config.size("moe_intermediate_size")
    experts = _experts(
        config, "n_routed_experts", width,
        shared_intermediate_size=config.size_or("n_shared_experts", 0) * width,
        router_bias=config.get("topk_method") == "noaux_tc",
    )  # fmt: skip
    dense = DenseMlp(config.size("intermediate_size"))
    first = config.size_or("first_k_dense_replace", 0)
    every = config.size_or("moe_layer_freq", 1, minimum=1)
    return tuple(
        Layer(attention, experts if i >= first and i % every == 0 else dense)
        for i in range(config.size("num_hidden_layers"))
    )


def _experts(config: ConfigReader, count_key: str, width: int, **details: Any) -> MoeMlp:
    count = config.size(count_key)
    chosen = config.size("num_experts_per_tok", "experts_per_token")
    if chosen > count:
        raise config.refuse(
            "num_experts_per_tok", f"A token cannot use {chosen} of {count} experts.",
            given=chosen, allowed=between(1, count),
        )  # fmt: skip
    return MoeMlp(count, chosen, width, **details)
