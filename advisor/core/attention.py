"""Attention in its kinds: what each weighs, and what it caches for every token."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.core.weights import Matrix, vectors

UNBOUNDED = 1e15
"""Window of full attention [tokens]: larger than any context."""


@dataclass(frozen=True)
class Cache:
    """What one layer caches per token on one rank, and what attending to it costs.

    `elements` are stored in the KV cache's format, `fixed_bytes` in their own; `borrowed` elements
    are read from the cache of another layer. A sequence keeps the last `kept` tokens and a decoded
    token reads at most `read` of them. FLOP are the whole layer's: of one decoded token and cached
    token, and of one query-key pair in prefill.
    """

    elements: float
    fixed_bytes: float = 0.0
    kept: float = UNBOUNDED
    read: float = UNBOUNDED
    decode_flop: float = 0.0
    prefill_flop: float = 0.0
    latent: bool = False
    borrowed: float = 0


@dataclass(frozen=True)
class GroupedQueryAttention:
    """Multi-head, grouped-query or multi-query attention: full, in a sliding window or in chunks.

    `window` limits what is kept and read; `chunked` windows restart at every multiple. `qk_norm` is
    `none`, `head` (vectors of head size) or `full` (of all heads); `output_gate` doubles the query
    projection; `sinks` are learned logits per head. Values have heads of `value_head_dim` where it
    is given; `head_gate` is a gate on each head's output. `keys_as_values` projects once for both,
    and caches both; `borrows_kv` has no keys and values of its own and attends to an earlier
    layer's.
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
    value_head_dim: int | None = None
    keys_as_values: bool = False
    borrows_kv: bool = False
    head_gate: bool = False

    kind = "gqa"

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Projections of queries, keys, values and output."""
        queries, values = self.num_heads * self.head_dim, self.num_heads * self._value_size
        gated = queries + values * self.output_gate + self.num_heads * self.head_gate
        keys = 0 if self.borrows_kv else self.num_kv_heads * self.head_dim
        norms = {
            "none": 0,
            "head": self.head_dim * (1 if self.borrows_kv else 2),
            "full": queries + keys,
        }
        kv = 0 if self.borrows_kv else self.num_kv_heads * self._projected
        bias, pieces = int(self.qkv_bias), 1 if self.keys_as_values else 2
        return (
            Matrix("attention", hidden, gated, vector=queries * bias),
            Matrix(
                "attention", hidden, kv, "heads", self.num_kv_heads, vector=kv * bias, pieces=pieces
            ),
            Matrix("attention", values, hidden, "rows", vector=hidden * self.output_bias),
            vectors("norms", norms[self.qk_norm] + self.num_heads * self.sinks),
        )

    @property
    def _value_size(self) -> int:
        return self.value_head_dim or self.head_dim

    @property
    def _projected(self) -> int:
        """Elements that one KV head's projection gives for a token."""
        return self.head_dim + (0 if self.keys_as_values else self._value_size)

    def caches(self, ranks: int) -> tuple[Cache, ...]:
        """Keys and values; KV heads replicate past their number, a rank keeps at least one."""
        window = float(self.window or UNBOUNDED)
        head = self.head_dim + self._value_size
        flop = 2.0 * self.num_heads * head
        elements = max(1, self.num_kv_heads // ranks) * head
        own, borrowed = (0, elements) if self.borrows_kv else (elements, 0)
        return (Cache(own, 0.0, window, window, flop, flop, borrowed=borrowed),)

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
    `index_heads` heads picks the cached tokens that are attended to (DeepSeek sparse attention);
    without heads, the layer takes those that an earlier one picked (GLM-5). `head_gate` is a gate
    on each head's output, projected from the input.
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
    head_gate: bool = False

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
        if self.head_gate:
            weights.append(Matrix("attention", hidden, self.num_heads))
        if self.index_heads:
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
        if not self.index_heads:
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
