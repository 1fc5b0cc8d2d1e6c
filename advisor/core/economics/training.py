"""What training costs: 6 FLOP per parameter and token, and the utilization that runs reach.

FLOP = 6 N D for N active parameters and D tokens: 2 N D forward, 4 N D backward [Kaplan et al.
2020, arXiv 2001.08361]. Accelerator-hours = FLOP / (peak x MFU) / 3600. Of 34 published runs the
middle half has an MFU of 0.24 to 0.37, the median 0.28; the sources stand in docs/economics.md.
Attention adds 12 x layers x width x sequence FLOP per token of training, which 6 N leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from advisor.core.economics.figures import (
    AMOUNT,
    POSITIVE,
    POSITIVE_SHARE,
    Range,
    plain,
    quotient,
    refuse_outside,
)
from advisor.core.economics.request_price import TOKENS_PER_MTOK
from advisor.core.economics.serving_cost import SECONDS_PER_HOUR
from advisor.core.errors import FieldError, InvalidInput

FORWARD_FLOP, TRAINING_FLOP = 2, 6
"""FLOP per parameter and token."""
TYPICAL_MFU = Fraction(28, 100)
TYPICAL_MFU_SAYS = f"The utilization (MFU) is {float(TYPICAL_MFU)}, the median of 34 published runs"
MFU_BAND = (Fraction(24, 100), Fraction(37, 100))
DOUBTFUL_MFU = Fraction(6, 10)
"""No published run exceeds it: of those 34 the highest has 0.55 by its hours, 0.6 by its report."""
LARGE_ATTENTION_SHARE = Fraction(1, 10)
SIZE = Range(Fraction(1), Fraction(10**6))
SEQUENCE = Range(Fraction(1), Fraction(10**9))
OVERHEAD = Range(Fraction(1), Fraction(1000))
_SHAPE = ("num_layers", "hidden_size", "sequence_tokens")


@dataclass(frozen=True)
class TrainingInputs:
    """`peak_tflops` of one accelerator, dense, in the arithmetic trained in. `accelerator_hours`
    where they are known, else `mfu`, else the typical one. `overhead_multiplier` is T over the
    final run: failed runs, ablations, data, staff. The shape, where given, adds what attention
    would. Raises InvalidInput, also for hours in which no hardware could do the work."""

    parameters_active: Fraction
    tokens: Fraction
    peak_tflops: Fraction
    price_per_hour: Decimal
    mfu: Fraction | None = None
    accelerator_hours: Fraction | None = None
    overhead_multiplier: Fraction = Fraction(1)
    num_layers: int | None = None
    hidden_size: int | None = None
    sequence_tokens: int | None = None
    currency: str = "USD"

    def __post_init__(self) -> None:
        refuse_outside(
            self, parameters_active=POSITIVE, tokens=POSITIVE, peak_tflops=POSITIVE,
            price_per_hour=AMOUNT, mfu=POSITIVE_SHARE, accelerator_hours=POSITIVE,
            overhead_multiplier=OVERHEAD,
            num_layers=SIZE, hidden_size=SIZE, sequence_tokens=SEQUENCE,
        )  # fmt: skip
        shape = [getattr(self, name) is not None for name in _SHAPE]
        if any(shape) and not all(shape):
            missing = next(name for name in _SHAPE if getattr(self, name) is None)
            detail = f"Attention takes all of {', '.join(_SHAPE)}."
            raise InvalidInput(FieldError(f"/{missing}", detail))
        if self.mfu is not None and self.accelerator_hours is not None:
            detail = "The hours say what the utilization was: give one of the two."
            raise InvalidInput(FieldError("/mfu", detail, given=float(self.mfu)))
        if self.accelerator_hours is not None and self.utilization > 1:
            raise InvalidInput(self._impossible())

    @property
    def flop(self) -> Fraction:
        """6 N D."""
        return TRAINING_FLOP * self.parameters_active * self.tokens

    @property
    def peak_flop_per_hour(self) -> Fraction:
        """What an accelerator could compute in an hour."""
        return self.peak_tflops * 10**12 * SECONDS_PER_HOUR

    @property
    def utilization(self) -> Fraction:
        """MFU: given, or what the hours imply, or the typical one."""
        if self.accelerator_hours is not None:
            return self.flop / (self.peak_flop_per_hour * self.accelerator_hours)
        return TYPICAL_MFU if self.mfu is None else self.mfu

    def hours(self, mfu: Fraction) -> Fraction:
        """Accelerator-hours at a utilization."""
        return self.flop / (self.peak_flop_per_hour * mfu)

    def _impossible(self) -> FieldError:
        assert self.accelerator_hours is not None
        least = float(self.hours(Fraction(1)))
        detail = (
            f"The work would take a utilization (MFU) of {float(self.utilization):.4g}; above 1 is "
            "impossible. Are the hours those of a trillion tokens, or the parameters not the "
            "active ones?"
        )
        given = float(self.accelerator_hours)
        return FieldError("/accelerator_hours", detail, given, {"minimum": least})


@dataclass(frozen=True)
class Forward:
    """Computing alone, which prefill can approach and decode cannot: a ceiling, no prediction."""

    flop_per_token: Fraction
    tokens_per_s: Fraction
    per_million_tokens: Decimal


@dataclass(frozen=True)
class Training:
    """Compute [FLOP], hours of one accelerator, money. `cost_range` is at the ends of the measured
    band of utilization, or the cost itself where the hours are known.

    `inference_tokens_equal_to_training`: so many served tokens take as much compute, at equal
    utilization. `attention_ratio`: what attention would add to 6 N D.
    """

    flop: float
    forward_flop: float
    backward_flop: float
    forward_share: float
    accelerator_hours: float
    implied_mfu: float
    cost: Decimal
    cost_range: tuple[Decimal, Decimal]
    final_run_cost: Decimal
    forward: Forward
    inference_tokens_equal_to_training: Fraction
    attention_ratio: float | None
    currency: str


def training_cost(inputs: TrainingInputs) -> Training:
    """What a training run takes and costs."""
    mfu, flop = inputs.utilization, inputs.flop
    hours = inputs.hours(mfu)
    forward = flop * FORWARD_FLOP / TRAINING_FLOP
    price = Fraction(inputs.price_per_hour)
    low, high = (mfu, mfu)
    if inputs.accelerator_hours is None:
        low, high = min(mfu, MFU_BAND[0]), max(mfu, MFU_BAND[1])

    def cost(at: Fraction) -> Decimal:
        return quotient(inputs.hours(at) * price * inputs.overhead_multiplier)

    return Training(
        flop=float(flop),
        forward_flop=float(forward),
        backward_flop=float(flop - forward),
        forward_share=float(Fraction(FORWARD_FLOP, TRAINING_FLOP)),
        accelerator_hours=float(hours),
        implied_mfu=float(mfu),
        cost=cost(mfu),
        cost_range=(cost(high), cost(low)),
        final_run_cost=quotient(hours * price),
        forward=forward_pass(inputs.parameters_active, inputs.peak_tflops, mfu, price),
        inference_tokens_equal_to_training=inputs.tokens * TRAINING_FLOP / FORWARD_FLOP,
        attention_ratio=attention_ratio(inputs),
        currency=inputs.currency,
    )


def forward_pass(
    parameters: Fraction, peak_tflops: Fraction, mfu: Fraction, price_per_hour: Fraction
) -> Forward:
    """peak x MFU / (2 N) tokens a second, and what a million of them cost."""
    tokens_per_s = peak_tflops * 10**12 * mfu / (FORWARD_FLOP * parameters)
    cost = price_per_hour * TOKENS_PER_MTOK / (SECONDS_PER_HOUR * tokens_per_s)
    return Forward(FORWARD_FLOP * parameters, tokens_per_s, quotient(cost))


def attention_ratio(inputs: TrainingInputs) -> float | None:
    """12 x layers x width x sequence over 6 N [MosaicML's formula, without causal halving]."""
    if inputs.num_layers is None or inputs.hidden_size is None or inputs.sequence_tokens is None:
        return None
    attention = 12 * inputs.num_layers * inputs.hidden_size * inputs.sequence_tokens
    return float(attention / (TRAINING_FLOP * inputs.parameters_active))


def describe_assumptions(inputs: TrainingInputs) -> tuple[tuple[str, str], ...]:
    """What the figures rest on: a code and a sentence each."""
    band = f"{float(MFU_BAND[0])} to {float(MFU_BAND[1])}"
    found = [("six_flop", "6 FLOP per active parameter and token: 2 forward, 4 backward.")]
    if inputs.accelerator_hours is None and inputs.mfu is None:
        found.append(("typical_mfu", f"{TYPICAL_MFU_SAYS}; half of them: {band}."))
    if inputs.overhead_multiplier == 1:
        found.append(("final_run_only", "The final run alone: no failed runs, ablations or staff."))
    price = plain(inputs.price_per_hour)
    found.append(("every_hour_paid", f"Each accelerator-hour costs {price} {inputs.currency}."))
    return tuple(found)
