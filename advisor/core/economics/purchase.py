"""Ways to buy an accelerator-hour: on demand, reserved, on spot with on-demand as fallback."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from advisor.core.economics.figures import AMOUNT, SHARE, Range, quotient, refuse_outside

KINDS = ("on_demand", "spot", "reserved_1y", "reserved_3y", "managed_endpoint")
"""Ways in which price lists offer an accelerator-hour."""
OVER = Range(Fraction(1), Fraction(10), "25 % more capacity than needed is written 1.25.")
LOST = Range(Fraction(0), Fraction(99, 100), "A share is expected: 10 % is written 0.1.")


@dataclass(frozen=True)
class Spot:
    """Spot capacity: `fallback_share` of the hours run on demand instead, `over_provision` times
    what is needed is kept on spot, `lost_work_share` of the work is lost to interruptions."""

    price_per_hour: Decimal
    fallback_share: Fraction = Fraction(0)
    over_provision: Fraction = Fraction(1)
    lost_work_share: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        refuse_outside(
            self, price_per_hour=AMOUNT, fallback_share=SHARE, over_provision=OVER,
            lost_work_share=LOST,
        )  # fmt: skip

    def effective_per_hour(self, on_demand: Decimal) -> Decimal:
        """((1 - fallback) spot x over-provision + fallback x on-demand) / (1 - lost work), the
        price of an hour of useful work."""
        spot = (1 - self.fallback_share) * Fraction(self.price_per_hour) * self.over_provision
        fallback = self.fallback_share * Fraction(on_demand)
        return quotient((spot + fallback) / (1 - self.lost_work_share))

    def saving(self, on_demand: Decimal) -> float | None:
        """Share of the on-demand price that is saved; negative where spot costs more."""
        if not on_demand:
            return None
        effective = Fraction(self.effective_per_hour(on_demand))
        return float(1 - effective / Fraction(on_demand))


def reserved_pays_from(reserved: Decimal, on_demand: Decimal) -> Fraction | None:
    """Share of the hours from which a reservation, paid busy or idle, is cheaper than on-demand
    hours; `None` where it never is."""
    if not on_demand or reserved >= on_demand:
        return None
    return Fraction(reserved) / Fraction(on_demand)
