"""The shape of a transformer, layer by layer, from which memory and work are counted.

A model is an embedding, a row of layers, a final norm and an LM head. A layer has a mixer
(attention in one of its kinds) and an MLP (dense or mixture of experts). Both name their weight
matrices once, with how each may be split; parameters, bytes on a rank and FLOP all follow from
that list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

VOCABULARY_PADDING = 64
"""Engines pad the vocabulary to a multiple of this before splitting it."""


@dataclass(frozen=True)
class Matrix:
    """One weight matrix of a layer, or `copies` like it.

    `split` says how tensor parallelism divides it: `columns` or `rows` over all ranks, `heads` over
    at most `units` ranks (KV heads are replicated beyond that), `none` when every rank holds it
    whole. `used` is how many of the copies one token passes through (experts). `vector` parameters
    (biases, norms) are stored but cost no matrix product.
    """

    part: str
    inputs: int
    outputs: int
    split: str = "columns"
    units: int = 0
    copies: int = 1
    used: int = 1
    vector: int = 0

    @property
    def matmul_parameters(self) -> int:
        """Parameters multiplied with a token, in one copy."""
        return self.inputs * self.outputs

    @property
    def parameters(self) -> int:
        """All stored parameters."""
        return self.copies * (self.matmul_parameters + self.vector)

    @property
    def active_parameters(self) -> int:
        """Parameters that one token uses."""
        return self.used * (self.matmul_parameters + self.vector)

    def ways(self, ranks: int) -> int:
        """Over how many of `ranks` this matrix is really divided."""
        if self.split == "none":
            return 1
        return min(ranks, self.units) if self.split == "heads" else ranks


@dataclass(frozen=True)
class GroupedQueryAttention:
    """Multi-head, grouped-query or multi-query attention, full or in a sliding window.

    `qk_norm` counts norm vectors of head size on queries and keys; `sinks` learned sink logits per
    head.
    """

    num_heads: int
    num_kv_heads: int
    head_dim: int
    window: int | None = None
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: bool = False
    sinks: bool = False

    kind = "gqa"

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Projections of queries, keys, values and output."""
        queries, keys = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        bias = int(self.qkv_bias)
        vectors = 2 * self.head_dim * self.qk_norm + self.num_heads * self.sinks
        return (
            Matrix("attention", hidden, queries, vector=queries * bias),
            Matrix(
                "attention", hidden, 2 * keys, "heads", self.num_kv_heads, vector=2 * keys * bias
            ),
            Matrix("attention", queries, hidden, "rows", vector=hidden * self.output_bias),
            Matrix("norms", 0, 0, "none", vector=vectors),
        )

    def cache_elements(self, ranks: int) -> int:
        """Cached elements per token and layer on one of `ranks`: KV heads replicate past their
        number, so a rank never keeps less than one."""
        return 2 * max(1, self.num_kv_heads // ranks) * self.head_dim

    def decode_flop_per_context_token(self) -> float:
        """FLOP of one decoded token against one cached token (scores and values)."""
        return 4.0 * self.num_heads * self.head_dim

    def prefill_flop_per_pair(self) -> float:
        """FLOP of one query-key pair in prefill."""
        return 4.0 * self.num_heads * self.head_dim


@dataclass(frozen=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek MLA): one compressed vector is cached per token.

    Decode runs with the up-projections absorbed, so every head reads the latent itself; prefill
    expands it. Down-projections and the latent stand whole on every tensor-parallel rank.
    `q_lora_rank` is None where queries are projected directly.
    """

    num_heads: int
    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int

    kind = "mla"
    window = None

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Down- and up-projections of queries and of the latent, and the output projection."""
        queries = self.num_heads * (self.qk_nope_head_dim + self.qk_rope_head_dim)
        expanded = self.num_heads * (self.qk_nope_head_dim + self.v_head_dim)
        latent = self.kv_lora_rank + self.qk_rope_head_dim
        shared = (
            Matrix("attention", hidden, latent, "none"),
            Matrix("norms", 0, 0, "none", vector=self.kv_lora_rank + (self.q_lora_rank or 0)),
            Matrix("attention", self.kv_lora_rank, expanded),
            Matrix("attention", self.num_heads * self.v_head_dim, hidden, "rows"),
        )
        if self.q_lora_rank is None:
            return (Matrix("attention", hidden, queries), *shared)
        return (
            Matrix("attention", hidden, self.q_lora_rank, "none"),
            Matrix("attention", self.q_lora_rank, queries),
            *shared,
        )

    def cache_elements(self, ranks: int) -> int:
        """Cached elements per token and layer: the latent and the rotary key, on every rank."""
        return self.kv_lora_rank + self.qk_rope_head_dim

    def decode_flop_per_context_token(self) -> float:
        """Absorbed decode: every head scores latent and rotary part, and sums the latent."""
        return 2.0 * self.num_heads * (2 * self.kv_lora_rank + self.qk_rope_head_dim)

    def prefill_flop_per_pair(self) -> float:
        """Expanded prefill: heads of their own key and value sizes."""
        return (
            2.0 * self.num_heads * (self.qk_nope_head_dim + self.qk_rope_head_dim + self.v_head_dim)
        )


@dataclass(frozen=True)
class DenseMlp:
    """A feed-forward block; gated ones (SwiGLU) have three matrices, plain ones two."""

    intermediate_size: int
    gated: bool = True
    bias: bool = False

    kind = "dense"

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Up (and gate) and down projections."""
        return _feed_forward("mlp", hidden, self.intermediate_size, self.gated, self.bias)


@dataclass(frozen=True)
class MoeMlp:
    """A mixture of experts: `experts_per_token` of `num_experts`, and shared experts beside them.

    `intermediate_size` is one expert's, `shared_intermediate_size` that of all shared experts
    together. `router_bias` counts a bias or a correction per expert.
    """

    num_experts: int
    experts_per_token: int
    intermediate_size: int
    shared_intermediate_size: int = 0
    gated: bool = True
    bias: bool = False
    router_bias: bool = False

    kind = "moe"

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Router, experts and shared experts."""
        experts = _feed_forward(
            "experts", hidden, self.intermediate_size, self.gated, self.bias,
            self.num_experts, self.experts_per_token,
        )  # fmt: skip
        router = Matrix(
            "router", hidden, self.num_experts, "none", vector=self.num_experts * self.router_bias
        )
        if not self.shared_intermediate_size:
            return (router, *experts)
        shared = _feed_forward("shared_experts", hidden, self.shared_intermediate_size, self.gated)
        return (router, *experts, *shared)


def _feed_forward(
    part: str, hidden: int, width: int, gated: bool, bias: bool = False,
    copies: int = 1, used: int = 1,
) -> tuple[Matrix, ...]:  # fmt: skip
    up = (2 if gated else 1) * width
    return (
        Matrix(part, hidden, up, copies=copies, used=used, vector=up * bias),
        Matrix(part, width, hidden, "rows", copies=copies, used=used, vector=hidden * bias),
    )


Mlp = DenseMlp | MoeMlp
MIXERS: Mapping[str, type] = {"gqa": GroupedQueryAttention, "mla": LatentAttention}
MLPS: Mapping[str, type] = {"dense": DenseMlp, "moe": MoeMlp}


@dataclass(frozen=True)
class Layer:
    """One layer: a mixer, an MLP, and `norms` norm vectors of the hidden size."""

    mixer: GroupedQueryAttention | LatentAttention
    mlp: Mlp
    norms: int = 2

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Every weight of the layer."""
        norms = Matrix("norms", 0, 0, "none", vector=self.norms * hidden)
        return (*self.mixer.matrices(hidden), *self.mlp.matrices(hidden), norms)


@dataclass(frozen=True)
class Architecture:
    """A whole model. `layers` in order; `quantized_parts` are those that the checkpoint stores in
    `weights_precision`, the rest stands in `plain_precision`."""

    family: str
    hidden_size: int
    vocab_size: int
    context_length: int
    tied_embeddings: bool
    layers: tuple[Layer, ...]
    plain_precision: str = "bf16"
    weights_precision: str = "bf16"
    quantized_parts: tuple[str, ...] = ()
    kv_cache_precision: str = "bf16"

    @property
    def embedding(self) -> Matrix:
        """The input embedding table: looked up, never multiplied."""
        return Matrix("embedding", 0, 0, vector=self.vocab_size * self.hidden_size)

    @property
    def lm_head(self) -> Matrix:
        """The output projection (stored once with the embedding where they are tied)."""
        return Matrix("lm_head", self.hidden_size, self.vocab_size)

    @property
    def final_norm(self) -> Matrix:
        """The norm before the LM head."""
        return Matrix("norms", 0, 0, "none", vector=self.hidden_size)

    @cached_property
    def layer_counts(self) -> dict[Layer, int]:
        """Each kind of layer and how many there are."""
        return Counter(self.layers)

    def matrices(self) -> Iterator[tuple[Matrix, int]]:
        """Every stored weight of the model with the number of layers that have it."""
        yield self.embedding, 1
        for layer, count in self.layer_counts.items():
            for matrix in layer.matrices(self.hidden_size):
                yield matrix, count
        yield self.final_norm, 1
        if not self.tied_embeddings:
            yield self.lm_head, 1

    @cached_property
    def parameters_by_part(self) -> dict[str, int]:
        """Stored parameters, by part."""
        totals: dict[str, int] = {}
        for matrix, count in self.matrices():
            totals[matrix.part] = totals.get(matrix.part, 0) + count * matrix.parameters
        return {part: total for part, total in totals.items() if total}

    @property
    def total_parameters(self) -> int:
        """Stored parameters."""
        return sum(self.parameters_by_part.values())

    @cached_property
    def active_parameters(self) -> int:
        """Parameters one decoded token uses: the LM head in, the embedding table out."""
        layers = sum(c * m.active_parameters for m, c in self.matrices() if m.part != "embedding")
        return layers + (self.lm_head.parameters if self.tied_embeddings else 0)

    @cached_property
    def matmul_parameters(self) -> int:
        """Parameters one decoded token is multiplied with (2 FLOP each): no norms, no biases."""
        head = self.lm_head.matmul_parameters if self.tied_embeddings else 0
        return head + sum(c * m.used * m.matmul_parameters for m, c in self.matrices())

    @property
    def moe(self) -> MoeMlp | None:
        """The mixture-of-experts block, where the model has one."""
        return next((x.mlp for x in self.layers if isinstance(x.mlp, MoeMlp)), None)


def as_mapping(architecture: Architecture) -> dict[str, Any]:
    """The architecture in its API form: named layer kinds and the pattern they repeat in."""
    kinds = {layer: f"{_kind_name(layer)}" for layer in architecture.layer_counts}
    kinds = _distinct(kinds)
    names = [kinds[layer] for layer in architecture.layers]
    plain = {
        f.name: getattr(architecture, f.name) for f in fields(Architecture) if f.name != "layers"
    }
    plain["quantized_parts"] = list(architecture.quantized_parts)
    return plain | {
        "num_layers": len(names),
        "layer_kinds": {name: _layer_mapping(layer) for layer, name in kinds.items()},
        "layer_pattern": names[: _period(names)],
    }


def from_mapping(document: Mapping[str, Any]) -> Architecture:
    """Read the API form; the pattern is repeated until `num_layers` layers stand.

    KeyError or TypeError where a field is missing or unknown: the schema checks that before.
    """
    kinds = {name: _layer(kind) for name, kind in document["layer_kinds"].items()}
    pattern, count = document["layer_pattern"], document["num_layers"]
    known = {f.name for f in fields(Architecture)} - {"layers"}
    plain = {key: value for key, value in document.items() if key in known}
    plain["quantized_parts"] = tuple(plain.get("quantized_parts") or ())
    layers = tuple(kinds[pattern[i % len(pattern)]] for i in range(count))
    return Architecture(layers=layers, **plain)


def _kind_name(layer: Layer) -> str:
    mixer = "sliding" if layer.mixer.window else layer.mixer.kind
    return f"{mixer}_{layer.mlp.kind}"


def _distinct(kinds: dict[Layer, str]) -> dict[Layer, str]:
    seen: dict[str, int] = {}
    distinct = {}
    for layer, name in kinds.items():
        seen[name] = seen.get(name, 0) + 1
        distinct[layer] = name if seen[name] == 1 else f"{name}_{seen[name]}"
    return distinct


def _period(names: list[str]) -> int:
    """Length of the shortest pattern that gives `names` when repeated and cut off."""
    return next(
        p for p in range(1, len(names) + 1) if names == (names[:p] * len(names))[: len(names)]
    )


def _layer_mapping(layer: Layer) -> dict[str, Any]:
    return {
        "mixer": {"kind": layer.mixer.kind} | vars(layer.mixer),
        "mlp": {"kind": layer.mlp.kind} | vars(layer.mlp),
        "norms": layer.norms,
    }


def _layer(document: Mapping[str, Any]) -> Layer:
    return Layer(
        mixer=_read(MIXERS, document["mixer"]),
        mlp=_read(MLPS, document["mlp"]),
        norms=document.get("norms", 2),
    )


def _read(kinds: Mapping[str, type], document: Mapping[str, Any]) -> Any:
    values = dict(document)
    return kinds[values.pop("kind")](**values)
