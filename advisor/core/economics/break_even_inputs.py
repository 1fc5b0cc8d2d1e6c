"""What break-even is asked with: money of one currency, and how calls come and prices change."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

from advisor.core.economics.cash_flow import LONGEST_HORIZON_MONTHS, CashFlow
from advisor.core.economics.figures import (
    DERIVED,
    POSITIVE,
    RATE,
    Range,
    as_json,
    count_errors,
    refuse_outside,
)
from advisor.core.errors import FieldError, InvalidInput

DECLINE = Range(
    Fraction(-1), Fraction(99, 100), "A decline of 10 % is written 0.1, a rise of 10 % -0.1."
)
PART = Range(Fraction(0), Fraction(99, 100), "A share is expected: 30 % is written 0.3.")
"""Of calls given away or of revenue that fees take: of all, there would be nothing to sell."""
HORIZON = Range(Fraction(1), Fraction(LONGEST_HORIZON_MONTHS))
_NEED_A_RATE = (
    "fixed_cost_per_month", "monthly_growth", "price_decline_per_month", "cost_decline_per_month",
    "annual_discount_rate", "horizon_months",
)  # fmt: skip
RANGES = {
    "training_cost": DERIVED,
    "one_off_cost": DERIVED,
    "price_per_call": DERIVED,
    "serving_cost_per_call": DERIVED,
    "fixed_cost_per_month": DERIVED,
    "calls_per_month": POSITIVE,
    "free_share": PART,
    "fee_share": PART,
    "monthly_growth": RATE,
    "price_decline_per_month": DECLINE,
    "cost_decline_per_month": DECLINE,
    "annual_discount_rate": RATE,
    "horizon_months": HORIZON,
    "price_elasticity": Range(Fraction(1, 100), Fraction(100)),
}


@dataclass(frozen=True)
class BreakEvenInputs:
    """Money in one `currency` (ISO 4217); `calls` is the number expected to be sold in all.

    Without `serving_cost_per_call` the condition stays T <= p N, which is not the same as a serving
    cost of 0: margins are then unknown. `one_off_cost` is spent at the start beside training, as
    for an optimization. `free_share` of the calls bring nothing, `fee_share` of the revenue goes to
    payment services and resellers. `calls_per_month` is the first month's; what changes over time
    changes from it by the month. `price_elasticity` is of `calls` at this price. Raises
    InvalidInput for figures that are out of bounds or too fine, for what changes over time without
    a rate of calls, and for a serving cost that declines and is not given.
    """

    training_cost: Decimal
    price_per_call: Decimal
    serving_cost_per_call: Decimal | None = None
    calls: int | None = None
    calls_per_month: Fraction | None = None
    fixed_cost_per_month: Decimal = Decimal(0)
    one_off_cost: Decimal = Decimal(0)
    free_share: Fraction = Fraction(0)
    fee_share: Fraction = Fraction(0)
    monthly_growth: Fraction = Fraction(0)
    price_decline_per_month: Fraction = Fraction(0)
    cost_decline_per_month: Fraction = Fraction(0)
    annual_discount_rate: Fraction = Fraction(0)
    horizon_months: int | None = None
    price_elasticity: Fraction | None = None
    currency: str = "USD"

    def __post_init__(self) -> None:
        refuse_outside(self, **RANGES)
        if self.price_elasticity is not None:
            needed = ("calls", "price_per_call", "serving_cost_per_call")
            detail = "The best price depends on this: it has to be given, above 0."
            missing = [name for name in needed if not getattr(self, name)]
            if missing:
                raise InvalidInput(*(FieldError(f"/{name}", detail) for name in missing))
        if self.calls is not None and (errors := count_errors("/calls", self.calls)):
            raise InvalidInput(*errors)
        asking = [name for name in _NEED_A_RATE if getattr(self, name)]
        if asking and self.calls_per_month is None:
            detail = f"How fast calls are sold is needed for {', '.join(asking)}."
            raise InvalidInput(FieldError("/calls_per_month", detail))
        if self.cost_decline_per_month and self.serving_cost_per_call is None:
            detail = "There is no serving cost that cost_decline_per_month could be of."
            raise InvalidInput(FieldError("/serving_cost_per_call", detail))

    @cached_property
    def kept_share(self) -> Fraction:
        """What is left of the price of a call on average: (1 - f) (1 - r)."""
        return (1 - self.free_share) * (1 - self.fee_share)

    @cached_property
    def revenue_per_call(self) -> Fraction:
        """What a call brings in on average, free ones and fees counted."""
        return Fraction(self.price_per_call) * self.kept_share

    @cached_property
    def serving_cost(self) -> Fraction:
        """c, 0 when it is not given."""
        return Fraction(self.serving_cost_per_call or 0)

    @cached_property
    def contribution(self) -> Fraction:
        """What a call brings in above its serving cost, in the first month."""
        return self.revenue_per_call - self.serving_cost

    @cached_property
    def to_recover(self) -> Fraction:
        """What was spent before the first call: T + W."""
        return Fraction(self.training_cost) + Fraction(self.one_off_cost)

    @property
    def prices_change(self) -> bool:
        """Whether calls sold later bring in or cost something else."""
        falling = self.revenue_per_call * self.price_decline_per_month
        return bool(falling or self.serving_cost * self.cost_decline_per_month)

    @cached_property
    def fixed_cost_per_call(self) -> Fraction | None:
        """F over the calls of a month; `None` where it differs from month to month."""
        if not self.fixed_cost_per_month:
            return Fraction(0)
        if self.monthly_growth or self.calls_per_month is None:
            return None
        return Fraction(self.fixed_cost_per_month) / self.calls_per_month

    @cached_property
    def recovered_per_call(self) -> Fraction | None:
        """p (1 - f) (1 - r) - c - F / m; `None` where it depends on when a call is sold."""
        if self.prices_change or self.fixed_cost_per_call is None:
            return None
        return self.contribution - self.fixed_cost_per_call

    def cash_flow(self) -> CashFlow | None:
        """The months' flows; `None` without a rate of calls."""
        if self.calls_per_month is None:
            return None
        return CashFlow(
            revenue=self.calls_per_month * self.revenue_per_call,
            serving_cost=self.calls_per_month * self.serving_cost,
            fixed_cost=Fraction(self.fixed_cost_per_month),
            growth=self.monthly_growth,
            price_decline=self.price_decline_per_month,
            cost_decline=self.cost_decline_per_month,
            annual_discount_rate=self.annual_discount_rate,
        )

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, with every default filled in."""
        return dict(as_json(self))
