"""Weight matrices: what a part of a model stores, multiplies, and how it may be split."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Matrix:
    """One weight matrix of a layer, or `copies` like it.

    `split` says how tensor parallelism divides it: `columns` or `rows` over all ranks, `heads` over
    at most `units` ranks (KV heads and state-space groups are replicated beyond that), `none` when
    every rank holds it whole. `used` is how many of the copies one token passes through (experts).
    `pieces` is how many equal projections lie side by side in the outputs (gate and up), each split
    on its own. `vector` parameters (biases, norms, tables that are looked up) are stored but cost
    no product.
    """

    part: str
    inputs: int
    outputs: int
    split: str = "columns"
    units: int = 0
    copies: int = 1
    used: int = 1
    vector: int = 0
    pieces: int = 1

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

    @property
    def piece(self) -> int:
        """Outputs of one of the projections in it."""
        return self.outputs // self.pieces

    def ways(self, ranks: int) -> int:
        """Over how many of `ranks` this matrix is really divided."""
        if self.split == "none":
            return 1
        return min(ranks, self.units) if self.split == "heads" else ranks


def vectors(part: str, parameters: int, split: str = "none") -> Matrix:
    """Parameters that are stored and never multiplied."""
    return Matrix(part, 0, 0, split, vector=parameters)


def feed_forward(
    part: str, hidden: int, width: int, gated: bool, bias: bool = False,
    copies: int = 1, used: int = 1,
) -> tuple[Matrix, ...]:  # fmt: skip
    """Up (and gate) and down projections of a feed-forward block."""
    pieces = 2 if gated else 1
    up = pieces * width
    return (
        Matrix(part, hidden, up, copies=copies, used=used, vector=up * bias, pieces=pieces),
        Matrix(part, width, hidden, "rows", copies=copies, used=used, vector=hidden * bias),
    )
