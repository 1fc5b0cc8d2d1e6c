"""Provider break-even: is a model worth training for the calls it can sell?

The founding condition (Chip Huyen, *AI Engineering*, 2025, chapter 9, a footnote that credits Mark
Saroufim) is T <= p N: the training cost T is worth it when the price p times the calls N that can
be sold covers it; equality counts. It says nothing of what a call costs to serve. With a serving
cost c per call, a share f of free calls and fees r of the revenue, a call contributes
p (1 - f) (1 - r) - c, which takes the place of p. A third party that hosts an open model has no
training cost to recover, so for it only the contribution counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Any

from advisor.core.economics.break_even_inputs import BreakEvenInputs
from advisor.core.economics.break_even_words import condition_expression, not_included, reason
from advisor.core.economics.figures import as_json, quotient, written
from advisor.core.economics.margins import DEPENDS_ON_TIME, Margins, margins
from advisor.core.economics.payback import Payback, payback
from advisor.core.economics.pricing import BestPrice, Demand, best_price


@dataclass(frozen=True)
class Condition:
    """The sum T <= (p - c) N with its figures; `holds` is `None` while N is not given, and where
    what N calls recover depends on when they are sold."""

    expression: str
    holds: bool | None


@dataclass(frozen=True)
class BreakEven:
    """The answer; money in `currency`.

    Exact: `break_even_calls*` (the least whole number that covers what was spent) where every call
    recovers the same, `contribution_per_call`, `profit`, `revenue`, `serving_cost`. Rounded to 28
    significant digits where they do not terminate: ratios to the nearest, `price_needed` upwards
    and `cost_needed` downwards, so that with the stated price, or serving cost, the calls do cover
    what was spent. A figure that is `None` has its reason in `null_reasons`.
    """

    status: str
    reason: str | None
    condition: Condition
    condition_without_serving_cost: Condition
    break_even_calls: int | None
    break_even_calls_without_serving_cost: int | None
    calls_per_month_to_cover_fixed_cost: int | None
    months: float | None
    whole_months: int | None
    months_undiscounted: float | None
    contribution_per_call: Decimal
    gross_margin: Decimal | None
    markup_on_cost: Decimal | None
    revenue: Decimal | None
    serving_cost: Decimal | None
    profit: Decimal | None
    net_margin_after_training: Decimal | None
    training_cost_per_call: Decimal | None
    roi_on_training: Decimal | None
    price_needed: Decimal | None
    cost_needed: Decimal | None
    npv: Decimal | None
    monthly_irr: float | None
    training_cost_applies: bool
    best_price: BestPrice | None
    currency: str
    null_reasons: dict[str, str]
    not_included: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: money and ratios as plain decimal strings, integers above 2^53 as strings."""
        return dict(as_json(self))


def break_even(inputs: BreakEvenInputs) -> BreakEven:
    """How many calls and months recover what was spent, and what a call brings in.

    `status` is `never` when no number of calls or months does, `not_within_horizon` when none up to
    the horizon does, otherwise `ok`.
    """
    needed, in_time, sums = _calls_needed(inputs), payback(inputs), margins(inputs)
    status = "never" if _hopeless(inputs) else in_time.status
    figures: dict[str, Any] = vars(sums) | {
        "break_even_calls": _in_calls(inputs, needed, in_time),
        "break_even_calls_without_serving_cost": _calls_by_price(inputs),
        "calls_per_month_to_cover_fixed_cost": _calls_for_fixed_cost(inputs),
        "months": in_time.months,
        "whole_months": in_time.whole_months,
        "months_undiscounted": in_time.months_undiscounted,
        "price_needed": _price_needed(inputs),
        "cost_needed": _cost_needed(inputs),
        "npv": in_time.npv,
        "monthly_irr": in_time.monthly_irr,
    }
    missing = {name: value for name, value in figures.items() if isinstance(value, str)}
    return BreakEven(
        status=status,
        reason=reason(inputs, status) or in_time.reason,
        condition=_condition(inputs, sums),
        condition_without_serving_cost=_plain_condition(inputs),
        contribution_per_call=written(inputs.contribution),
        training_cost_applies=inputs.training_cost > 0,
        best_price=_best_price(inputs),
        currency=inputs.currency,
        null_reasons=missing,
        not_included=not_included(inputs),
        **(figures | dict.fromkeys(missing)),
    )


def calls_to_cover(cost: Fraction, contribution: Fraction) -> int | None:
    """N* = ceil(T / (p - c)), the least N with (p - c) N >= T; `None` when there is none."""
    if contribution > 0:
        return math.ceil(cost / contribution)
    return 0 if contribution == 0 and cost == 0 else None


def _calls_needed(inputs: BreakEvenInputs) -> int | None:
    """N* where every call recovers the same."""
    recovered = inputs.recovered_per_call
    return None if recovered is None else calls_to_cover(inputs.to_recover, recovered)


def _hopeless(inputs: BreakEvenInputs) -> bool:
    """Whether no number of calls recovers the cost, however fast they are sold."""
    return inputs.recovered_per_call is not None and _calls_needed(inputs) is None


# A figure below is a number or, where it has no value, the sentence that says why.


def _in_calls(inputs: BreakEvenInputs, needed: int | None, in_time: Payback) -> int | str:
    """N*, or the calls sold by the time the cost is recovered where calls differ over time."""
    if inputs.recovered_per_call is None:
        return in_time.calls_sold
    if needed is None:
        return "No number of calls recovers the cost."
    return needed


def _calls_by_price(inputs: BreakEvenInputs) -> int | str:
    """ceil(T / p), the founding condition turned round."""
    found = calls_to_cover(Fraction(inputs.training_cost), Fraction(inputs.price_per_call))
    return "price_per_call is 0" if found is None else found


def _calls_for_fixed_cost(inputs: BreakEvenInputs) -> int | str:
    """Calls a month that pay for the fixed cost before anything is recovered, at first prices."""
    found = calls_to_cover(Fraction(inputs.fixed_cost_per_month), inputs.contribution)
    return "The contribution per call is not positive." if found is None else found


def _needed_per_call(inputs: BreakEvenInputs) -> Fraction | str:
    """(T + W) / N + F / m, which each of N calls has to bring in above its serving cost."""
    fixed = inputs.fixed_cost_per_call
    if not inputs.calls:
        return "calls is not given" if inputs.calls is None else "calls is 0"
    if inputs.prices_change or fixed is None:
        return DEPENDS_ON_TIME
    return inputs.to_recover / inputs.calls + fixed


def _price_needed(inputs: BreakEvenInputs) -> Decimal | str:
    """p* = ((T + W) / N + F / m + c) / ((1 - f) (1 - r)), at which N calls just recover it."""
    needed = _needed_per_call(inputs)
    if isinstance(needed, str):
        return needed
    return quotient((needed + inputs.serving_cost) / inputs.kept_share, ROUND_CEILING)


def _cost_needed(inputs: BreakEvenInputs) -> Decimal | str:
    """c* = p (1 - f) (1 - r) - (T + W) / N - F / m, the serving cost at which they do."""
    needed = _needed_per_call(inputs)
    if isinstance(needed, str):
        return needed
    if needed > inputs.revenue_per_call:
        return "These calls would not recover it even if they cost nothing to serve."
    return quotient(inputs.revenue_per_call - needed, ROUND_FLOOR)


def _best_price(inputs: BreakEvenInputs) -> BestPrice | None:
    """The price of most profit where demand is known to depend on it."""
    if inputs.price_elasticity is None or inputs.calls is None:
        return None
    demand = Demand(
        Fraction(inputs.price_per_call), Fraction(inputs.calls), inputs.price_elasticity
    )
    return best_price(demand, inputs.serving_cost, inputs.to_recover, inputs.kept_share)


def _condition(inputs: BreakEvenInputs, sums: Margins) -> Condition:
    """T <= p N, or T <= (p - c) N, with the figures in place."""
    expression = condition_expression(inputs)
    holds = None if isinstance(sums.profit, str) else sums.profit >= 0
    return Condition(expression, holds)


def _plain_condition(inputs: BreakEvenInputs) -> Condition:
    """T <= p N, whatever else is known."""
    bare = BreakEvenInputs(inputs.training_cost, inputs.price_per_call, calls=inputs.calls)
    return _condition(bare, margins(bare))
