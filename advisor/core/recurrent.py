"""Recurrent mixers (state-space, linear attention, convolution): each keeps a state for a sequence,
whatever its length, and caches nothing for a token.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.core.attention import Cache
from advisor.core.weights import Matrix, vectors

STATE_VALUE_BYTES = 4
"""Recurrent states are kept in fp32 where a config asks for it, and by KDA kernels anyway; else in
the weights' own 16 bits (vLLM's `auto`)."""

CONVOLUTION_BYTES = 2
"""The last inputs of a causal convolution are kept in 16 bits."""


class Recurrent:
    """What the mixers of this module have in common."""

    def caches(self, ranks: int) -> tuple[Cache, ...]:
        """Nothing is cached per token."""
        return ()


@dataclass(frozen=True)
class Mamba2(Recurrent):
    """A Mamba-2 state-space mixer (SSD): heads with a state of `head_dim` x `state_size` each.

    `num_groups` groups share input and output projections of the state; a single group is
    replicated on every rank. `gated_norm` counts the norm before the output projection.
    """

    num_heads: int
    head_dim: int
    state_size: int
    num_groups: int
    conv_kernel: int
    projection_bias: bool = False
    conv_bias: bool = True
    gated_norm: bool = True
    state_value_bytes: int = STATE_VALUE_BYTES

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
        small = 3 * self.num_heads + self.inner * self.gated_norm
        convolution = self.convolved * (self.conv_kernel + self.conv_bias)
        return (
            Matrix("state_space", hidden, wide, vector=bias * (wide + groups)),
            Matrix("state_space", hidden, groups, "heads", self.num_groups),
            Matrix("state_space", self.inner, hidden, "rows", vector=bias * hidden),
            vectors("state_space", convolution + small, "columns"),
        )

    def state_bytes(self, ranks: int) -> float:
        """State and last convolution inputs of one sequence on one of `ranks` [bytes]."""
        groups = max(1, self.num_groups // ranks) if self.num_groups > 1 else 1
        convolved = self.inner / ranks + 2 * groups * self.state_size
        state = self.state_value_bytes * self.inner / ranks * self.state_size
        return state + CONVOLUTION_BYTES * convolved * (self.conv_kernel - 1)

    def split_faults(self, ranks: int) -> list[tuple[str, int]]:
        """Heads divide over the ranks, and groups do unless there is one, which is replicated."""
        faults = [("mamba_num_heads", self.num_heads)] if self.num_heads % ranks else []
        if self.num_groups > 1 and self.num_groups % ranks:
            faults.append(("mamba_num_groups", self.num_groups))
        return faults


@dataclass(frozen=True)
class Mamba1(Recurrent):
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
    state_value_bytes: int = STATE_VALUE_BYTES

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

    def state_bytes(self, ranks: int) -> float:
        """State and last convolution inputs of one sequence on one of `ranks` [bytes]."""
        each = self.state_value_bytes * self.state_size + CONVOLUTION_BYTES * (self.conv_kernel - 1)
        return self.inner_size / ranks * each

    def split_faults(self, ranks: int) -> list[tuple[str, int]]:
        """Inner channels divide over the ranks."""
        return [("mamba_inner_size", self.inner_size)] if self.inner_size % ranks else []


@dataclass(frozen=True)
class GatedDeltaNet(Recurrent):
    """Linear attention with a gated delta rule (Qwen3-Next, Qwen3.5): a key x value matrix per
    value head is the whole memory of a sequence.
    """

    num_key_heads: int
    num_value_heads: int
    key_head_dim: int
    value_head_dim: int
    conv_kernel: int
    state_value_bytes: int = STATE_VALUE_BYTES

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

    def state_bytes(self, ranks: int) -> float:
        """Memory matrices and last convolution inputs of one sequence on one of `ranks` [bytes]."""
        memory = self.num_value_heads * self.key_head_dim * self.value_head_dim
        convolution = CONVOLUTION_BYTES * self.convolved * (self.conv_kernel - 1)
        return (self.state_value_bytes * memory + convolution) / ranks

    def split_faults(self, ranks: int) -> list[tuple[str, int]]:
        """Key and value heads divide over the ranks."""
        heads = {"linear_num_key_heads": self.num_key_heads}
        heads["linear_num_value_heads"] = self.num_value_heads
        return [(name, count) for name, count in heads.items() if count % ranks]


@dataclass(frozen=True)
class KimiDeltaAttention(Recurrent):
    """Kimi Delta Attention: a delta rule whose decay is learned for every channel of a key.

    Decay and output gate are projected through `head_dim` (Kimi Linear report, arXiv:2510.26692),
    with `full_rank_gates` at once (Ling 3).
    """

    num_heads: int
    head_dim: int
    conv_kernel: int
    full_rank_gates: bool = False
    state_value_bytes: int = STATE_VALUE_BYTES

    kind = "kimi_delta_attention"

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Queries, keys, values and their convolution; write rate, decay, gate and output."""
        inner = self.num_heads * self.head_dim
        small = 3 * inner * self.conv_kernel + inner + self.num_heads
        gates = (
            (Matrix("linear_attention", hidden, 2 * inner),)
            if self.full_rank_gates
            else (
                Matrix("linear_attention", hidden, 2 * self.head_dim, "none"),
                Matrix("linear_attention", self.head_dim, 2 * inner),
            )
        )
        return (
            Matrix("linear_attention", hidden, 3 * inner + self.num_heads),
            *gates,
            Matrix("linear_attention", inner, hidden, "rows"),
            vectors("linear_attention", small, "columns"),
            vectors("norms", self.head_dim),
        )

    def state_bytes(self, ranks: int) -> float:
        """Memory matrices and last convolution inputs of one sequence on one of `ranks` [bytes]."""
        inner = self.num_heads * self.head_dim
        convolution = CONVOLUTION_BYTES * 3 * inner * (self.conv_kernel - 1)
        return (self.state_value_bytes * inner * self.head_dim + convolution) / ranks

    def split_faults(self, ranks: int) -> list[tuple[str, int]]:
        """Heads divide over the ranks."""
        return [("linear_num_heads", self.num_heads)] if self.num_heads % ranks else []


@dataclass(frozen=True)
class LightningAttention(Recurrent):
    """Linear attention with a fixed decay per head (MiniMax-01, arXiv:2501.08313): a key x value
    matrix per head is the whole memory of a sequence.
    """

    num_heads: int
    head_dim: int
    state_value_bytes: int = STATE_VALUE_BYTES

    kind = "lightning_attention"

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Projections of queries, keys, values and gate, and of the output; its norm."""
        inner = self.num_heads * self.head_dim
        return (
            Matrix("linear_attention", hidden, 4 * inner),
            Matrix("linear_attention", inner, hidden, "rows"),
            vectors("norms", inner, "columns"),
        )

    def state_bytes(self, ranks: int) -> float:
        """Memory matrices of one sequence on one of `ranks` [bytes]."""
        return self.state_value_bytes * self.num_heads * self.head_dim**2 / ranks

    def split_faults(self, ranks: int) -> list[tuple[str, int]]:
        """Heads divide over the ranks."""
        return [("num_heads", self.num_heads)] if self.num_heads % ranks else []


@dataclass(frozen=True)
class ShortConvolution(Recurrent):
    """A gated causal convolution over the last few tokens (LFM2): `channels` is the hidden size."""

    channels: int
    conv_kernel: int
    bias: bool = False

    kind = "short_convolution"

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Projections of input and two gates, the convolution and the output projection."""
        wide, bias = 3 * self.channels, int(self.bias)
        return (
            Matrix("linear_attention", hidden, wide, vector=wide * bias),
            Matrix("linear_attention", self.channels, hidden, "rows", vector=hidden * bias),
            vectors("linear_attention", self.channels * (self.conv_kernel + bias), "columns"),
        )

    def state_bytes(self, ranks: int) -> float:
        """Last convolution inputs of one sequence on one of `ranks` [bytes]."""
        return CONVOLUTION_BYTES * self.channels * (self.conv_kernel - 1) / ranks

    def split_faults(self, ranks: int) -> list[tuple[str, int]]:
        """Channels divide over the ranks."""
        return [("channels", self.channels)] if self.channels % ranks else []
