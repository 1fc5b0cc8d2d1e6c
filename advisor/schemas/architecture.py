"""The architecture of a model, written out: kinds of layers and the pattern they repeat in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, validates_schema

from advisor.core.precision import KV_BYTES, WEIGHT_BYTES
from advisor.core.quantization import QUANTIZABLE
from advisor.core.recurrent import STATE_VALUE_BYTES
from advisor.schemas.base import Closed
from advisor.schemas.containers import ListOf, MapOf, Section, Variant
from advisor.schemas.faults import fault
from advisor.schemas.fields import Choice, Flag, Text, Whole

MOST_HEADS = 100_000
MOST_WIDTH = 10_000_000
PLAIN_PRECISIONS = ("bf16", "fp16", "fp32")
MOST_LAYERS = 2000
MOST_STATE = 100_000
MOST_KERNEL = 1000
QK_NORMS = ("none", "head", "full")


def refuse_indivisible(data: Mapping[str, Any], part: str, whole: str) -> None:
    """ValidationError at `part` unless it divides `whole`."""
    if data[whole] % data[part]:
        detail = f"It has to divide {whole}, {data[whole]}."
        raise ValidationError({part: fault(detail, given=data[part]).messages})


def refuse_half_indexer(data: Mapping[str, Any]) -> None:
    """ValidationError unless an indexer has both heads and a size of them, and index_topk."""
    keys = ("index_heads", "index_head_dim")
    given = [key for key in keys if data[key] > 0]
    if data["index_topk"] is None and given:
        wrong = fault("It is 0 without index_topk.", given=data[given[0]])
        raise ValidationError({given[0]: wrong.messages})
    if len(given) == 1:
        (missing,) = set(keys) - set(given)
        wrong = fault(f"It is above 0 with {given[0]}.", given=0)
        raise ValidationError({missing: wrong.messages})


class GroupedQueryAttentionBody(Closed):
    """Multi-head, grouped-query or multi-query attention, full, sliding or in chunks."""

    kind = Choice("", ("gqa",), required=True)
    num_heads = Whole("Query heads.", 1, MOST_HEADS, required=True)
    num_kv_heads = Whole("Key and value heads; divides `num_heads`.", 1, MOST_HEADS, required=True)
    head_dim = Whole("Size of one head.", 1, MOST_HEADS, required=True)
    window = Whole(
        "Sliding window [tokens]; null: full attention.", 1, 10**9,
        allow_none=True, load_default=None,
    )  # fmt: skip
    chunked = Flag("The window restarts at each of its multiples.", load_default=False)
    qkv_bias = Flag("Biases on queries, keys and values.", load_default=False)
    output_bias = Flag("A bias on the output projection.", load_default=False)
    qk_norm = Choice(
        "Norms on queries and keys: none, of one head's size, or over all heads.",
        QK_NORMS, load_default="none",
    )  # fmt: skip
    output_gate = Flag("Queries are projected twice, once as a gate.", load_default=False)
    sinks = Flag("A learned sink logit per head.", load_default=False)
    value_head_dim = Whole(
        "Size of a value head; null: that of the others.", 1, MOST_HEADS,
        allow_none=True, load_default=None,
    )  # fmt: skip
    keys_as_values = Flag("One projection gives keys and values.", load_default=False)
    head_gate = Flag("A gate on the output of each head.", load_default=False)
    borrows_kv = Flag(
        "No keys and values of its own: those of an earlier layer are attended to.",
        load_default=False,
    )

    @validates_schema
    def heads_divide(self, data: dict[str, Any], **_: Any) -> None:
        """Every key head serves the same number of query heads."""
        refuse_indivisible(data, "num_kv_heads", "num_heads")

    @validates_schema
    def chunks_have_a_size(self, data: dict[str, Any], **_: Any) -> None:
        """Chunks are as long as the window."""
        if data["chunked"] and data["window"] is None:
            wrong = fault("Chunks need a window.", given=None)
            raise ValidationError({"window": wrong.messages})


class LatentAttentionBody(Closed):
    """Multi-head latent attention: one compressed vector is cached per token."""

    kind = Choice("", ("mla",), required=True)
    num_heads = Whole("Query heads.", 1, MOST_HEADS, required=True)
    q_lora_rank = Whole(
        "Rank of the query projection; null: projected directly.", 1, MOST_WIDTH,
        allow_none=True, load_default=None,
    )  # fmt: skip
    kv_lora_rank = Whole("Size of the cached latent.", 1, MOST_WIDTH, required=True)
    qk_nope_head_dim = Whole("Head size without rotary part.", 1, MOST_HEADS, required=True)
    qk_rope_head_dim = Whole("Size of the rotary key.", 1, MOST_HEADS, required=True)
    v_head_dim = Whole("Size of a value head.", 1, MOST_HEADS, required=True)
    index_topk = Whole(
        "Cached tokens that are attended to, as an indexer picks them; null: all.", 1, 10**9,
        allow_none=True, load_default=None,
    )  # fmt: skip
    index_heads = Whole(
        "Heads of the indexer; 0: none, or that of an earlier layer.", 0, MOST_HEADS, load_default=0
    )
    index_head_dim = Whole(
        "Size of an indexer's head, and of its cached key; 0: none.", 0, MOST_HEADS, load_default=0
    )

    head_gate = Flag("A gate on the output of each head.", load_default=False)

    @validates_schema
    def indexer_is_whole(self, data: dict[str, Any], **_: Any) -> None:
        """An indexer has heads and a size of them; without heads, an earlier layer's is used."""
        refuse_half_indexer(data)


class CompressedAttentionBody(Closed):
    """Attention over the last tokens and compressed entries of those before."""

    kind = Choice("", ("compressed",), required=True)
    num_heads = Whole("Query heads.", 1, MOST_HEADS, required=True)
    head_dim = Whole("Size of one head, and of an entry.", 1, MOST_HEADS, required=True)
    q_lora_rank = Whole("Rank of the query projection.", 1, MOST_WIDTH, required=True)
    output_groups = Whole(
        "Groups of heads whose output is projected apart; divides `num_heads`.",
        1, MOST_HEADS, required=True,
    )  # fmt: skip
    output_lora_rank = Whole("Rank of each group's output.", 1, MOST_WIDTH, required=True)
    window = Whole("Last tokens, kept as they are.", 1, 10**9, required=True)
    compress_rate = Whole(
        "Tokens of one compressed entry; null: none are kept beyond the window.", 1, 10**6,
        allow_none=True, load_default=None,
    )  # fmt: skip
    index_topk = Whole(
        "Entries an indexer picks for attention; null: all.", 1, 10**9,
        allow_none=True, load_default=None,
    )  # fmt: skip
    index_heads = Whole("Heads of the indexer; 0: none.", 0, MOST_HEADS, load_default=0)
    index_head_dim = Whole("Size of an indexer's head; 0: none.", 0, MOST_HEADS, load_default=0)

    @validates_schema
    def groups_divide(self, data: dict[str, Any], **_: Any) -> None:
        """Groups have equally many heads."""
        refuse_indivisible(data, "output_groups", "num_heads")

    @validates_schema
    def indexer_is_whole(self, data: dict[str, Any], **_: Any) -> None:
        """An indexer picks entries, and has heads and a size of them; without one, neither."""
        refuse_half_indexer(data)
        if data["index_topk"] is not None and not (data["index_heads"] and data["compress_rate"]):
            wrong = fault("It needs index_heads and compress_rate.", given=data["index_topk"])
            raise ValidationError({"index_topk": wrong.messages})


def state_value() -> Whole:
    """Bytes of a value of recurrent state."""
    doc = "Bytes of a value of its state; 4: fp32."
    return Whole(doc, 1, 8, load_default=STATE_VALUE_BYTES)


class Mamba1Body(Closed):
    """A Mamba-1 layer: a recurrent state for each inner channel."""

    kind = Choice("", ("mamba1",), required=True)
    inner_size = Whole("Inner channels.", 1, MOST_WIDTH, required=True)
    state_size = Whole("State of one channel.", 1, MOST_STATE, required=True)
    conv_kernel = Whole("Inputs that the causal convolution sees.", 1, MOST_KERNEL, required=True)
    time_step_rank = Whole("Rank of the time-step projection.", 1, MOST_WIDTH, required=True)
    projection_bias = Flag("Biases on input and output projections.", load_default=False)
    conv_bias = Flag("A bias on the convolution.", load_default=True)
    inner_norms = Flag("Norms on time step and state projections.", load_default=False)
    state_value_bytes = state_value()


class Mamba2Body(Closed):
    """A Mamba-2 layer: heads with a state of `head_dim` x `state_size` each."""

    kind = Choice("", ("mamba2",), required=True)
    num_heads = Whole("Heads.", 1, MOST_HEADS, required=True)
    head_dim = Whole("Size of one head.", 1, MOST_HEADS, required=True)
    state_size = Whole("State of one channel.", 1, MOST_STATE, required=True)
    num_groups = Whole(
        "Groups of heads that share state projections; divides `num_heads`.",
        1, MOST_HEADS, required=True,
    )  # fmt: skip
    conv_kernel = Whole("Inputs that the causal convolution sees.", 1, MOST_KERNEL, required=True)
    projection_bias = Flag("Biases on input and output projections.", load_default=False)
    conv_bias = Flag("A bias on the convolution.", load_default=True)
    gated_norm = Flag("A norm before the output projection.", load_default=True)
    state_value_bytes = state_value()

    @validates_schema
    def groups_divide(self, data: dict[str, Any], **_: Any) -> None:
        """Groups have equally many heads."""
        refuse_indivisible(data, "num_groups", "num_heads")


class GatedDeltaNetBody(Closed):
    """Linear attention with a gated delta rule: a key x value matrix per value head."""

    kind = Choice("", ("gated_delta_net",), required=True)
    num_key_heads = Whole(
        "Heads of queries and keys; divides `num_value_heads`.", 1, MOST_HEADS, required=True
    )
    num_value_heads = Whole("Heads of values.", 1, MOST_HEADS, required=True)
    key_head_dim = Whole("Size of a key head.", 1, MOST_HEADS, required=True)
    value_head_dim = Whole("Size of a value head.", 1, MOST_HEADS, required=True)
    conv_kernel = Whole("Inputs that the causal convolution sees.", 1, MOST_KERNEL, required=True)
    state_value_bytes = state_value()

    @validates_schema
    def heads_divide(self, data: dict[str, Any], **_: Any) -> None:
        """Every key head serves the same number of value heads."""
        refuse_indivisible(data, "num_key_heads", "num_value_heads")


class KimiDeltaAttentionBody(Closed):
    """Linear attention whose delta rule decays by channel: a key x value matrix per head."""

    kind = Choice("", ("kimi_delta_attention",), required=True)
    num_heads = Whole("Heads.", 1, MOST_HEADS, required=True)
    head_dim = Whole("Size of one head.", 1, MOST_HEADS, required=True)
    conv_kernel = Whole("Inputs that the causal convolution sees.", 1, MOST_KERNEL, required=True)
    full_rank_gates = Flag(
        "Decay and output gate are projected at once, not through the head size.",
        load_default=False,
    )
    state_value_bytes = state_value()


class LightningAttentionBody(Closed):
    """Linear attention with a fixed decay per head: a key x value matrix per head."""

    kind = Choice("", ("lightning_attention",), required=True)
    num_heads = Whole("Heads.", 1, MOST_HEADS, required=True)
    head_dim = Whole("Size of one head.", 1, MOST_HEADS, required=True)
    state_value_bytes = state_value()


class ShortConvolutionBody(Closed):
    """A gated causal convolution over the last few tokens."""

    kind = Choice("", ("short_convolution",), required=True)
    channels = Whole("Channels: the hidden size.", 1, MOST_WIDTH, required=True)
    conv_kernel = Whole("Inputs that the convolution sees.", 1, MOST_KERNEL, required=True)
    bias = Flag("Biases on projections and convolution.", load_default=False)


class AttentionWithMambaBody(Closed):
    """Attention and a Mamba-2 mixer side by side on the same input."""

    kind = Choice("", ("gqa_mamba2",), required=True)
    attention = Section(GroupedQueryAttentionBody, "The attention.", required=True)
    state_space = Section(Mamba2Body, "The state-space mixer.", required=True)


class DenseMlpBody(Closed):
    """A feed-forward block; gated ones have three matrices, plain ones two."""

    kind = Choice("", ("dense",), required=True)
    intermediate_size = Whole("Inner width.", 1, MOST_WIDTH, required=True)
    gated = Flag("SwiGLU and its kin.", load_default=True)
    bias = Flag("Biases on the projections.", load_default=False)
    activation_scalars = Whole(
        "Numbers that the activation function has learned.", 0, 1000, load_default=0
    )


class MoeMlpBody(Closed):
    """A mixture of experts."""

    kind = Choice("", ("moe",), required=True)
    num_experts = Whole("Routed experts.", 1, 100_000, required=True)
    experts_per_token = Whole("Routed experts one token uses.", 1, 100_000, required=True)
    intermediate_size = Whole("Inner width of one expert.", 1, MOST_WIDTH, required=True)
    shared_intermediate_size = Whole(
        "Inner width of all shared experts together; 0: none.", 0, MOST_WIDTH, load_default=0
    )
    shared_gate = Flag("A learned gate on the shared experts.", load_default=False)
    latent_size = Whole(
        "Width that experts work in, between two projections; null: the hidden size.",
        1, MOST_WIDTH, allow_none=True, load_default=None,
    )  # fmt: skip
    gated = Flag("SwiGLU and its kin.", load_default=True)
    bias = Flag("Biases on the projections.", load_default=False)
    router_bias = Flag("A bias or correction per expert.", load_default=False)

    @validates_schema
    def enough_experts(self, data: dict[str, Any], **_: Any) -> None:
        """A token cannot use more experts than there are."""
        if data["experts_per_token"] > data["num_experts"]:
            wrong = fault(
                "A token cannot use more experts than there are.",
                given=data["experts_per_token"],
                allowed={"minimum": 1, "maximum": data["num_experts"]},
            )
            raise ValidationError({"experts_per_token": wrong.messages})


class LayerBody(Closed):
    """One kind of layer: a mixer and an MLP, one of which may be null, and `norms` norm vectors."""

    mixer = Variant(
        {
            "gqa": GroupedQueryAttentionBody,
            "mla": LatentAttentionBody,
            "compressed": CompressedAttentionBody,
            "mamba1": Mamba1Body,
            "mamba2": Mamba2Body,
            "gated_delta_net": GatedDeltaNetBody,
            "kimi_delta_attention": KimiDeltaAttentionBody,
            "lightning_attention": LightningAttentionBody,
            "short_convolution": ShortConvolutionBody,
            "gqa_mamba2": AttentionWithMambaBody,
        },
        "How tokens see each other; null: not in this layer.",
        required=True, allow_none=True,
    )  # fmt: skip
    mlp = Variant(
        {"dense": DenseMlpBody, "moe": MoeMlpBody},
        "Per-token part; null: not in this layer.",
        required=True, allow_none=True,
    )  # fmt: skip
    norms = Whole("Norm vectors of the hidden size.", 0, 16, load_default=2)
    parallel = Flag("Mixer and MLP run side by side on the same input.", load_default=False)
    per_layer_input = Whole(
        "Width of a token embedding of the layer's own; 0: none.", 0, MOST_WIDTH, load_default=0
    )
    streams = Whole(
        "Residual streams that hyper-connections mix; 1: none do.", 1, 64, load_default=1
    )

    @validates_schema
    def does_something(self, data: dict[str, Any], **_: Any) -> None:
        """A layer has a mixer or an MLP; side by side it takes both."""
        for key, other in (("mixer", "mlp"), ("mlp", "mixer")):
            if data[key] is None and (data[other] is None or data["parallel"]):
                detail = "A layer has a mixer, an MLP or both, and both where they are parallel."
                raise ValidationError({key: fault(detail, given=None).messages})


class ArchitectureBody(Closed):
    """The shape of a model, from which memory and work are counted."""

    family = Text("What the shape is called.", 100, load_default="custom")
    hidden_size = Whole("Width of the residual stream.", 1, MOST_WIDTH, required=True)
    vocab_size = Whole("Tokens in the vocabulary.", 1, 100_000_000, required=True)
    context_length = Whole(
        "Longest sequence [tokens]; null: not limited.", 1, 10**9, required=True, allow_none=True
    )
    tied_embeddings = Flag("The LM head is the embedding table.", load_default=False)
    num_layers = Whole("Layers.", 1, MOST_LAYERS, required=True)
    layer_kinds = MapOf(
        Section(LayerBody), "Kinds of layers, by a name of your own.",
        fewest=1, most=64, required=True,
    )  # fmt: skip
    layer_pattern = ListOf(
        Text("A name in `layer_kinds`.", 100),
        "Kinds in order, repeated until `num_layers` layers stand.",
        fewest=1, most=MOST_LAYERS, required=True,
    )  # fmt: skip
    positions = Whole("Learned position vectors of the hidden size.", 0, 10**9, load_default=0)
    final_norms = Whole("Norm vectors after the last layer.", 0, 16, load_default=1)
    head_bias = Flag("A bias on the LM head.", load_default=False)
    per_layer_vocab = Whole(
        "Tokens in the table of per-layer inputs; 0: none.", 0, 100_000_000, load_default=0
    )
    plain_precision = Choice(
        "Format of what is not quantized.", PLAIN_PRECISIONS, load_default="bf16"
    )
    weights_precision = Choice(
        "Format of `quantized_parts` in the checkpoint.", tuple(WEIGHT_BYTES), load_default="bf16"
    )
    quantized_parts = ListOf(
        Choice("", QUANTIZABLE), "Parts stored in `weights_precision`.",
        most=len(QUANTIZABLE), unique=True, load_default=list,
    )  # fmt: skip
    kv_cache_precision = Choice(
        "Format the KV cache takes by default.", tuple(KV_BYTES), load_default="bf16"
    )

    @validates_schema
    def pattern_is_known(self, data: Mapping[str, Any], **_: Any) -> None:
        """The pattern names kinds of layers that are described, and fits into the layers."""
        kinds, pattern = data["layer_kinds"], data["layer_pattern"]
        wrong = {
            index: fault("No such kind of layer.", given=name, allowed=sorted(kinds)).messages
            for index, name in enumerate(pattern)
            if name not in kinds
        }
        if wrong:
            raise ValidationError({"layer_pattern": wrong})
        if len(pattern) > data["num_layers"]:
            detail = f"The pattern is longer than num_layers, {data['num_layers']}."
            raise ValidationError({"layer_pattern": fault(detail).messages})
