"""Break-even in time: when what was spent is recovered, and what it is then worth."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from advisor.core.economics.break_even_inputs import BreakEvenInputs
from advisor.core.economics.cash_flow import LONGEST_HORIZON_MONTHS, CashFlow, Recovery
from advisor.core.economics.demand import calls_ever_sold, calls_sold
from advisor.core.economics.figures import quotient
from advisor.core.economics.present_value import monthly_irr, net_present_value

_NO_RATE = "calls_per_month is not given"


@dataclass(frozen=True)
class Payback:
    """When the cost is recovered, present values counted, and what a horizon brings.

    A figure that is a sentence is missing, for the reason it gives.
    """

    status: str
    reason: str | None
    months: float | str
    whole_months: int | str
    months_undiscounted: float | str
    calls_sold: int | str
    npv: Decimal | str
    monthly_irr: float | str


def payback(inputs: BreakEvenInputs) -> Payback:
    """The answer in time to what break-even asks in calls."""
    flow = inputs.cash_flow()
    if flow is None:
        return Payback("ok", None, *(_NO_RATE,) * 6)
    found = flow.payback(inputs.to_recover, inputs.horizon_months)
    undiscounted = replace(flow, annual_discount_rate=Fraction(0))
    plain = undiscounted.payback(inputs.to_recover, inputs.horizon_months)
    reason = _reason(inputs, found, plain)
    missing = reason or ""
    npv, irr = _worth(inputs, flow)
    return Payback(
        status=found.status,
        reason=reason,
        months=missing if found.months is None else float(found.months),
        whole_months=missing if found.whole_months is None else found.whole_months,
        months_undiscounted=(
            _REASONS[plain.status] if plain.months is None else float(plain.months)
        ),
        calls_sold=_calls_by(inputs, plain),
        npv=npv,
        monthly_irr=irr,
    )


_REASONS = {
    "never": "The present value of what is recovered never reaches what was spent.",
    "not_within_horizon": "It is recovered after the horizon.",
}


def _calls_by(inputs: BreakEvenInputs, found: Recovery) -> int | str:
    """Calls sold when the cost is recovered, undiscounted."""
    if found.months is None or inputs.calls_per_month is None:
        return _REASONS[found.status]
    return math.ceil(calls_sold(inputs.calls_per_month, inputs.monthly_growth, found.months))


def _worth(inputs: BreakEvenInputs, flow: CashFlow) -> tuple[Decimal | str, float | str]:
    """Net present value and internal rate of return over the horizon."""
    if inputs.horizon_months is None:
        return ("horizon_months is not given",) * 2
    npv = net_present_value(flow, inputs.to_recover, inputs.horizon_months)
    irr = monthly_irr(flow, inputs.to_recover, inputs.horizon_months)
    return quotient(Fraction(npv)), irr if isinstance(irr, str) else float(irr)


def _reason(inputs: BreakEvenInputs, found: Recovery, undiscounted: Recovery) -> str | None:
    """Why there is no payback."""
    if found.status == "ok":
        return None
    if found.status == "not_within_horizon":
        months = inputs.horizon_months or LONGEST_HORIZON_MONTHS
        return f"It is recovered later than after {months} months."
    if undiscounted.months is not None:
        return (
            "The present value of the whole stream is below what was spent, although without "
            f"discounting {float(undiscounted.months):.4g} months would do."
        )
    if inputs.contribution > 0 and not inputs.prices_change:
        bound = calls_ever_sold(inputs.calls_per_month or Fraction(0), inputs.monthly_growth)
        if bound is not None and not inputs.fixed_cost_per_month:
            return f"Shrinking demand never sells more than {float(bound):.6g} calls."
    return _REASONS["never"]
