"""The register of model families, and what is read of every `config.json` alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from advisor.core.architecture import Architecture, Layer
from advisor.core.config_reader import ConfigReader
from advisor.core.errors import between

MAX_LAYERS = 2000


@dataclass(frozen=True)
class Family:
    """How one `model_type` is read.

    `read` gives its layers. `tied` is the default of `tie_word_embeddings`; `end_norms` counts the
    vectors of the norms outside the layers (two where the last norm has a bias); `position_offset`
    is given where positions are learned: how many vectors more than the context there are;
    `unlimited` models have no longest context; `defaults` stand for keys that published configs
    leave out.
    """

    read: Callable[[ConfigReader], tuple[Layer, ...]]
    tied: bool = False
    end_norms: int = 1
    position_offset: int | None = None
    unlimited: bool = False
    defaults: Mapping[str, int] = field(default_factory=dict)


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
        "moe_latent_size",
        "linear_conv_kernel_dim",
        "shared_intermediate_size",
        "moe_num_experts",
        "moe_num_shared_experts",
        "mamba_n_heads",
        "mamba_d_state",
        "qk_layernorm",
    ]
)
"""Keys that change a model's shape: one that a family does not read means it is not that family."""


Reader = Callable[[ConfigReader], tuple[Layer, ...]]


def family(*model_types: str, **details: Any) -> Callable[[Reader], Reader]:
    """Register the reader of one or more `model_type`s, with the details of `Family`."""

    def register(read: Reader) -> Reader:
        for model_type in model_types:
            FAMILIES[model_type] = Family(read, **details)
        return read

    return register


def unread_shaping_keys(config: ConfigReader) -> list[str]:
    """Keys set in the config that shape the model but that its family did not read."""
    return sorted(k for k in SHAPING_KEYS & set(config.config) - config.read if config.config[k])


def base_architecture(config: ConfigReader, model_type: str) -> Architecture:
    """Everything but precision: the common keys, and the family's layers."""
    chosen = FAMILIES[model_type]
    config.defaults = chosen.defaults
    count = config.size("num_hidden_layers")
    if count > MAX_LAYERS:
        raise config.refuse(
            "num_hidden_layers",
            "No model has so many layers.",
            given=count,
            allowed=between(1, MAX_LAYERS),
        )
    context = None if chosen.unlimited else config.size("max_position_embeddings")
    learned = chosen.position_offset
    return Architecture(
        family=model_type,
        hidden_size=config.size("hidden_size"),
        vocab_size=config.size("vocab_size"),
        context_length=context,
        tied_embeddings=config.flag("tie_word_embeddings", chosen.tied),
        layers=chosen.read(config),
        positions=0 if learned is None or context is None else context + learned,
        final_norms=chosen.end_norms,
    )
