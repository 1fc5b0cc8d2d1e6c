"""Parts that families share: attention, windows and experts by their usual keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from advisor.core.architecture import Layer
from advisor.core.config_reader import ConfigReader
from advisor.core.errors import between
from advisor.core.mixers import GroupedQueryAttention, LatentAttention, Mixer
from advisor.core.mlps import DenseMlp, Mlp, MoeMlp


def state_value_bytes(config: ConfigReader) -> int:
    """Bytes of a value of recurrent state: as the config asks, else those of the model's dtype."""
    keys = ("mamba_ssm_cache_dtype", "mamba_ssm_dtype")
    key = next((each for each in keys if config.get(each) is not None), keys[0])
    asked, widths = config.text(key), {"float32": 4, "bfloat16": 2, "float16": 2}
    if asked in ("", "auto"):
        return 4 if config.dtype() == "float32" else 2
    if asked not in widths:
        raise config.refuse(key, "The format is not known.", given=asked, allowed=list(widths))
    return widths[asked]


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


def full_first(
    config: ConfigReader, attention: GroupedQueryAttention
) -> list[GroupedQueryAttention]:
    """Sliding attention, layers 0, 4, 8 and so on full: unless `layer_types` says otherwise."""
    if config.get("layer_types") is None:
        sliding = replace(attention, window=config.size("sliding_window"))
        count = config.size("num_hidden_layers")
        return [sliding if i % 4 else attention for i in range(count)]
    return windowed(config, attention)


def latent(config: ConfigReader, **details: int | None) -> LatentAttention:
    """Multi-head latent attention by DeepSeek's keys."""
    return LatentAttention(
        num_heads=config.size("num_attention_heads"),
        q_lora_rank=config.optional_size("q_lora_rank"),
        kv_lora_rank=config.size("kv_lora_rank"),
        qk_nope_head_dim=config.size("qk_nope_head_dim"),
        qk_rope_head_dim=config.size("qk_rope_head_dim"),
        v_head_dim=config.size("v_head_dim"),
        **details,  # type: ignore[arg-type]
    )


def experts(
    config: ConfigReader, count_key: str, width: int, chosen: int | None = None, **details: Any
) -> MoeMlp:
    """A mixture of experts of `width`; how many a token uses is under the usual keys."""
    count = config.size(count_key)
    chosen = chosen or config.size("num_experts_per_tok")
    if chosen > count:
        raise config.refuse(
            "num_experts_per_tok", f"A token cannot use {chosen} of {count} experts.",
            given=chosen, allowed=between(1, count),
        )  # fmt: skip
    return MoeMlp(count, chosen, width, **details)


def alike(config: ConfigReader, key: str, default: int | None = None) -> int:
    """A size that may be listed for each layer, where all layers have the same."""
    listed = config.get(key)
    if isinstance(listed, list):
        if len({repr(each) for each in listed}) != 1:
            raise config.refuse(key, "All layers have the same here.")
        return ConfigReader({key: listed[0]}, config.pointer).size(key, minimum=0)
    return config.size(key) if default is None else config.size_or(key, default)


def sizes(config: ConfigReader, key: str) -> list[int] | None:
    """An optional list of one size for each layer."""
    listed, count = config.get(key), config.size("num_hidden_layers")
    if listed is None:
        return None
    if not isinstance(listed, list) or len(listed) != count:
        raise config.refuse(key, f"{key} has a size for each of {count} layers.")
    return [ConfigReader({key: each}, config.pointer).size(key) for each in listed]


def sparse_layers(config: ConfigReader, first: int) -> list[bool]:
    """Which layers have experts: by `mlp_layer_types`, by a list in `moe_layer_freq`, or every so
    many from `first_k_dense_replace` on (`first` where that is not given)."""
    count = config.size("num_hidden_layers")
    first = config.size_or("first_k_dense_replace", first)
    types = config.names("mlp_layer_types", ("dense", "sparse"), count)
    if types is not None:
        return [kind == "sparse" for kind in types]
    if isinstance(config.get("moe_layer_freq"), list):
        return switches(config, "moe_layer_freq")
    every = config.size_or("moe_layer_freq", 1, minimum=1)
    return [i >= first and i % every == 0 for i in range(count)]


def switches(config: ConfigReader, key: str) -> list[bool]:
    """A list of one 0 or 1 for each layer."""
    listed, count = config.get(key), config.size("num_hidden_layers")
    if not isinstance(listed, list) or len(listed) != count or set(map(repr, listed)) - {"0", "1"}:
        raise config.refuse(key, f"{key} has a 0 or 1 for each of {count} layers.")
    return [each == 1 for each in listed]


def nested(config: ConfigReader, key: str) -> ConfigReader:
    """The part of a config that stands in an object of its own."""
    part = config.get(key)
    if not isinstance(part, Mapping):
        raise config.refuse(key, f"{key} is an object.")
    return ConfigReader(part, f"{config.pointer}/{key}")


def uniform(config: ConfigReader, mixer: Mixer, mlp: Mlp, **details: Any) -> tuple[Layer, ...]:
    """All layers alike."""
    return (Layer(mixer, mlp, **details),) * config.size("num_hidden_layers")


def stacked(mixers: Iterable[Mixer], mlp: Mlp, **details: Any) -> tuple[Layer, ...]:
    """Layers whose mixers differ and whose MLP does not."""
    return tuple(Layer(mixer, mlp, **details) for mixer in mixers)


def dense(config: ConfigReader, **details: Any) -> DenseMlp:
    """A feed-forward block of `intermediate_size`."""
    return DenseMlp(config.size("intermediate_size"), **details)
