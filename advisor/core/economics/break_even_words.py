"""What break-even says in words: the condition with its figures, why it fails, what is left out."""

from __future__ import annotations

from advisor.core.economics.break_even_inputs import BreakEvenInputs
from advisor.core.economics.figures import plain, written

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
    if inputs.calls is None:
        return f"{cost} <= {price} x calls"
    fixed = ""
    if inputs.fixed_cost_per_month:
        fixed = f" - {plain(inputs.fixed_cost_per_month)} x months"
    expression = f"{cost} <= {price} x {inputs.calls}{fixed}"
    if not inputs.timeless or fixed:
        return expression
    return f"{expression} = {plain(written(inputs.contribution * inputs.calls))}"


def reason(inputs: BreakEvenInputs, status: str) -> str | None:
    """Why no call recovers anything, or that there is nothing to recover; `None` otherwise."""
    contribution, currency = inputs.contribution, inputs.currency
    if contribution < 0 and not inputs.prices_change:
        loss = f"Each call loses {plain(written(-contribution))} {currency}"
        if inputs.training_cost == 0:
            return f"{loss}: no volume is profitable, although 0 <= price x calls always holds."
        return f"{loss}: every further call adds to what must be recovered."
    fixed = inputs.fixed_cost_per_call
    if inputs.timeless and fixed and status == "never" and contribution > 0:
        month = plain(inputs.fixed_cost_per_month)
        return f"What the calls of a month contribute does not exceed its fixed cost, {month}."
    if inputs.to_recover == 0 and status == "ok":
        return (
            "There is no training cost to recover, as for a third party that hosts an open model: "
            "what counts is that the price covers the serving cost."
        )
    if contribution == 0 and status == "never" and not inputs.prices_change:
        return "The contribution per call is 0, so no number of calls recovers the training cost."
    return None


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
