"""Parts that families share: attention, windows and experts by their usual keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from advisor.core.architecture import Layer
from advisor.core.config_reader import ConfigReader
from advisor.core.errors import between
from advisor.core.mixers import GroupedQueryAttention, LatentAttention, Mixer
from advisor.core.mlps import DenseMlp, Mlp, MoeMlp


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


def windowed(
    config: ConfigReader, attention: GroupedQueryAttention, on_by_default: bool = True
) -> list[GroupedQueryAttention]:
    """The attention of each layer, sliding where `layer_types` (or, without it,
    `use_sliding_window` past `max_window_layers`) says so."""
    count = config.size("num_hidden_layers")
    window = config.optional_size("sliding_window")
    types = config.names("layer_types", ("sliding_attention", "full_attention"), count)
    if types is None:
        on = window is not None and config.flag("use_sliding_window", on_by_default)
        first = config.size_or("max_window_layers", 0) if on else count
        types = ["full_attention" if i < first else "sliding_attention" for i in range(count)]
    if "sliding_attention" in types and window is None:
        raise config.refuse("sliding_window", "layer_types names sliding layers without a window.")
    sliding = replace(attention, window=window)
    return [sliding if kind == "sliding_attention" else attention for kind in types]


def patterned(
    config: ConfigReader, attention: GroupedQueryAttention, pattern_key: str, default: int
) -> list[GroupedQueryAttention]:
    """Sliding attention, every n-th layer full: by `layer_types`, or by the pattern's length."""
    if config.get("layer_types") is None:
        every = config.size_or(pattern_key, default, minimum=1)
        window = config.size("sliding_window", "sliding_window_size")
        sliding = replace(attention, window=window)
        count = config.size("num_hidden_layers")
        return [attention if (i + 1) % every == 0 else sliding for i in range(count)]
    return windowed(config, attention)


def latent(config: ConfigReader, **indexer: int | None) -> LatentAttention:
    """Multi-head latent attention by DeepSeek's keys."""
    return LatentAttention(
        num_heads=config.size("num_attention_heads"),
        q_lora_rank=config.optional_size("q_lora_rank"),
        kv_lora_rank=config.size("kv_lora_rank"),
        qk_nope_head_dim=config.size("qk_nope_head_dim"),
        qk_rope_head_dim=config.size("qk_rope_head_dim"),
        v_head_dim=config.size("v_head_dim"),
        **indexer,  # type: ignore[arg-type]
    )


def experts(config: ConfigReader, count_key: str, width: int, **details: Any) -> MoeMlp:
    """A mixture of experts of `width`; how many a token uses is under the usual keys."""
    count = config.size(count_key)
    chosen = config.size("num_experts_per_tok", "experts_per_token", "moe_k")
    if chosen > count:
        raise config.refuse(
            "num_experts_per_tok", f"A token cannot use {chosen} of {count} experts.",
            given=chosen, allowed=between(1, count),
        )  # fmt: skip
    return MoeMlp(count, chosen, width, **details)


def uniform(config: ConfigReader, mixer: Mixer, mlp: Mlp, **details: Any) -> tuple[Layer, ...]:
    """All layers alike."""
    return (Layer(mixer, mlp, **details),) * config.size("num_hidden_layers")


def stacked(mixers: Iterable[Mixer], mlp: Mlp, **details: Any) -> tuple[Layer, ...]:
    """Layers whose mixers differ and whose MLP does not."""
    return tuple(Layer(mixer, mlp, **details) for mixer in mixers)


def dense(config: ConfigReader, **details: Any) -> DenseMlp:
    """A feed-forward block of `intermediate_size`."""
    return DenseMlp(config.size("intermediate_size"), **details)
