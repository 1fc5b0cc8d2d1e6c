"""What break-even says in words: the condition with its figures, why it fails, what is left out."""

from __future__ import annotations

from fractions import Fraction

from advisor.core.economics.break_even_inputs import BreakEvenInputs
from advisor.core.economics.figures import plain, quotient, written

_NO_SERVING_COST = "the serving cost per call, which is not given"
_TAXES = "taxes, and what is not in the figures given (network, storage, staff, licences)"


def condition_expression(inputs: BreakEvenInputs) -> str:
    """T <= p N or, with more, T + W <= (p x kept share - c) N, the figures in place."""
    price = plain(inputs.price_per_call)
    if inputs.kept_share != 1:
        price = f"{price} x {plain(written(inputs.kept_share))}"
    if inputs.serving_cost_per_call is not None:
        price = f"({price} - {plain(inputs.serving_cost_per_call)})"
    cost = plain(inputs.training_cost)
    if inputs.one_off_cost:
        cost = f"{cost} + {plain(inputs.one_off_cost)}"
    calls = "calls" if inputs.calls is None else inputs.calls
    fixed = inputs.fixed_cost_per_month
    months = f" - {plain(fixed)} x months" if fixed else ""
    expression = f"{cost} <= {price} x {calls}{months}"
    if inputs.calls is None or inputs.recovered_per_call is None:
        return expression
    return f"{expression} = {plain(written(inputs.recovered_per_call * inputs.calls))}"


def reason(inputs: BreakEvenInputs, status: str) -> str | None:
    """Why no call recovers anything, or that there is nothing to recover; `None` otherwise."""
    contribution, currency = inputs.contribution, inputs.currency
    if contribution < 0 and not inputs.prices_change:
        loss = f"Each call loses {plain(written(-contribution))} {currency}"
        if inputs.training_cost == 0:
            loss = f"{loss}: no volume is profitable, although 0 <= price x calls always holds."
        else:
            loss = f"{loss}: every further call adds to what must be recovered."
        return f"{loss} {_would_help(inputs)}"
    fixed = inputs.fixed_cost_per_call
    if fixed and not inputs.prices_change and status == "never" and contribution > 0:
        month = plain(inputs.fixed_cost_per_month)
        less = f"What the calls of a month contribute does not exceed its fixed cost, {month}."
        return f"{less} {_would_help(inputs)}"
    if inputs.to_recover == 0 and status == "ok":
        return (
            "There is no training cost to recover, as for a third party that hosts an open model: "
            "what counts is that the price covers the serving cost."
        )
    if contribution == 0 and status == "never" and not inputs.prices_change:
        none = "The contribution per call is 0, so no number of calls recovers the training cost."
        return f"{none} {_would_help(inputs)}"
    return None


def _would_help(inputs: BreakEvenInputs) -> str:
    """The price and the serving cost between which a call would recover something."""
    fixed = inputs.fixed_cost_per_call or Fraction(0)
    price = quotient((inputs.serving_cost + fixed) / inputs.kept_share)
    most = inputs.revenue_per_call - fixed
    above = f"The price of a call has to exceed {plain(price)} {inputs.currency}"
    if most <= 0:
        return f"{above}: no serving cost is low enough."
    return f"{above}, or its serving cost to be below {plain(quotient(most))}."


def not_included(inputs: BreakEvenInputs) -> tuple[str, ...]:
    """What the sum leaves out: what was not given, and what is never in it."""
    changing = inputs.monthly_growth or inputs.prices_change
    left_out = {
        _NO_SERVING_COST: inputs.serving_cost_per_call is None,
        "the time value of money: a later payment counts as much as an early one": (
            not inputs.annual_discount_rate
        ),
        "changes of price, cost or demand over time": not changing,
        "fixed cost per month (staff, idle capacity, licences)": not inputs.fixed_cost_per_month,
        "calls given away free, payment and reseller fees": inputs.kept_share == 1,
        _TAXES: True,
    }
    return tuple(line for line, absent in left_out.items() if absent)
