"""What a stream of money is worth today, and the interest that it earns.

NPV = -cost + sum of flow_t v^t over the horizon; IRR the one monthly rate at which it is 0. Where
the flows change sign more than once several rates do that, so none is given (Brealey, Myers and
Allen, *Principles of Corporate Finance*, chapter 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from advisor.core.economics.cash_flow import CashFlow
from advisor.core.economics.figures import WORKING, working

_HALVINGS = 200
_TWO = Decimal(2)


def net_present_value(flow: CashFlow, cost: Fraction, months: int) -> Decimal:
    """Worth today of spending `cost` now and taking the first `months` of `flow`."""
    total = -working(cost)
    for each in flow.flows(months):
        total = WORKING.add(total, each)
    return total


def monthly_irr(flow: CashFlow, cost: Fraction, months: int) -> Decimal | str:
    """The monthly rate at which `cost` and `months` of `flow` are worth nothing together, or the
    sentence that says why there is none."""
    undiscounted = replace(flow, annual_discount_rate=Fraction(0))
    flows = [-working(cost), *undiscounted.flows(months)]
    signs = [each > 0 for each in flows if each]
    changes = sum(1 for one, other in pairwise(signs) if one != other)
    if changes == 0:
        return "All flows have the same sign, so no rate makes them worth nothing."
    if changes > 1:
        return "The flows change sign more than once, so several rates would do."
    rising = flows if signs[-1] else [-each for each in flows]
    high = Decimal(1)
    while _polynomial(rising, high) < 0:
        high = WORKING.multiply(high, _TWO)
    while _polynomial(rising, low := WORKING.divide(high, _TWO)) >= 0:
        high = low
    for _ in range(_HALVINGS):
        middle = WORKING.divide(WORKING.add(low, high), _TWO)
        low, high = (low, middle) if _polynomial(rising, middle) >= 0 else (middle, high)
    return WORKING.subtract(WORKING.divide(Decimal(1), high), Decimal(1))


def _polynomial(flows: Sequence[Decimal], factor: Decimal) -> Decimal:
    """sum of flow_t factor^t, by Horner: it has one positive root where signs change once."""
    total = Decimal(0)
    for flow in reversed(flows):
        total = WORKING.add(WORKING.multiply(total, factor), flow)
    return total
