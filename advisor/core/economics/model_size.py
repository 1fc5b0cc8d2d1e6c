"""The size of model that is cheapest to train and serve together, at a given quality.

min over N, D of 6 N D m_tr + 2 N m_inf where L(N, D) = l [Sardana et al. 2024, arXiv 2401.00448]:
the loss of a reference model trained as well as its compute permits. With D_inf tokens served at
the cost of training ones, m_tr = 1 and m_inf = D_inf; with prices and utilizations of their own,
m is what a FLOP costs, prompt and output apart. The best D is the root of

    (beta / alpha + 1) B D^-beta + beta B m / (3 alpha) D^(-beta - 1) + E - l,  m = m_inf / m_tr,

which falls with D, so halving finds it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from advisor.core.economics.figures import (
    AMOUNT,
    POSITIVE,
    POSITIVE_SHARE,
    SHARE,
    Range,
    quotient,
    refuse_outside,
)
from advisor.core.economics.scaling_laws import ScalingLaw, scaling_law
from advisor.core.economics.serving_cost import SECONDS_PER_HOUR
from advisor.core.economics.training import FORWARD_FLOP, TRAINING_FLOP, TYPICAL_MFU

PARAMETERS = Range(Fraction(10**6), Fraction(10**14))
TOKENS = Range(Fraction(0), Fraction(10**20))
_HALVINGS = 200


@dataclass(frozen=True)
class ServingPrices:
    """What a FLOP costs when training and when serving: prices of an accelerator-hour, dense peaks
    and utilizations; `output_share` of the served tokens are decoded, the others prompt.
    The utilization of training is that of published runs, those of serving are the defaults of
    Sardana et al.'s published cost script (which trains at 0.5)."""

    training_price_per_hour: Decimal
    serving_price_per_hour: Decimal
    training_peak_tflops: Fraction
    serving_peak_tflops: Fraction
    output_share: Fraction
    training_mfu: Fraction = TYPICAL_MFU
    input_mfu: Fraction = Fraction(1, 2)
    output_mfu: Fraction = Fraction(1, 100)

    def __post_init__(self) -> None:
        refuse_outside(
            self, training_price_per_hour=POSITIVE, serving_price_per_hour=AMOUNT,
            training_peak_tflops=POSITIVE, serving_peak_tflops=POSITIVE,
            output_share=SHARE, training_mfu=POSITIVE_SHARE,
            input_mfu=POSITIVE_SHARE, output_mfu=POSITIVE_SHARE,
        )  # fmt: skip

    @property
    def per_training_flop(self) -> float:
        """Money of a FLOP of training."""
        return float(_per_flop(self.training_price_per_hour, self.training_peak_tflops)
                     / self.training_mfu)  # fmt: skip

    @property
    def per_serving_flop(self) -> float:
        """Money of a FLOP of serving, over prompt and output tokens."""
        used = (1 - self.output_share) / self.input_mfu + self.output_share / self.output_mfu
        return float(_per_flop(self.serving_price_per_hour, self.serving_peak_tflops) * used)


def _per_flop(price_per_hour: Decimal, peak_tflops: Fraction) -> Fraction:
    return Fraction(price_per_hour) / (peak_tflops * 10**12 * SECONDS_PER_HOUR)


@dataclass(frozen=True)
class ModelSizeInputs:
    """The reference is a dense model of `reference_parameters`, trained at the least compute for
    its loss. Without `prices` a FLOP costs the same whatever it is for, and cost is in FLOP."""

    reference_parameters: Fraction
    inference_tokens: Fraction
    constants: str
    alternative_parameters: Fraction | None = None
    prices: ServingPrices | None = None
    currency: str = "USD"

    def __post_init__(self) -> None:
        refuse_outside(
            self, reference_parameters=PARAMETERS, inference_tokens=TOKENS,
            alternative_parameters=PARAMETERS,
        )  # fmt: skip
        scaling_law(self.constants)


@dataclass(frozen=True)
class Sized:
    """A model of the reference's quality; `saving` is a share of the reference's cost.

    `status` is `infeasible` where a size reaches that quality with no amount of data.
    """

    status: str
    parameters: float
    tokens: float | None
    tokens_per_parameter: float | None
    flop: float | None
    cost: Decimal | None
    saving: float | None
    saving_flop: float | None


@dataclass(frozen=True)
class ModelSize:
    """The optimum beside the reference and, where asked, another size. `loss` in nats."""

    optimal_parameters: float
    optimal_tokens: float
    saving: float
    loss: float
    reference: Sized
    optimal: Sized
    alternative: Sized | None
    constants: ScalingLaw


def inference_aware_size(inputs: ModelSizeInputs) -> ModelSize:
    """The size and data of least cost, training and serving together."""
    law = scaling_law(inputs.constants)
    size = float(inputs.reference_parameters)
    tokens = law.best_tokens(size)
    loss = law.loss(size, tokens)
    best_tokens = _root(law, loss, _served_as_training(inputs))
    best = law.parameters_for(loss, best_tokens)
    assert best is not None
    reference = _sized(inputs, size, tokens)
    optimal = _sized(inputs, best, best_tokens, reference)
    other = inputs.alternative_parameters
    return ModelSize(
        optimal_parameters=best,
        optimal_tokens=best_tokens,
        saving=optimal.saving or 0.0,
        loss=loss,
        reference=reference,
        optimal=optimal,
        alternative=(
            None
            if other is None
            else _sized(inputs, float(other), law.tokens_for(loss, float(other)), reference)
        ),
        constants=law,
    )


def _served_as_training(inputs: ModelSizeInputs) -> float:
    """m: tokens whose serving costs, per FLOP, what training does."""
    served = float(inputs.inference_tokens)
    prices = inputs.prices
    return served * (prices.per_serving_flop / prices.per_training_flop if prices else 1.0)


def _root(law: ScalingLaw, loss: float, served: float) -> float:
    """The best D; see the module."""
    alpha, beta, factor = law.size_exponent, law.data_exponent, law.data_factor

    def falling(tokens: float) -> float:
        training = (beta / alpha + 1) * factor * tokens**-beta
        serving = beta * factor * served / (3 * alpha) * tokens ** (-beta - 1)
        return float(training + serving + law.irreducible - loss)

    low = law.least_tokens(loss)
    high = 2 * low
    while falling(high) > 0:
        high *= 2
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return math.sqrt(low * high)


def _sized(
    inputs: ModelSizeInputs, size: float, tokens: float | None, reference: Sized | None = None
) -> Sized:
    """A size with its data, and what it costs beside the reference."""
    if tokens is None:
        return Sized("infeasible", size, *(None,) * 6)
    training, served = TRAINING_FLOP * size * tokens, FORWARD_FLOP * size
    served *= float(inputs.inference_tokens)
    flop, prices = training + served, inputs.prices
    cost = None
    if prices is not None:
        money = training * prices.per_training_flop + served * prices.per_serving_flop
        cost = quotient(Fraction(money))
    saving = saving_flop = None
    if reference is not None and reference.flop is not None:
        saving_flop = reference.flop - flop
        saving = saving_flop / reference.flop
        if cost is not None and reference.cost is not None:
            saving = float(1 - Fraction(cost) / Fraction(reference.cost))
    return Sized("ok", size, tokens, tokens / size, flop, cost, saving, saving_flop)
