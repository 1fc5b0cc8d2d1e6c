"""Revenue, margins and profit of a number of calls: what is over revenue and what is over cost.

A margin is over revenue, a markup over cost; of the same day they may be 85 % and 545 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from advisor.core.economics.break_even_inputs import BreakEvenInputs
from advisor.core.economics.figures import quotient, written

_NO_CALLS = "calls is not given"
_NO_SERVING_COST = "serving_cost_per_call is not given"
DEPENDS_ON_TIME = "What a call recovers depends on when it is sold: see npv."


@dataclass(frozen=True)
class Margins:
    """Money of `calls`; a figure that is a sentence is missing, for the reason it gives."""

    gross_margin: Decimal | str
    markup_on_cost: Decimal | str
    revenue: Decimal | str
    serving_cost: Decimal | str
    profit: Decimal | str
    net_margin_after_training: Decimal | str
    training_cost_per_call: Decimal | str
    roi_on_training: Decimal | str


def margins(inputs: BreakEvenInputs) -> Margins:
    """What the calls expected bring in, cost and leave."""
    profit = _profit(inputs)
    training = Fraction(inputs.training_cost)
    revenue = _times_calls(inputs, inputs.revenue_per_call)
    return Margins(
        gross_margin=_ratio(inputs, inputs.revenue_per_call, "price_per_call"),
        markup_on_cost=_ratio(inputs, inputs.serving_cost, "serving_cost_per_call"),
        revenue=revenue,
        serving_cost=(
            _NO_SERVING_COST
            if inputs.serving_cost_per_call is None
            else _times_calls(inputs, inputs.serving_cost)
        ),
        profit=profit if isinstance(profit, str) else written(profit),
        net_margin_after_training=_over(profit, revenue, "revenue is 0"),
        training_cost_per_call=_over(training, inputs.calls, "calls is 0"),
        roi_on_training=_over(profit, training, "training_cost is 0"),
    )


def _ratio(inputs: BreakEvenInputs, base: Fraction, field: str) -> Decimal | str:
    """(p - c) over p or c; with no call sold both are 0 / 0."""
    if inputs.serving_cost_per_call is None:
        return _NO_SERVING_COST
    if inputs.calls == 0:
        return "calls is 0"
    return quotient(inputs.contribution / base) if base else f"{field} is 0"


def _times_calls(inputs: BreakEvenInputs, per_call: Fraction) -> Decimal | str:
    if inputs.calls is None:
        return _NO_CALLS
    return DEPENDS_ON_TIME if inputs.prices_change else written(per_call * inputs.calls)


def _profit(inputs: BreakEvenInputs) -> Fraction | str:
    """(p - c - F / m) N - T - W."""
    if inputs.calls is None:
        return _NO_CALLS
    if inputs.recovered_per_call is None:
        return DEPENDS_ON_TIME
    return inputs.recovered_per_call * inputs.calls - inputs.to_recover


def _over(part: Fraction | str, whole: Fraction | Decimal | int | str | None, zero: str) -> (
    Decimal | str
):  # fmt: skip
    """A quotient, or why it has none: its parts have none, or it is over 0."""
    for each in (part, whole):
        if isinstance(each, str):
            return each
    if whole is None:
        return _NO_CALLS
    return quotient(Fraction(part) / Fraction(whole)) if whole else zero
