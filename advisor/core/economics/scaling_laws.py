"""Loss of size and data, L(N, D) = E + A / N^alpha + B / D^beta, as sets of constants.

The sets differ: at 13 billion parameters their best ratios of tokens to parameters are 44, 76 and
20. So a set has a name, and every answer says which was used.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.core.errors import FieldError, InvalidInput, unknown_choice


@dataclass(frozen=True)
class ScalingLaw:
    """One set of constants; N in parameters, D in tokens, loss in nats per token."""

    name: str
    irreducible: float
    size_factor: float
    size_exponent: float
    data_factor: float
    data_exponent: float
    source: str

    def loss(self, parameters: float, tokens: float) -> float:
        """L(N, D)."""
        return float(self._of_size(parameters) + self.data_factor / tokens**self.data_exponent)

    def tokens_for(self, loss: float, parameters: float) -> float | None:
        """Tokens with which a size reaches a loss; `None` where none do."""
        gap = loss - self._of_size(parameters)
        return (self.data_factor / gap) ** (1 / self.data_exponent) if gap > 0 else None

    def parameters_for(self, loss: float, tokens: float) -> float | None:
        """The size that reaches a loss with so many tokens; `None` where none does."""
        gap = loss - self.irreducible - self.data_factor / tokens**self.data_exponent
        return (self.size_factor / gap) ** (1 / self.size_exponent) if gap > 0 else None

    def least_tokens(self, loss: float) -> float:
        """The tokens that no size, however large, reaches the loss with."""
        return float((self.data_factor / (loss - self.irreducible)) ** (1 / self.data_exponent))

    def best_tokens(self, parameters: float) -> float:
        """Tokens that train a size at the least compute for its loss, nothing served: where
        alpha A / N^alpha = beta B / D^beta."""
        ratio = self.data_exponent * self.data_factor / (self.size_exponent * self.size_factor)
        return float((ratio * parameters**self.size_exponent) ** (1 / self.data_exponent))

    def _of_size(self, parameters: float) -> float:
        return float(self.irreducible + self.size_factor / parameters**self.size_exponent)


SCALING_LAWS = {
    law.name: law
    for law in (
        ScalingLaw(
            "sardana_code", 1.69, 406.4, 0.336, 410.7, 0.283,
            "published code of Sardana et al. 2024, arXiv 2401.00448; gives that paper's 17 %",
        ),
        ScalingLaw(
            "hoffmann_rounded", 1.69, 406.4, 0.34, 410.7, 0.28,
            "Hoffmann et al. 2022, arXiv 2203.15556, exponents as printed",
        ),
        ScalingLaw(
            "besiroglu", 1.8172, 482.01, 0.3478, 2085.43, 0.3658,
            "Besiroglu et al. 2024, arXiv 2404.10102, a new fit; agrees with 20 tokens a parameter",
        ),
    )
}  # fmt: skip


def scaling_law(name: str) -> ScalingLaw:
    """The set of that name. InvalidInput with the nearest where there is none."""
    if name not in SCALING_LAWS:
        error: FieldError = unknown_choice("/constants", name, SCALING_LAWS, "Set of constants")
        raise InvalidInput(error)
    return SCALING_LAWS[name]
