"""Attention over compressed keys and values (DeepSeek V4)."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.core.attention import UNBOUNDED, Cache
from advisor.core.weights import Matrix, vectors

INDEX_SCALE_BYTES = 4.0
"""An indexed key is in fp8 with one fp32 scale."""


@dataclass(frozen=True)
class CompressedAttention:
    """The last `window` tokens as they are, and one entry for every `compress_rate` tokens before.

    An entry is one vector of `head_dim`, key and value of all heads at once. With `index_topk` an
    indexer picks that many entries, and entries overlap; without, all are attended to. Without
    `compress_rate` the window is all there is. The output is projected in `output_groups` through
    `output_lora_rank` each. Compressors and entries stand whole on every tensor-parallel rank.
    Sizes and what engines keep: transformers' modeling_deepseek_v4.py; vLLM's compressor.py, whose
    state holds the inputs of the entries that are not finished, in fp32.
    """

    num_heads: int
    head_dim: int
    q_lora_rank: int
    output_groups: int
    output_lora_rank: int
    window: int
    compress_rate: int | None = None
    index_topk: int | None = None
    index_heads: int = 0
    index_head_dim: int = 0

    kind = "compressed"

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Projections of queries, of keys and values at once, and of output; compressors."""
        queries = self.num_heads * self.head_dim
        output = self.output_groups * self.output_lora_rank
        weights = [
            Matrix("attention", hidden, self.q_lora_rank + self.head_dim, "none"),
            Matrix("attention", self.q_lora_rank, queries),
            Matrix("attention", queries // self.output_groups, output),
            Matrix("attention", output, hidden, "rows"),
            vectors("norms", self.q_lora_rank + self.head_dim + self.num_heads),
        ]
        if self.compress_rate is not None:
            weights += self._compressor(hidden, self.head_dim, self.compress_rate)
            if self.index_topk is not None:
                width = self.index_heads * self.index_head_dim
                weights += self._compressor(hidden, self.index_head_dim, self.compress_rate)
                weights.append(Matrix("indexer", self.q_lora_rank, width, "none"))
                weights.append(Matrix("compressor", hidden, self.index_heads, "none"))
        return tuple(weights)

    def _compressor(self, hidden: int, size: int, rate: int) -> list[Matrix]:
        """Projections of an entry and of its gate, a bias for each place in it, and a norm."""
        width = self._overlap * size
        return [
            Matrix("compressor", hidden, 2 * width, "none"),
            vectors("compressor", rate * width + size),
        ]

    @property
    def _overlap(self) -> int:
        """How many entries a token goes into."""
        return 1 if self.index_topk is None else 2

    def caches(self, ranks: int) -> tuple[Cache, ...]:
        """The window, the entries, indexed keys, and the compressors' state, on every rank."""
        pair = 4.0 * self.num_heads * self.head_dim
        window = float(self.window)
        recent = Cache(self.head_dim, 0.0, window, window, pair, pair)
        rate = self.compress_rate
        if rate is None:
            return (recent,)
        read = UNBOUNDED if self.index_topk is None else float(self.index_topk * rate)
        entries = Cache(
            self.head_dim / rate, read=read, decode_flop=pair / rate, prefill_flop=pair / rate
        )
        if self.index_topk is None:
            return recent, entries, self._unfinished(self.head_dim, rate)
        scores = 2.0 * self.index_heads * self.index_head_dim / rate
        keys = (self.index_head_dim + INDEX_SCALE_BYTES) / rate
        return (
            recent,
            entries,
            Cache(0, keys, decode_flop=scores, prefill_flop=scores),
            self._unfinished(self.head_dim + self.index_head_dim, rate),
        )

    def _unfinished(self, size: int, rate: int) -> Cache:
        """Inputs and gates in fp32 of the entries being filled; each is read once it is full."""
        row = 4.0 * 2 * self._overlap * size
        return Cache(0, row, kept=float(self._overlap * rate), read=float(self._overlap))

    def state_bytes(self, ranks: int) -> float:
        """Attention keeps no state besides its caches."""
        return 0.0

    def split_faults(self, ranks: int) -> list[tuple[str, int]]:
        """Heads and the groups of the output divide over the ranks."""
        sizes = {"num_heads": self.num_heads, "output_groups": self.output_groups}
        return [(name, size) for name, size in sizes.items() if size % ranks]
