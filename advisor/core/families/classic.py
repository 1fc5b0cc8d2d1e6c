"""Dense families with LayerNorm and plain MLPs, mostly from before Llama."""

from __future__ import annotations

from advisor.core.architecture import Layer
from advisor.core.config_reader import ConfigReader
from advisor.core.families.parts import dense, grouped_query, nested, stacked, uniform, windowed
from advisor.core.families.register import family
from advisor.core.mixers import GroupedQueryAttention
from advisor.core.mlps import DenseMlp


@family("opt", tied=True, end_norms=2, position_offset=2)
def opt(config: ConfigReader) -> tuple[Layer, ...]:
    """OPT: learned positions, LayerNorm, biases everywhere, a plain MLP."""
    hidden = config.size("hidden_size")
    if config.size_or("word_embed_proj_dim", hidden) != hidden:
        detail = "Embeddings of another width than the model's are not known."
        raise config.refuse("word_embed_proj_dim", detail, allowed=hidden)
    width = config.size("ffn_dim", "ffn_embed_dim", "intermediate_size")
    bias = config.flag("enable_bias", True)
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias)
    return uniform(config, attention, DenseMlp(width, gated=False, bias=bias), norms=4)


@family("gpt_neox", end_norms=2)
def gpt_neox(config: ConfigReader) -> tuple[Layer, ...]:
    """GPT-NeoX and Pythia: attention and MLP side by side unless told otherwise."""
    bias = config.flag("attention_bias", True)
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias)
    parallel = config.flag("use_parallel_residual", True)
    return uniform(
        config, attention, dense(config, gated=False, bias=True), norms=4, parallel=parallel
    )


@family("falcon", tied=True, end_norms=2, defaults={"max_position_embeddings": 2048})
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


@family("gpt2", tied=True, end_norms=2, position_offset=0)
def gpt2(config: ConfigReader) -> tuple[Layer, ...]:
    """GPT-2: learned positions, biases everywhere."""
    width = config.size_or("n_inner", 4 * config.size("hidden_size"), minimum=1)
    attention = grouped_query(config, qkv_bias=True, output_bias=True)
    return uniform(config, attention, DenseMlp(width, gated=False, bias=True), norms=4)


@family("gpt_bigcode", tied=True, end_norms=2, position_offset=0)
def gpt_bigcode(config: ConfigReader) -> tuple[Layer, ...]:
    """StarCoder: GPT-2 with one key and value head."""
    hidden, heads = config.size("hidden_size"), config.size("num_attention_heads")
    kv_heads = 1 if config.flag("multi_query", True) else heads
    width = config.size_or("n_inner", 4 * hidden, minimum=1)
    attention = GroupedQueryAttention(
        heads, kv_heads, hidden // heads, qkv_bias=True, output_bias=True
    )
    return uniform(config, attention, DenseMlp(width, gated=False, bias=True), norms=4)


@family("bloom", tied=True, end_norms=4)
def bloom(config: ConfigReader) -> tuple[Layer, ...]:
    """BLOOM: no positions (ALiBi), a norm behind the embedding, biases everywhere."""
    attention = grouped_query(config, qkv_bias=True, output_bias=True)
    mlp = DenseMlp(4 * config.size("hidden_size"), gated=False, bias=True)
    return uniform(config, attention, mlp, norms=4)


@family("starcoder2", tied=True, end_norms=2)
def starcoder2(config: ConfigReader) -> tuple[Layer, ...]:
    """StarCoder2: rotary positions and grouped queries, LayerNorm and biases kept."""
    bias = config.flag("use_bias", True)
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias)
    return stacked(windowed(config, attention), dense(config, gated=False, bias=bias), norms=4)


@family("stablelm", end_norms=2)
def stablelm(config: ConfigReader) -> tuple[Layer, ...]:
    """StableLM: as Llama with LayerNorm; side by side where told."""
    parallel = config.flag("use_parallel_residual")
    attention = grouped_query(config, qkv_bias=config.flag("use_qkv_bias"))
    norms = 2 if parallel else 4
    return uniform(config, attention, dense(config), norms=norms, parallel=parallel)


@family("nemotron", end_norms=2)
def nemotron(config: ConfigReader) -> tuple[Layer, ...]:
    """Nemotron-4 and Minitron: LayerNorm, a plain MLP with squared ReLU."""
    bias = config.flag("attention_bias")
    attention = grouped_query(config, qkv_bias=bias, output_bias=bias)
    mlp = dense(config, gated=False, bias=config.flag("mlp_bias"))
    return uniform(config, attention, mlp, norms=4)


@family("gptj", "codegen", end_norms=2, head_bias=True)
def gptj(config: ConfigReader) -> tuple[Layer, ...]:
    """GPT-J and CodeGen: attention and MLP side by side behind one norm, biases on the MLP and the
    LM head."""
    width = config.size_or("n_inner", 4 * config.size("hidden_size"), minimum=1)
    mlp = DenseMlp(width, gated=False, bias=True)
    return uniform(config, grouped_query(config), mlp, norms=2, parallel=True)


@family("phi", end_norms=2, head_bias=True)
def phi(config: ConfigReader) -> tuple[Layer, ...]:
    """Phi-1 and Phi-2: as GPT-J, with biases everywhere."""
    attention = grouped_query(config, qkv_bias=True, output_bias=True)
    mlp = dense(config, gated=False, bias=True)
    return uniform(config, attention, mlp, norms=2, parallel=True)


@family("mpt", tied=True)
def mpt(config: ConfigReader) -> tuple[Layer, ...]:
    """MPT: no positions (ALiBi), no biases; its attention is described in an object of its own."""
    attention = nested(config, "attn_config")
    expected = {"attn_type": "multihead_attention", "qk_ln": False, "alibi": True}
    for key, value in expected.items():
        if attention.get(key, value) != value:
            detail = "Another attention of this family is not known."
            raise attention.refuse(key, detail, given=attention.get(key), allowed=value)
    if not config.flag("no_bias", True):
        raise config.refuse("no_bias", "Biases of this family are not known.", given=False)
    width = config.size_or("expansion_ratio", 4, minimum=1) * config.size("hidden_size")
    return uniform(config, grouped_query(config), DenseMlp(width, gated=False))
