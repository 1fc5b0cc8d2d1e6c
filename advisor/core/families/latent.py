"""DeepSeek and its kin: latent or compressed attention over dense layers and experts."""

from __future__ import annotations

from dataclasses import replace

from advisor.core.architecture import Layer
from advisor.core.config_reader import ConfigReader
from advisor.core.families.parts import dense, experts, latent, sparse_layers, uniform
from advisor.core.families.register import family
from advisor.core.mixers import CompressedAttention, LatentAttention


def _layers(config: ConfigReader, attention: list[LatentAttention]) -> tuple[Layer, ...]:
    """First layers dense, then experts with shared ones beside them. The multi-token-prediction
    layer is not loaded unless speculation asks for it."""
    config.get("num_nextn_predict_layers")
    width = config.size("moe_intermediate_size")
    routed = experts(
        config, "n_routed_experts", width,
        shared_intermediate_size=config.size_or("n_shared_experts", 0) * width,
        router_bias=config.get("topk_method") == "noaux_tc",
    )  # fmt: skip
    plain = dense(config)
    mlps = [routed if each else plain for each in sparse_layers(config, 0)]
    return tuple(map(Layer, attention, mlps))


@family("deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe_lite", "mistral4")
def deepseek(config: ConfigReader) -> tuple[Layer, ...]:
    """DeepSeek V2, V3, R1, Kimi K2, GLM-4.7-Flash and Mistral Small 4."""
    return _layers(config, [latent(config)] * config.size("num_hidden_layers"))


@family("minicpm3", "youtu", tied=True)
def dense_latent(config: ConfigReader) -> tuple[Layer, ...]:
    """MiniCPM3 and Youtu-LLM: latent attention before dense MLPs."""
    return uniform(config, latent(config), dense(config))


def _indexed(config: ConfigReader) -> LatentAttention:
    """Latent attention with an indexer."""
    return latent(
        config,
        index_topk=config.size("index_topk"),
        index_heads=config.size("index_n_heads"),
        index_head_dim=config.size("index_head_dim"),
    )


@family("deepseek_v32")
def deepseek_sparse(config: ConfigReader) -> tuple[Layer, ...]:
    """DeepSeek V3.2: an indexer picks the cached tokens that are attended to."""
    return _layers(config, [_indexed(config)] * config.size("num_hidden_layers"))


@family("glm_moe_dsa")
def glm_sparse(config: ConfigReader) -> tuple[Layer, ...]:
    """GLM-5: as DeepSeek V3.2; where told, most layers attend to what the last indexer picked, by
    `indexer_types`, a pattern of F (full) and S (shared), or every so many layers."""
    count = config.size("num_hidden_layers")
    types = config.names("indexer_types", ("full", "shared"), count)
    pattern = config.get("index_topk_pattern")
    if types is None and pattern is not None:
        if not isinstance(pattern, str) or len(pattern) != count or set(pattern) - {"F", "S"}:
            raise config.refuse("index_topk_pattern", f"It has F or S for each of {count} layers.")
        types = ["full" if each == "F" else "shared" for each in pattern]
    if types is None:
        every = config.size_or("index_topk_freq", 1, minimum=1)
        first = config.size_or("index_skip_topk_offset", 2)
        types = ["shared" if max(i - first + 1, 0) % every else "full" for i in range(count)]
    if types[0] == "shared":
        raise config.refuse("indexer_types", "The first layer has no indexer before it.")
    full = _indexed(config)
    shared = replace(full, index_heads=0, index_head_dim=0)
    return _layers(config, [full if each == "full" else shared for each in types])


COMPRESSED_LAYERS = {
    0: "sliding_attention",
    4: "compressed_sparse_attention",
    128: "heavily_compressed_attention",
}
"""Kinds of layers of DeepSeek V4, by the numbers in `compress_ratios`."""


def _compressed(config: ConfigReader) -> dict[str, CompressedAttention]:
    """The three kinds of attention of DeepSeek V4, by their names in `layer_types`."""
    for key in ("compress_rates", "compress_rate_csa", "compress_rate_hca"):
        if config.get(key) is not None:
            raise config.refuse(key, "Entries are of 4 and of 128 tokens here.")
    heads, groups = config.size("num_attention_heads"), config.size("o_groups")
    if heads % groups:
        raise config.refuse("o_groups", f"It has to divide {heads} heads.", given=groups)
    sliding = CompressedAttention(
        num_heads=heads,
        head_dim=config.size("head_dim"),
        q_lora_rank=config.size("q_lora_rank"),
        output_groups=groups,
        output_lora_rank=config.size("o_lora_rank"),
        window=config.size("sliding_window"),
    )
    sparse = replace(
        sliding,
        compress_rate=4,
        index_topk=config.size("index_topk"),
        index_heads=config.size("index_n_heads"),
        index_head_dim=config.size("index_head_dim"),
    )
    kinds = (sliding, sparse, replace(sliding, compress_rate=128))
    return dict(zip(COMPRESSED_LAYERS.values(), kinds, strict=True))


@family("deepseek_v4")
def deepseek_v4(config: ConfigReader) -> tuple[Layer, ...]:
    """DeepSeek V4: compressed attention, experts in every layer, hyper-connections. Layers that
    route by token id are counted with the correction of the others, though they have none."""
    if config.get("expert_dtype") not in (None, "bf16", "fp8"):
        raise config.refuse(
            "expert_dtype", "Experts in a format of their own are not known.",
            given=config.get("expert_dtype"),
        )  # fmt: skip
    for key in ("num_nextn_predict_layers", "mlp_layer_types", "qk_rope_head_dim"):
        config.get(key)
    kinds, count = _compressed(config), config.size("num_hidden_layers")
    types, ratios = config.names("layer_types", kinds, count), config.get("compress_ratios")
    if types is None:
        known = isinstance(ratios, list) and len(ratios) >= count
        if not known or any(type(r) is not int or r not in COMPRESSED_LAYERS for r in ratios):
            raise config.refuse("compress_ratios", f"It has 0, 4 or 128 for {count} layers.")
        types = [COMPRESSED_LAYERS[ratio] for ratio in ratios[:count]]
    width = config.size("moe_intermediate_size")
    shared = config.size_or("n_shared_experts", 1) * width
    routed = experts(
        config, "n_routed_experts", width, shared_intermediate_size=shared, router_bias=True
    )
    streams = config.size("hc_mult")
    return tuple(Layer(kinds[each], routed, streams=streams) for each in types)
