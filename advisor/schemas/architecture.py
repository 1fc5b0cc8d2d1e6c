"""The architecture of a model, written out: kinds of layers and the pattern they repeat in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, validates_schema

from advisor.core.precision import KV_BYTES, WEIGHT_BYTES
from advisor.core.quantization import QUANTIZABLE
from advisor.schemas.base import Closed
from advisor.schemas.containers import ListOf, MapOf, Section, Variant
from advisor.schemas.faults import fault
from advisor.schemas.fields import Choice, Flag, Text, Whole

MOST_HEADS = 100_000
MOST_WIDTH = 10_000_000
PLAIN_PRECISIONS = ("bf16", "fp16", "fp32")
MOST_LAYERS = 2000


class GroupedQueryAttentionBody(Closed):
    """Multi-head, grouped-query or multi-query attention, full or in a sliding window."""

    kind = Choice("", ("gqa",), required=True)
    num_heads = Whole("Query heads.", 1, MOST_HEADS, required=True)
    num_kv_heads = Whole("Key and value heads; divides `num_heads`.", 1, MOST_HEADS, required=True)
    head_dim = Whole("Size of one head.", 1, MOST_HEADS, required=True)
    window = Whole(
        "Sliding window [tokens]; null: full attention.", 1, 10**9,
        allow_none=True, load_default=None,
    )  # fmt: skip
    qkv_bias = Flag("Biases on queries, keys and values.", load_default=False)
    output_bias = Flag("A bias on the output projection.", load_default=False)
    qk_norm = Flag("Norms of head size on queries and keys.", load_default=False)
    sinks = Flag("A learned sink logit per head.", load_default=False)

    @validates_schema
    def heads_divide(self, data: dict[str, Any], **_: Any) -> None:
        """Every key head serves the same number of query heads."""
        if data["num_heads"] % data["num_kv_heads"]:
            detail = f"It has to divide num_heads, {data['num_heads']}."
            wrong = fault(detail, given=data["num_kv_heads"])
            raise ValidationError({"num_kv_heads": wrong.messages})


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


class DenseMlpBody(Closed):
    """A feed-forward block; gated ones have three matrices, plain ones two."""

    kind = Choice("", ("dense",), required=True)
    intermediate_size = Whole("Inner width.", 1, MOST_WIDTH, required=True)
    gated = Flag("SwiGLU and its kin.", load_default=True)
    bias = Flag("Biases on the projections.", load_default=False)


class MoeMlpBody(Closed):
    """A mixture of experts."""

    kind = Choice("", ("moe",), required=True)
    num_experts = Whole("Routed experts.", 1, 100_000, required=True)
    experts_per_token = Whole("Routed experts one token uses.", 1, 100_000, required=True)
    intermediate_size = Whole("Inner width of one expert.", 1, MOST_WIDTH, required=True)
    shared_intermediate_size = Whole(
        "Inner width of all shared experts together; 0: none.", 0, MOST_WIDTH, load_default=0
    )
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
    """One kind of layer: a mixer, an MLP and `norms` norm vectors."""

    mixer = Variant(
        {"gqa": GroupedQueryAttentionBody, "mla": LatentAttentionBody},
        "How tokens see each other.", required=True,
    )  # fmt: skip
    mlp = Variant({"dense": DenseMlpBody, "moe": MoeMlpBody}, "Per-token part.", required=True)
    norms = Whole("Norm vectors of the hidden size.", 0, 16, load_default=2)


class ArchitectureBody(Closed):
    """The shape of a model, from which memory and work are counted."""

    family = Text("What the shape is called.", 100, load_default="custom")
    hidden_size = Whole("Width of the residual stream.", 1, MOST_WIDTH, required=True)
    vocab_size = Whole("Tokens in the vocabulary.", 1, 100_000_000, required=True)
    context_length = Whole("Longest sequence [tokens].", 1, 10**9, required=True)
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
