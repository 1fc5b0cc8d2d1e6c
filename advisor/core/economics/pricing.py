"""At which price a provider earns most.

Demand N(p) = k p^-e falls with the price. Profit (p - c) N(p) is highest at p = c e / (e - 1) for
an elasticity e above 1, whatever training cost: that decides whether to offer a model, not at what
price. For e up to 1 profit rises with the price without bound (Varian, *Intermediate
Microeconomics*, on monopoly), so there is no best one.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from advisor.core.economics.figures import LARGEST_FIGURE, WORKING, quotient, working


@dataclass(frozen=True)
class BestPrice:
    """The price of most profit, with the calls and profit at it (training paid); all `None` and
    `status` `unbounded` where there is none."""

    status: str
    reason: str | None
    price_per_call: Decimal | None
    calls: Fraction | None
    profit: Decimal | None


@dataclass(frozen=True)
class Demand:
    """`calls` are sold at `price`, `elasticity` percent fewer at a price one percent higher."""

    price: Fraction
    calls: Fraction
    elasticity: Fraction

    def at(self, price: Fraction) -> Fraction:
        """Calls sold at another price: N (p / p0)^-e, to all digits of `WORKING`."""
        ratio = working(price / self.price)
        return self.calls * Fraction(WORKING.power(ratio, -working(self.elasticity)))


def best_price(
    demand: Demand, serving_cost: Fraction, cost: Fraction, kept_share: Fraction = Fraction(1)
) -> BestPrice:
    """c' e / (e - 1) with c' = c > 0 over the share of the price that is kept; `cost` was spent
    before the first call."""
    if demand.elasticity <= 1:
        reason = "With an elasticity of at most 1 every higher price earns more: there is no best."
        return BestPrice("unbounded", reason, None, None, None)
    price = serving_cost / kept_share * demand.elasticity / (demand.elasticity - 1)
    calls = demand.at(price)
    if calls > LARGEST_FIGURE:
        reason = "At the best price demand would exceed all bounds: no elasticity holds so far."
        return BestPrice("unbounded", reason, None, None, None)
    profit = (price * kept_share - serving_cost) * calls - cost
    return BestPrice("ok", None, quotient(price), calls, quotient(profit))
