"""Dense families: every token passes through every weight."""

from __future__ import annotations

from advisor.core.architecture import Layer
from advisor.core.config_reader import ConfigReader
from advisor.core.families.parts import (
    dense,
    full_first,
    grouped_query,
    patterned,
    stacked,
    uniform,
    windowed,
)
from advisor.core.families.register import family
from advisor.core.mixers import GroupedQueryAttention


@family("llama")
def llama(config: ConfigReader) -> tuple[Layer, ...]:
    """Llama 2 and 3, Code Llama and the many models that share their shape."""
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias)
    return uniform(config, attention, dense(config, bias=config.flag("mlp_bias")))


@family("mistral", "mistral3", "ministral", "ministral3")
def mistral(config: ConfigReader) -> tuple[Layer, ...]:
    """Mistral: as Llama, with a sliding window in its first release."""
    return stacked(windowed(config, grouped_query(config)), dense(config))


@family("qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text")
def qwen2(config: ConfigReader) -> tuple[Layer, ...]:
    """Qwen2 and Qwen2.5, also below a vision encoder: biases on queries, keys and values, never on
    the output."""
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


@family("phi3")
def phi3(config: ConfigReader) -> tuple[Layer, ...]:
    """Phi-3, Phi-3.5 and Phi-4: one matrix for queries, keys and values, no biases."""
    return stacked(windowed(config, grouped_query(config)), dense(config))


@family("granite", "internlm3", "exaone")
def granite(config: ConfigReader) -> tuple[Layer, ...]:
    """Granite 3 (multipliers take no memory), InternLM3 and EXAONE 3: as Llama."""
    return llama(config)


@family("smollm3", tied=True)
def smollm3(config: ConfigReader) -> tuple[Layer, ...]:
    """SmolLM3: as Llama, some layers without rotary positions."""
    if config.flag("use_sliding_window") and config.get("layer_types") is None:
        raise config.refuse("layer_types", "Sliding layers of this family are named one by one.")
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias)
    mlp = dense(config, bias=config.flag("mlp_bias"))
    return stacked(windowed(config, attention, on_by_default=False), mlp)


@family("ernie4_5", tied=True)
def ernie4_5(config: ConfigReader) -> tuple[Layer, ...]:
    """ERNIE 4.5 dense: one switch for all biases."""
    bias = config.flag("use_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias)
    return uniform(config, attention, dense(config, bias=bias))


@family("exaone4")
def exaone4(config: ConfigReader) -> tuple[Layer, ...]:
    """EXAONE 4: three sliding layers to a full one in the larger, norms on queries and keys."""
    attention = grouped_query(config, qk_norm="head")
    if config.get("sliding_window") is None and config.get("layer_types") is None:
        return uniform(config, attention, dense(config))
    return stacked(patterned(config, attention, "sliding_window_pattern", 4), dense(config))


@family("arcee")
def arcee(config: ConfigReader) -> tuple[Layer, ...]:
    """AFM: as Llama, with a plain MLP of squared ReLU."""
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias)
    return uniform(config, attention, dense(config, gated=False, bias=config.flag("mlp_bias")))


@family("seed_oss")
def seed_oss(config: ConfigReader) -> tuple[Layer, ...]:
    """Seed-OSS: biases on queries, keys and values, a switch of its own for the output's."""
    attention = grouped_query(
        config,
        qkv_bias=config.flag("attention_bias", True),
        output_bias=config.flag("attention_out_bias"),
    )
    return uniform(config, attention, dense(config, bias=config.flag("mlp_bias")))


@family("hunyuan_v1_dense")
def hunyuan(config: ConfigReader) -> tuple[Layer, ...]:
    """Hunyuan dense: norms of head size on queries and keys."""
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias, qk_norm="head")
    return uniform(config, attention, dense(config))


@family("glm")
def glm(config: ConfigReader) -> tuple[Layer, ...]:
    """GLM-4 of 2024: biases on queries, keys and values."""
    attention = grouped_query(config, qkv_bias=config.flag("attention_bias"))
    return uniform(config, attention, dense(config))


@family("glm4")
def glm4(config: ConfigReader) -> tuple[Layer, ...]:
    """GLM-4-0414: norms before and after each block."""
    attention = grouped_query(config, qkv_bias=config.flag("attention_bias"))
    return uniform(config, attention, dense(config), norms=4)


@family("glm4v_text")
def glm4v(config: ConfigReader) -> tuple[Layer, ...]:
    """GLM-4.1V below its vision encoder: as GLM-4-0414, always with biases."""
    config.get("attention_bias")
    return uniform(config, grouped_query(config, qkv_bias=True), dense(config), norms=4)


@family("olmo2")
def olmo2(config: ConfigReader) -> tuple[Layer, ...]:
    """OLMo 2: norms after the blocks, and over all query and key heads."""
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias, qk_norm="full")
    return uniform(config, attention, dense(config))


@family("olmo3")
def olmo3(config: ConfigReader) -> tuple[Layer, ...]:
    """OLMo 3: as OLMo 2, with three sliding layers to a full one."""
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias, qk_norm="full")
    return stacked(patterned(config, attention, "sliding_window_pattern", 4), dense(config))


@family("cohere", tied=True)
def cohere(config: ConfigReader) -> tuple[Layer, ...]:
    """Command R: attention and MLP side by side behind one norm."""
    bias = config.flag("attention_bias")
    norm = "full" if config.flag("use_qk_norm") else "none"
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias, qk_norm=norm)
    return uniform(config, attention, dense(config), norms=1, parallel=True)


@family("cwm")
def cwm(config: ConfigReader) -> tuple[Layer, ...]:
    """CWM: as Llama, with one full layer before three sliding ones."""
    mlp = dense(config, bias=config.flag("mlp_bias"))
    return stacked(full_first(config, grouped_query(config)), mlp)


@family("granite_swa", tied=True)
def granite_swa(config: ConfigReader) -> tuple[Layer, ...]:
    """Granite with windows: one full layer before three sliding ones, sinks in all."""
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias, sinks=True)
    mlp = dense(config, bias=config.flag("mlp_bias"))
    return stacked(full_first(config, attention), mlp)


@family("cohere2", tied=True)
def cohere2(config: ConfigReader) -> tuple[Layer, ...]:
    """Command R7B and Command A: as Command R, with three sliding layers to a full one."""
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias)
    layers = patterned(config, attention, "sliding_window_pattern", 4)
    return stacked(layers, dense(config), norms=1, parallel=True)


@family("apertus")
def apertus(config: ConfigReader) -> tuple[Layer, ...]:
    """Apertus: norms on queries and keys, a plain MLP whose xIELU has learned two scalars."""
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias, qk_norm="head")
    return uniform(config, attention, dense(config, gated=False, activation_scalars=2))


@family("olmo", end_norms=0)
def olmo(config: ConfigReader) -> tuple[Layer, ...]:
    """OLMo: norms without weights."""
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias)
    return uniform(config, attention, dense(config), norms=0)
