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
    leave out. `head_bias` is the default of `lm_head_bias`, None where the family has no such bias.
    """

    read: Callable[[ConfigReader], tuple[Layer, ...]]
    tied: bool = False
    end_norms: int = 1
    position_offset: int | None = None
    unlimited: bool = False
    defaults: Mapping[str, int] = field(default_factory=dict)
    head_bias: bool | None = None


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
        "lm_head_bias",
        "num_shared_experts",
        "moe_topk",
        "num_dense_layers",
        "dense_intermediate_size",
        "prefix_dense_intermediate_size",
        "mlp_layer_types",
        "enable_moe_block",
        "use_double_wide_mlp",
        "hidden_size_per_layer_input",
        "num_kv_shared_layers",
        "num_global_key_value_heads",
        "attention_k_eq_v",
        "per_layer_config",
        "laurel_rank",
        "hc_mult",
        "compress_ratios",
        "sparse_attention_config",
        "index_n_heads",
        "linear_attn_config",
        "attn_layer_indices",
        "mamba_d_ssm",
        "conv_L_cache",
        "use_cla",
        "zero_expert_num",
        "attn_config",
        "ffn_config",
        "routed_expert_hidden_size",
        "attn_res_block_size",
        "mla_use_output_gate",
        "altup_num_inputs",
        "indexer_types",
        "index_topk_pattern",
        "index_topk_freq",
        "hybrid_layer_pattern",
        "attn_type_list",
        "num_shared_expert",
        "expert_dtype",
        "num_attention_heads_per_layer",
        "attention_other_setting",
        "moe_layers_enum",
        "share_expert_dim",
        "o_lora_rank",
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


def _counted(config: ConfigReader) -> Mapping[str, int]:
    """The number of layers, where a config leaves it to the length of its list of them."""
    listed = config.config.get("layers_block_type")
    return {"num_hidden_layers": len(listed)} if isinstance(listed, list) else {}


def base_architecture(config: ConfigReader, model_type: str) -> Architecture:
    """Everything but precision: the common keys, and the family's layers."""
    chosen = FAMILIES[model_type]
    config.defaults = {**_counted(config), **chosen.defaults}
    count = config.size("num_hidden_layers")
    if count > MAX_LAYERS:
        raise config.refuse(
            "num_hidden_layers",
            "No model has so many layers.",
            given=count,
            allowed=between(1, MAX_LAYERS),
        )
    context = None if chosen.unlimited else config.size("max_position_embeddings")
    learned, biased = chosen.position_offset, chosen.head_bias
    layers = chosen.read(config)
    own_inputs = any(layer.per_layer_input for layer in layers)
    return Architecture(
        family=model_type,
        hidden_size=config.size("hidden_size"),
        vocab_size=config.size("vocab_size"),
        context_length=context,
        tied_embeddings=config.flag("tie_word_embeddings", chosen.tied),
        layers=layers,
        positions=0 if learned is None or context is None else context + learned,
        final_norms=chosen.end_norms,
        head_bias=biased is not None and config.flag("lm_head_bias", biased),
        per_layer_vocab=config.size("vocab_size_per_layer_input") if own_inputs else 0,
    )
