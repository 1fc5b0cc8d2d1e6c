"""Feed-forward blocks: dense, and mixtures of experts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from advisor.core.weights import Matrix, feed_forward, vectors


@dataclass(frozen=True)
class DenseMlp:
    """A feed-forward block; gated ones (SwiGLU) have three matrices, plain ones two.

    `activation_scalars` counts what the activation function has learned.
    """

    intermediate_size: int
    gated: bool = True
    bias: bool = False
    activation_scalars: int = 0

    kind = "dense"

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Up (and gate) and down projections."""
        return (
            *feed_forward("mlp", hidden, self.intermediate_size, self.gated, self.bias),
            vectors("mlp", self.activation_scalars),
        )


@dataclass(frozen=True)
class MoeMlp:
    """A mixture of experts: `experts_per_token` of `num_experts`, and shared experts beside them.

    `intermediate_size` is one expert's, `shared_intermediate_size` that of all shared experts
    together, `shared_gate` a learned gate on them. `router_bias` counts a bias or a correction per
    expert. Where `latent_size` is given, experts work in that width, between two projections.
    """

    num_experts: int
    experts_per_token: int
    intermediate_size: int
    shared_intermediate_size: int = 0
    shared_gate: bool = False
    latent_size: int | None = None
    gated: bool = True
    bias: bool = False
    router_bias: bool = False

    kind = "moe"

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Router, experts, shared experts and latent projections."""
        width = self.latent_size or hidden
        routed = self.num_experts + self.shared_gate
        weights = [
            Matrix("router", hidden, routed, "none", vector=self.num_experts * self.router_bias),
            *feed_forward(
                "experts", width, self.intermediate_size, self.gated, self.bias,
                self.num_experts, self.experts_per_token,
            ),
        ]  # fmt: skip
        if self.shared_intermediate_size:
            shared = self.shared_intermediate_size
            weights += feed_forward("shared_experts", hidden, shared, self.gated)
        if self.latent_size:
            weights.append(Matrix("mlp", hidden, self.latent_size))
            weights.append(Matrix("mlp", self.latent_size, hidden, "rows"))
        return tuple(weights)


Mlp = DenseMlp | MoeMlp
MLPS: Mapping[str, type[Mlp]] = {each.kind: each for each in (DenseMlp, MoeMlp)}
