"""What serving costs: the bill of an hour over the tokens of an hour.

cost per million tokens = price per hour x accelerators x 1e6 / (3600 x tokens per second x u). The
utilization u divides the tokens, for idle hours are billed (`always_on`). Only where they are not
(`scale_to_zero`) does it shorten the bill instead, and cold starts lengthen it.

One bill does not say what an input and an output token cost: two unknowns. Without a further
figure the whole bill stands on the output tokens; with `output_to_input_cost_ratio` k and
`cached_to_input_cost_ratio` j, in + j cached + k out share it; with `prefill_time_share`, as a plan
has it, prompts bear that share: their new tokens, and cached ones only where none are new.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from advisor.core.economics.figures import (
    AMOUNT,
    DERIVED,
    POSITIVE,
    POSITIVE_SHARE,
    SHARE,
    Range,
    quotient,
    refuse_outside,
    written,
)
from advisor.core.economics.request_price import TOKENS_PER_MTOK
from advisor.core.errors import FieldError, InvalidInput

BILLINGS = ("always_on", "scale_to_zero")
ALLOCATIONS = ("whole_bill_on_output", "cost_ratio", "step_time")
SECONDS_PER_HOUR = 3600
MOST_ACCELERATORS = 10**6
_ACCELERATORS = Range(Fraction(1), Fraction(MOST_ACCELERATORS))
RATIO = Range(Fraction(1, 1000), Fraction(1000))
A_DAY = Range(Fraction(0), Fraction(86_400))
_COLD = ("cold_starts_per_day", "cold_start_minutes")


@dataclass(frozen=True)
class ServingCostInputs:
    """Rates [tokens/s, requests/s] are of all accelerators together at full use, within the SLO;
    `utilization` is the share of that which is sold. Input tokens are those computed anew; cached
    ones come beside them.
    """

    accelerator_hour_price: Decimal
    accelerators: int
    output_tokens_per_s: Fraction
    utilization: Fraction
    billing: str = "always_on"
    input_tokens_per_s: Fraction | None = None
    cached_input_tokens_per_s: Fraction | None = None
    requests_per_s: Fraction | None = None
    output_to_input_cost_ratio: Fraction | None = None
    cached_to_input_cost_ratio: Fraction = Fraction(0)
    prefill_time_share: Fraction | None = None
    cold_starts_per_day: Fraction = Fraction(0)
    cold_start_minutes: Fraction = Fraction(0)
    currency: str = "USD"

    def __post_init__(self) -> None:
        refuse_outside(
            self, accelerator_hour_price=DERIVED, accelerators=_ACCELERATORS,
            output_tokens_per_s=POSITIVE, utilization=POSITIVE_SHARE, input_tokens_per_s=AMOUNT,
            cached_input_tokens_per_s=AMOUNT, requests_per_s=POSITIVE,
            output_to_input_cost_ratio=RATIO, cached_to_input_cost_ratio=SHARE,
            prefill_time_share=SHARE,
            cold_starts_per_day=A_DAY, cold_start_minutes=A_DAY,
        )  # fmt: skip
        errors = []
        if self.output_to_input_cost_ratio is not None and self.input_tokens_per_s is None:
            detail = "The bill is shared with input tokens: how many come a second?"
            errors.append(FieldError("/input_tokens_per_s", detail))
        if self.cached_to_input_cost_ratio and self.output_to_input_cost_ratio is None:
            detail = "cached_to_input_cost_ratio shares the bill only together with this."
            errors.append(FieldError("/output_to_input_cost_ratio", detail))
        if self.billing == "always_on":
            errors += [
                FieldError(f"/{name}", "What is always on never starts.", given=float(given))
                for name in _COLD
                if (given := getattr(self, name))
            ]
        if errors:
            raise InvalidInput(*errors)

    @property
    def per_hour_on(self) -> Fraction:
        """The bill of an hour in which all accelerators are on."""
        return Fraction(self.accelerator_hour_price) * self.accelerators

    @property
    def billed_share(self) -> Fraction:
        """Share of the hours that are billed: all, or the busy ones and the starts."""
        if self.billing == "always_on":
            return Fraction(1)
        return min(self.utilization + self.starting_share, Fraction(1))

    @property
    def starting_share(self) -> Fraction:
        """Share of the hours in which it starts from zero."""
        return self.cold_starts_per_day * self.cold_start_minutes / (24 * 60)


@dataclass(frozen=True)
class Allocation:
    """How the bill is divided: `basis`, and the share of each kind of token."""

    basis: str
    input_share: Fraction
    cached_input_share: Fraction
    output_share: Fraction


@dataclass(frozen=True)
class ServingCost:
    """Money. Each `per_million_*` but `total` is that kind's own part of the bill (`allocation`),
    so that they add up to it; `None` has its reason in `null_reasons`."""

    per_hour: Decimal
    per_million_output_tokens: Decimal
    per_million_input_tokens: Decimal | None
    per_million_cached_input_tokens: Decimal | None
    per_million_total_tokens: Decimal | None
    per_million_output_tokens_at_full_use: Decimal
    per_request: Decimal | None
    allocation: Allocation
    null_reasons: dict[str, str]


def serving_cost(inputs: ServingCostInputs) -> ServingCost:
    """What an hour, a token and a request cost."""
    bill = inputs.per_hour_on * inputs.billed_share
    shares, sold = _allocation(inputs), inputs.utilization * SECONDS_PER_HOUR

    def per_million(tokens_per_s: Fraction | None, share: Fraction) -> Decimal | str:
        if tokens_per_s is None:
            return "The rate of these tokens is not given."
        if not tokens_per_s:
            return "There are no such tokens."
        if not share and shares.basis == ALLOCATIONS[0]:
            return "The whole bill is on the output tokens: give output_to_input_cost_ratio."
        return quotient(bill * share * TOKENS_PER_MTOK / (tokens_per_s * sold))

    inputs_known = inputs.input_tokens_per_s is not None
    total = inputs.output_tokens_per_s + (inputs.input_tokens_per_s or 0)
    total += inputs.cached_input_tokens_per_s or 0
    output = per_million(inputs.output_tokens_per_s, shares.output_share)
    assert isinstance(output, Decimal)
    full_use = inputs.per_hour_on * shares.output_share * TOKENS_PER_MTOK
    figures = {
        "per_million_input_tokens": per_million(inputs.input_tokens_per_s, shares.input_share),
        "per_million_cached_input_tokens": per_million(
            inputs.cached_input_tokens_per_s, shares.cached_input_share
        ),
        "per_million_total_tokens": per_million(total if inputs_known else None, Fraction(1)),
        "per_request": _per_request(inputs, bill),
    }
    missing = {name: value for name, value in figures.items() if isinstance(value, str)}
    known = {name: v for name, v in figures.items() if isinstance(v, Decimal)}
    return ServingCost(
        per_hour=written(bill),
        per_million_output_tokens=output,
        per_million_output_tokens_at_full_use=quotient(
            full_use / (inputs.output_tokens_per_s * SECONDS_PER_HOUR)
        ),
        allocation=shares,
        null_reasons=missing,
        **(dict.fromkeys(figures) | known),
    )


def _per_request(inputs: ServingCostInputs, bill: Fraction) -> Decimal | str:
    if inputs.requests_per_s is None:
        return "requests_per_s is not given"
    return quotient(bill / (inputs.requests_per_s * inputs.utilization * SECONDS_PER_HOUR))


def _allocation(inputs: ServingCostInputs) -> Allocation:
    """Shares of the bill; see the module."""
    ratio, prefill = inputs.output_to_input_cost_ratio, inputs.prefill_time_share
    if ratio is None and prefill is not None:
        shares = (prefill, Fraction(0)) if inputs.input_tokens_per_s else (Fraction(0), prefill)
        return Allocation(ALLOCATIONS[2], *shares, 1 - prefill)
    if ratio is None:
        return Allocation(ALLOCATIONS[0], Fraction(0), Fraction(0), Fraction(1))
    weights = (
        inputs.input_tokens_per_s or Fraction(0),
        inputs.cached_to_input_cost_ratio * (inputs.cached_input_tokens_per_s or 0),
        ratio * inputs.output_tokens_per_s,
    )
    total = sum(weights)
    return Allocation(ALLOCATIONS[1], *(weight / total for weight in weights))


def parity_tokens_per_s(per_hour: Decimal, blended_per_mtok: Decimal) -> Fraction | None:
    """Tokens a second that have to be sold, every second, for the bill of an hour to match a price
    per million tokens; `None` where that is 0."""
    if not blended_per_mtok:
        return None
    return Fraction(per_hour) * TOKENS_PER_MTOK / (SECONDS_PER_HOUR * Fraction(blended_per_mtok))


def break_even_utilization(
    at_full_use: Decimal, api_price: Decimal, starting_share: Fraction | None = None
) -> Fraction | None:
    """Utilization from which self-hosting is cheaper than an API: the cost P of a token at full use
    over its price a; `None` where even full use costs as much. With scale to zero and starts in a
    share s of the hours already from s P / (a - P), where that is less."""
    if at_full_use >= api_price:
        return None
    full, price = Fraction(at_full_use), Fraction(api_price)
    if starting_share is None:
        return full / price
    return min(full / price, starting_share * full / (price - full))
