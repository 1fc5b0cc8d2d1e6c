"""Token mixers: attention in its kinds, and the recurrent layers that replace it.

Each names its weights, what it caches for every token, and the state it keeps for a sequence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from advisor.core.weights import Matrix, vectors

UNBOUNDED = 1e15
"""Window of full attention [tokens]: larger than any context."""

STATE_BYTES = 4
"""Recurrent states are kept in fp32, whatever the weights are in."""

CONVOLUTION_BYTES = 2
"""The last inputs of a causal convolution are kept in 16 bits."""


@dataclass(frozen=True)
class Cache:
    """What one layer caches per token on one rank, and what attending to it costs.

    `elements` are stored in the KV cache's format, `fixed_bytes` in their own. A sequence keeps the
    last `kept` tokens and a decoded token reads at most `read` of them. FLOP are the whole layer's:
    of one decoded token and cached token, and of one query-key pair in prefill.
    """

    elements: int
    fixed_bytes: float = 0.0
    kept: float = UNBOUNDED
    read: float = UNBOUNDED
    decode_flop: float = 0.0
    prefill_flop: float = 0.0
    latent: bool = False


@dataclass(frozen=True)
class GroupedQueryAttention:
    """Multi-head, grouped-query or multi-query attention: full, in a sliding window or in chunks.

    `window` limits what is kept and read; `chunked` windows restart at every multiple. `qk_norm` is
    `none`, `head` (vectors of head size) or `full` (of all heads); `output_gate` doubles the query
    projection; `sinks` are learned logits per head.
    """

    num_heads: int
    num_kv_heads: int
    head_dim: int
    window: int | None = None
    chunked: bool = False
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: str = "none"
    output_gate: bool = False
    sinks: bool = False

    kind = "gqa"

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Projections of queries, keys, values and output."""
        queries, keys = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        gated = queries * (2 if self.output_gate else 1)
        bias = int(self.qkv_bias)
        norms = {"none": 0, "head": 2 * self.head_dim, "full": queries + keys}[self.qk_norm]
        return (
            Matrix("attention", hidden, gated, vector=gated * bias),
            Matrix(
                "attention", hidden, 2 * keys, "heads", self.num_kv_heads, vector=2 * keys * bias
            ),
            Matrix("attention", queries, hidden, "rows", vector=hidden * self.output_bias),
            vectors("norms", norms + self.num_heads * self.sinks),
        )

    def caches(self, ranks: int) -> tuple[Cache, ...]:
        """Keys and values; KV heads replicate past their number, a rank keeps at least one."""
        window = float(self.window or UNBOUNDED)
        flop = 4.0 * self.num_heads * self.head_dim
        elements = 2 * max(1, self.num_kv_heads // ranks) * self.head_dim
        return (Cache(elements, 0.0, window, window, flop, flop),)

    def state_bytes(self, ranks: int) -> float:
        """Attention keeps no state besides its cache."""
        return 0.0

    def split_faults(self, ranks: int) -> list[tuple[str, int]]:
        """Heads divide over the ranks; KV heads divide, or are replicated evenly."""
        heads, kv = self.num_heads, self.num_kv_heads
        faults = [("num_heads", heads)] if heads % ranks else []
        if kv % ranks and ranks % kv:
            faults.append(("num_kv_heads", kv))
        return faults


@dataclass(frozen=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek MLA): one compressed vector is cached per token.

    Decode runs with the up-projections absorbed, so every head reads the latent itself; prefill
    expands it. Down-projections and the latent stand whole on every tensor-parallel rank.
    `q_lora_rank` is None where queries are projected directly. With `index_topk`, an indexer of
    `index_heads` heads picks the cached tokens that are attended to (DeepSeek sparse attention).
    """

    num_heads: int
    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    index_topk: int | None = None
    index_heads: int = 0
    index_head_dim: int = 0

    kind = "mla"

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Down- and up-projections of queries and of the latent, output projection, indexer."""
        queries = self.num_heads * (self.qk_nope_head_dim + self.qk_rope_head_dim)
        expanded = self.num_heads * (self.qk_nope_head_dim + self.v_head_dim)
        latent = self.kv_lora_rank + self.qk_rope_head_dim
        weights = [
            Matrix("attention", hidden, latent, "none"),
            vectors("norms", self.kv_lora_rank + (self.q_lora_rank or 0)),
            Matrix("attention", self.kv_lora_rank, expanded),
            Matrix("attention", self.num_heads * self.v_head_dim, hidden, "rows"),
        ]
        if self.q_lora_rank is None:
            weights.append(Matrix("attention", hidden, queries))
        else:
            weights.append(Matrix("attention", hidden, self.q_lora_rank, "none"))
            weights.append(Matrix("attention", self.q_lora_rank, queries))
        if self.index_topk is not None:
            weights += self._indexer(hidden)
        return tuple(weights)

    def _indexer(self, hidden: int) -> list[Matrix]:
        width = self.index_heads * self.index_head_dim
        return [
            Matrix("indexer", self.q_lora_rank or hidden, width, "none"),
            Matrix("indexer", hidden, self.index_head_dim + self.index_heads, "none"),
            vectors("norms", 2 * self.index_head_dim),
        ]

    def caches(self, ranks: int) -> tuple[Cache, ...]:
        """The latent and the rotary key, on every rank; the indexer's fp8 keys besides."""
        absorbed = 2.0 * self.num_heads * (2 * self.kv_lora_rank + self.qk_rope_head_dim)
        head = self.qk_nope_head_dim + self.qk_rope_head_dim + self.v_head_dim
        latent = Cache(
            self.kv_lora_rank + self.qk_rope_head_dim,
            read=float(self.index_topk or UNBOUNDED),
            decode_flop=absorbed,
            prefill_flop=2.0 * self.num_heads * head,
            latent=True,
        )
        if self.index_topk is None:
            return (latent,)
        scores = 2.0 * self.index_heads * self.index_head_dim
        keys = self.index_head_dim + 4.0  # fp8 with one fp32 scale
        return latent, Cache(0, keys, decode_flop=scores, prefill_flop=scores)

    def state_bytes(self, ranks: int) -> float:
        """Latent attention keeps no state besides its cache."""
        return 0.0

    def split_faults(self, ranks: int) -> list[tuple[str, int]]:
        """Heads divide over the ranks; the latent is on each of them."""
        return [("num_heads", self.num_heads)] if self.num_heads % ranks else []


@dataclass(frozen=True)
class Mamba2:
    """A Mamba-2 state-space mixer (SSD): heads with a state of `head_dim` x `state_size` each.

    `num_groups` groups share input and output projections of the state; a single group is
    replicated on every rank.
    """

    num_heads: int
    head_dim: int
    state_size: int
    num_groups: int
    conv_kernel: int
    projection_bias: bool = False
    conv_bias: bool = True

    kind = "mamba2"

    @property
    def inner(self) -> int:
        """Width of the state-space block."""
        return self.num_heads * self.head_dim

    @property
    def convolved(self) -> int:
        """Channels of the causal convolution."""
        return self.inner + 2 * self.num_groups * self.state_size

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Input and output projections, convolution, per-head vectors and the gated norm."""
        groups = 2 * self.num_groups * self.state_size
        bias = int(self.projection_bias)
        wide = 2 * self.inner + self.num_heads
        small = 3 * self.num_heads + self.inner
        convolution = self.convolved * (self.conv_kernel + self.conv_bias)
        return (
            Matrix("state_space", hidden, wide, vector=bias * (wide + groups)),
            Matrix("state_space", hidden, groups, "heads", self.num_groups),
            Matrix("state_space", self.inner, hidden, "rows", vector=bias * hidden),
            vectors("state_space", convolution + small, "columns"),
        )

    def caches(self, ranks: int) -> tuple[Cache, ...]:
        """Nothing is cached per token."""
        return ()

    def state_bytes(self, ranks: int) -> float:
        """State and last convolution inputs of one sequence on one of `ranks` [bytes]."""
        groups = max(1, self.num_groups // ranks) if self.num_groups > 1 else 1
        convolved = self.inner / ranks + 2 * groups * self.state_size
        state = self.inner / ranks * self.state_size
        return STATE_BYTES * state + CONVOLUTION_BYTES * convolved * (self.conv_kernel - 1)

    def split_faults(self, ranks: int) -> list[tuple[str, int]]:
        """Heads divide over the ranks, and groups do unless there is one, which is replicated."""
        faults = [("mamba_num_heads", self.num_heads)] if self.num_heads % ranks else []
        if self.num_groups > 1 and self.num_groups % ranks:
            faults.append(("mamba_num_groups", self.num_groups))
        return faults


@dataclass(frozen=True)
class Mamba1:
    """A Mamba-1 state-space mixer: a state of `state_size` for each inner channel.

    `inner_norms` counts norms on time step, input and output projections (Jamba).
    """

    inner_size: int
    state_size: int
    conv_kernel: int
    time_step_rank: int
    projection_bias: bool = False
    conv_bias: bool = True
    inner_norms: bool = False

    kind = "mamba1"

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Input, selection, time-step and output projections; convolution, A and D."""
        inner, bias = self.inner_size, int(self.projection_bias)
        selected = self.time_step_rank + 2 * self.state_size
        channels = inner * (self.conv_kernel + self.conv_bias + self.state_size + 1)
        return (
            Matrix("state_space", hidden, 2 * inner, vector=2 * inner * bias),
            Matrix("state_space", inner, selected, "rows"),
            Matrix("state_space", self.time_step_rank, inner, vector=inner),
            Matrix("state_space", inner, hidden, "rows", vector=hidden * bias),
            vectors("state_space", channels, "columns"),
            vectors("norms", selected * self.inner_norms),
        )

    def caches(self, ranks: int) -> tuple[Cache, ...]:
        """Nothing is cached per token."""
        return ()

    def state_bytes(self, ranks: int) -> float:
        """State and last convolution inputs of one sequence on one of `ranks` [bytes]."""
        each = STATE_BYTES * self.state_size + CONVOLUTION_BYTES * (self.conv_kernel - 1)
        return self.inner_size / ranks * each

    def split_faults(self, ranks: int) -> list[tuple[str, int]]:
        """Inner channels divide over the ranks."""
        return [("mamba_inner_size", self.inner_size)] if self.inner_size % ranks else []


@dataclass(frozen=True)
class GatedDeltaNet:
    """Linear attention with a gated delta rule (Qwen3-Next, Qwen3.5): a key x value matrix per
    value head is the whole memory of a sequence.
    """

    num_key_heads: int
    num_value_heads: int
    key_head_dim: int
    value_head_dim: int
    conv_kernel: int

    kind = "gated_delta_net"

    @property
    def convolved(self) -> int:
        """Channels of the causal convolution: queries, keys and values."""
        keys = self.num_key_heads * self.key_head_dim
        return 2 * keys + self.num_value_heads * self.value_head_dim

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Projections of queries, keys, values and gate, of the two rates, and of the output."""
        values = self.num_value_heads * self.value_head_dim
        small = self.convolved * self.conv_kernel + 2 * self.num_value_heads
        return (
            Matrix("linear_attention", hidden, self.convolved + values),
            Matrix("linear_attention", hidden, 2 * self.num_value_heads),
            Matrix("linear_attention", values, hidden, "rows"),
            vectors("linear_attention", small, "columns"),
            vectors("norms", self.value_head_dim),
        )

    def caches(self, ranks: int) -> tuple[Cache, ...]:
        """Nothing is cached per token."""
        return ()

    def state_bytes(self, ranks: int) -> float:
        """Memory matrices and last convolution inputs of one sequence on one of `ranks` [bytes]."""
        memory = self.num_value_heads * self.key_head_dim * self.value_head_dim
        convolution = CONVOLUTION_BYTES * self.convolved * (self.conv_kernel - 1)
        return (STATE_BYTES * memory + convolution) / ranks

    def split_faults(self, ranks: int) -> list[tuple[str, int]]:
        """Key and value heads divide over the ranks."""
        heads = {"linear_num_key_heads": self.num_key_heads}
        heads["linear_num_value_heads"] = self.num_value_heads
        return [(name, count) for name, count in heads.items() if count % ranks]


Mixer = GroupedQueryAttention | LatentAttention | Mamba1 | Mamba2 | GatedDeltaNet
MIXERS: Mapping[str, type[Mixer]] = {
    each.kind: each
    for each in (GroupedQueryAttention, LatentAttention, Mamba1, Mamba2, GatedDeltaNet)
}
