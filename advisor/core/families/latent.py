"""DeepSeek and its kin: latent attention over dense layers and experts."""

from __future__ import annotations

from advisor.core.architecture import Layer
from advisor.core.config_reader import ConfigReader
from advisor.core.families.parts import dense, experts, latent
from advisor.core.families.register import family
from advisor.core.mixers import LatentAttention


def _layers(config: ConfigReader, attention: LatentAttention) -> tuple[Layer, ...]:
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
    first = config.size_or("first_k_dense_replace", 0)
    every = config.size_or("moe_layer_freq", 1, minimum=1)
    return tuple(
        Layer(attention, routed if i >= first and i % every == 0 else plain)
        for i in range(config.size("num_hidden_layers"))
    )


@family("deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe_lite")
def deepseek(config: ConfigReader) -> tuple[Layer, ...]:
    """DeepSeek V2, V3, R1, Kimi K2 and GLM-4.7-Flash."""
    return _layers(config, latent(config))


@family("deepseek_v32", "glm_moe_dsa")
def deepseek_sparse(config: ConfigReader) -> tuple[Layer, ...]:
    """DeepSeek V3.2 and GLM-5: an indexer picks the cached tokens that are attended to."""
    return _layers(
        config,
        latent(
            config,
            index_topk=config.size("index_topk"),
            index_heads=config.size("index_n_heads"),
            index_head_dim=config.size("index_head_dim"),
        ),
    )
