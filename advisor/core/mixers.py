"""Token mixers: attention in its kinds, the recurrent layers that replace it, and both together.

Each names its weights, what it caches for every token, and the state it keeps for a sequence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from advisor.core.attention import UNBOUNDED, Cache, GroupedQueryAttention, LatentAttention
from advisor.core.compressed_attention import CompressedAttention
from advisor.core.recurrent import (
    GatedDeltaNet,
    KimiDeltaAttention,
    LightningAttention,
    Mamba1,
    Mamba2,
    ShortConvolution,
)
from advisor.core.weights import Matrix

__all__ = [
    "MIXERS",
    "UNBOUNDED",
    "AttentionWithMamba",
    "Cache",
    "CompressedAttention",
    "GatedDeltaNet",
    "GroupedQueryAttention",
    "KimiDeltaAttention",
    "LatentAttention",
    "LightningAttention",
    "Mamba1",
    "Mamba2",
    "Mixer",
    "ShortConvolution",
]


@dataclass(frozen=True)
class AttentionWithMamba:
    """Attention and a state-space mixer side by side on the same input (Falcon-H1)."""

    attention: GroupedQueryAttention
    state_space: Mamba2

    kind = "gqa_mamba2"

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """The weights of both."""
        return self.attention.matrices(hidden) + self.state_space.matrices(hidden)

    def caches(self, ranks: int) -> tuple[Cache, ...]:
        """Keys and values of the attention."""
        return self.attention.caches(ranks)

    def state_bytes(self, ranks: int) -> float:
        """State of the state-space mixer for one sequence on one of `ranks` [bytes]."""
        return self.state_space.state_bytes(ranks)

    def split_faults(self, ranks: int) -> list[tuple[str, int]]:
        """What either cannot divide."""
        return self.attention.split_faults(ranks) + self.state_space.split_faults(ranks)


Mixer = (
    GroupedQueryAttention
    | LatentAttention
    | CompressedAttention
    | Mamba1
    | Mamba2
    | GatedDeltaNet
    | KimiDeltaAttention
    | LightningAttention
    | ShortConvolution
    | AttentionWithMamba
)
MIXERS: Mapping[str, type[Mixer]] = {
    each.kind: each
    for each in (
        GroupedQueryAttention,
        LatentAttention,
        CompressedAttention,
        Mamba1,
        Mamba2,
        GatedDeltaNet,
        KimiDeltaAttention,
        LightningAttention,
        ShortConvolution,
        AttentionWithMamba,
    )
}
