"""Hybrids: recurrent layers (state-space, linear attention) with some attention between them."""

from __future__ import annotations

from advisor.core.architecture import Layer
from advisor.core.config_reader import ConfigReader
from advisor.core.families.experts import granite_mlp, qwen_mlps
from advisor.core.families.parts import (
    dense,
    experts,
    grouped_query,
    state_value_bytes,
    uniform,
)
from advisor.core.families.register import family
from advisor.core.mixers import (
    AttentionWithMamba,
    GatedDeltaNet,
    GroupedQueryAttention,
    Mamba1,
    Mamba2,
    Mixer,
)
from advisor.core.mlps import Mlp


def _qwen_mixers(config: ConfigReader) -> list[GroupedQueryAttention | GatedDeltaNet]:
    """Three linear layers to one of gated full attention, unless `layer_types` says otherwise."""
    bias = config.flag("attention_bias")
    gated = config.flag("attn_output_gate", True)
    full = grouped_query(config, qkv_bias=bias, output_bias=bias, qk_norm="head", output_gate=gated)
    linear = GatedDeltaNet(
        num_key_heads=config.size("linear_num_key_heads"),
        num_value_heads=config.size("linear_num_value_heads"),
        key_head_dim=config.size("linear_key_head_dim"),
        value_head_dim=config.size("linear_value_head_dim"),
        conv_kernel=config.size("linear_conv_kernel_dim"),
        state_value_bytes=state_value_bytes(config),
    )
    count = config.size("num_hidden_layers")
    types = config.names("layer_types", ("linear_attention", "full_attention"), count)
    if types is None:
        every = config.size_or("full_attention_interval", 4, minimum=1)
        return [linear if (i + 1) % every else full for i in range(count)]
    return [linear if kind == "linear_attention" else full for kind in types]


@family("qwen3_5_text")
def qwen3_5(config: ConfigReader) -> tuple[Layer, ...]:
    """Qwen3.5 dense."""
    config.get("mlp_only_layers")
    return tuple(Layer(mixer, dense(config)) for mixer in _qwen_mixers(config))


@family("qwen3_next", "qwen3_5_moe_text")
def qwen3_next(config: ConfigReader) -> tuple[Layer, ...]:
    """Qwen3-Next and the Qwen3.5 mixtures: a gated shared expert beside the routed ones."""
    shared = config.size("shared_expert_intermediate_size")
    mlps = qwen_mlps(config, shared_intermediate_size=shared, shared_gate=True)
    return tuple(map(Layer, _qwen_mixers(config), mlps))


UNUSED_IN_NEMOTRON = (
    "num_nextn_predict_layers",
    "sliding_window",
    "n_routed_experts",
    "n_shared_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "moe_latent_size",
)
"""Keys that stand in configs whose pattern has no layer they would shape."""


NEMOTRON_BLOCKS = {
    "mamba": "M",
    "linear_attention": "M",
    "attention": "*",
    "full_attention": "*",
    "mlp": "-",
    "moe": "E",
}
"""Letters of the blocks that `layers_block_type` names."""


def _nemotron_pattern(config: ConfigReader) -> str:
    """A letter for each layer, by `layers_block_type` or `hybrid_override_pattern`."""
    count, pattern = config.size("num_hidden_layers"), config.get("hybrid_override_pattern")
    named = config.names("layers_block_type", NEMOTRON_BLOCKS, count)
    if named is not None:
        return "".join(NEMOTRON_BLOCKS[name] for name in named)
    if not isinstance(pattern, str) or len(pattern) != count or set(pattern) - set("M*-E"):
        raise config.refuse(
            "hybrid_override_pattern", f"It has one of M, *, - and E for each of {count} layers."
        )
    return pattern


@family("nemotron_h")
def nemotron_h(config: ConfigReader) -> tuple[Layer, ...]:
    """Nemotron-H and Nemotron 3: one block a layer, named by a letter: `M` Mamba-2, `*` attention,
    `-` MLP, `E` experts."""
    for key in UNUSED_IN_NEMOTRON:
        config.get(key)
    head_dim = config.size("head_dim", "attention_head_dim")
    attention = GroupedQueryAttention(
        config.size("num_attention_heads"), config.size("num_key_value_heads"), head_dim
    )
    mamba = Mamba2(
        num_heads=config.size("mamba_num_heads"),
        head_dim=config.size("mamba_head_dim"),
        state_size=config.size("ssm_state_size"),
        num_groups=config.size("n_groups"),
        conv_kernel=config.size("conv_kernel"),
        projection_bias=config.flag("use_bias"),
        conv_bias=config.flag("use_conv_bias", True),
        state_value_bytes=state_value_bytes(config),
    )
    bias = config.flag("mlp_bias")
    mlp: dict[str, Mlp] = {"-": dense(config, gated=False, bias=bias)}
    pattern = _nemotron_pattern(config)
    if "E" in pattern:
        if bias:
            raise config.refuse("mlp_bias", "Experts of this family have no biases.", given=bias)
        mlp["E"] = experts(
            config, "n_routed_experts", config.size("moe_intermediate_size"),
            shared_intermediate_size=config.size_or("n_shared_experts", 0)
            * config.size_or("moe_shared_expert_intermediate_size", 0),
            latent_size=config.optional_size("moe_latent_size"), gated=False, router_bias=True,
        )  # fmt: skip
    mixers: dict[str, Mixer] = {"M": mamba, "*": attention}
    return tuple(Layer(mixers.get(kind), mlp.get(kind), norms=1) for kind in pattern)


@family("jamba")
def jamba(config: ConfigReader) -> tuple[Layer, ...]:
    """Jamba: one attention layer in eight, experts in every second layer."""
    hidden = config.size("hidden_size")
    rank = config.get("mamba_dt_rank")
    mamba = Mamba1(
        inner_size=config.size("mamba_expand") * hidden,
        state_size=config.size("mamba_d_state"),
        conv_kernel=config.size("mamba_d_conv"),
        time_step_rank=-(-hidden // 16) if rank in (None, "auto") else config.size("mamba_dt_rank"),
        projection_bias=config.flag("mamba_proj_bias"),
        conv_bias=config.flag("mamba_conv_bias", True),
        state_value_bytes=state_value_bytes(config),
        inner_norms=True,
    )
    config.get("sliding_window")
    attention, plain = grouped_query(config), dense(config)
    routed = experts(config, "num_experts", config.size("intermediate_size"))

    def on(name: str, i: int) -> bool:
        period = config.size(f"{name}_layer_period")
        return i % period == config.size_or(f"{name}_layer_offset", 0)

    return tuple(
        Layer(attention if on("attn", i) else mamba, routed if on("expert", i) else plain)
        for i in range(config.size("num_hidden_layers"))
    )


def short_keyed_mamba2(config: ConfigReader, **details: bool) -> Mamba2:
    """Mamba-2 by the keys of Bamba, Granite 4 and Falcon-H1; heads of size `auto` fill the width
    of `mamba_d_ssm`, or the expanded hidden size."""
    heads, head_dim = config.size("mamba_n_heads"), config.get("mamba_d_head", "auto")
    expanded = config.size_or("mamba_expand", 2, minimum=1) * config.size("hidden_size")
    inner = config.size_or("mamba_d_ssm", expanded, minimum=1)
    if head_dim == "auto" and inner % heads:
        raise config.refuse("mamba_d_head", f"{inner} does not divide over {heads} heads.")
    return Mamba2(
        num_heads=heads,
        head_dim=inner // heads if head_dim == "auto" else config.size("mamba_d_head"),
        state_size=config.size("mamba_d_state"),
        num_groups=config.size_or("mamba_n_groups", 1, minimum=1),
        conv_kernel=config.size("mamba_d_conv"),
        projection_bias=config.flag("mamba_proj_bias"),
        conv_bias=config.flag("mamba_conv_bias", True),
        state_value_bytes=state_value_bytes(config),
        **details,
    )


@family("bamba")
def bamba(config: ConfigReader) -> tuple[Layer, ...]:
    """Bamba: Mamba-2 with attention in the layers that are listed, each before an MLP."""
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias)
    mamba, mlp = short_keyed_mamba2(config), dense(config, bias=config.flag("mlp_bias"))
    full = config.whole_numbers("attn_layer_indices")
    return tuple(
        Layer(attention if i in full else mamba, mlp)
        for i in range(config.size("num_hidden_layers"))
    )


@family("falcon_h1")
def falcon_h1(config: ConfigReader) -> tuple[Layer, ...]:
    """Falcon-H1: attention and Mamba-2 side by side in every layer, before an MLP."""
    bias = config.flag("attention_bias")
    if config.flag("projectors_bias") != config.flag("mamba_proj_bias"):
        raise config.refuse("projectors_bias", "It is the same as mamba_proj_bias here.")
    mixer = AttentionWithMamba(
        attention=grouped_query(config, qkv_bias=bias, output_bias=bias),
        state_space=short_keyed_mamba2(config, gated_norm=config.flag("mamba_rms_norm")),
    )
    return uniform(config, mixer, dense(config, bias=config.flag("mlp_bias")))


@family("granitemoehybrid")
def granitemoehybrid(config: ConfigReader) -> tuple[Layer, ...]:
    """Granite 4: Mamba-2 with some attention between, each before experts or one MLP."""
    bias = config.flag("attention_bias")
    mixers: dict[str, Mixer] = {
        "attention": grouped_query(config, qkv_bias=bias, output_bias=bias),
        "mamba": short_keyed_mamba2(config),
    }
    count = config.size("num_hidden_layers")
    key = "layer_types" if config.get("layer_types") is not None else "layers_block_type"
    types = config.names(key, mixers, count) or ["mamba"] * count
    return tuple(Layer(mixers[kind], granite_mlp(config)) for kind in types)


@family("mamba", "falcon_mamba", tied=True, unlimited=True)
def mamba(config: ConfigReader) -> tuple[Layer, ...]:
    """Mamba alone, and Falcon Mamba, whose inner norms have no weights."""
    hidden = config.size("hidden_size")
    rank = config.get("time_step_rank")
    mixer = Mamba1(
        inner_size=config.size_or("intermediate_size", config.size_or("expand", 2) * hidden),
        state_size=config.size("state_size"),
        conv_kernel=config.size("conv_kernel"),
        time_step_rank=-(-hidden // 16)
        if rank in (None, "auto")
        else config.size("time_step_rank"),
        projection_bias=config.flag("use_bias"),
        conv_bias=config.flag("use_conv_bias", True),
        state_value_bytes=state_value_bytes(config),
    )
    return (Layer(mixer, None, norms=1),) * config.size("num_hidden_layers")


@family("mamba2", unlimited=True)
def mamba2(config: ConfigReader) -> tuple[Layer, ...]:
    """Mamba-2 alone: no attention, no MLP, no limit to the context."""
    mixer = Mamba2(
        num_heads=config.size("num_heads"),
        head_dim=config.size("head_dim"),
        state_size=config.size("state_size"),
        num_groups=config.size("n_groups"),
        conv_kernel=config.size("conv_kernel"),
        projection_bias=config.flag("use_bias"),
        conv_bias=config.flag("use_conv_bias", True),
        state_value_bytes=state_value_bytes(config),
    )
    return (Layer(mixer, None, norms=1),) * config.size("num_hidden_layers")
