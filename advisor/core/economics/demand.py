"""Demand over time: how many calls are sold by when, at a rate that grows or shrinks.

A month is whatever period the caller's rate is per; nothing here depends on its length. Month 1
sells the first month's calls n, month t sells n (1 + g)^(t - 1), so k months sell
n ((1 + g)^k - 1) / g, which is also used for a part of a month.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from advisor.core.economics.figures import WORKING, working


def calls_sold(first_month: Fraction, growth: Fraction, months: Decimal) -> Decimal:
    """Calls sold in `months`, whole or not."""
    rate = working(first_month)
    if not growth:
        return WORKING.multiply(rate, months)
    grown = WORKING.power(working(1 + growth), months)
    return WORKING.divide(WORKING.multiply(rate, WORKING.subtract(grown, Decimal(1))),
                          working(growth))  # fmt: skip


def calls_ever_sold(first_month: Fraction, growth: Fraction) -> Fraction | None:
    """The bound n / -g that shrinking demand never reaches; `None` where demand has no bound."""
    return first_month / -growth if growth < 0 else None
