"""What an owned accelerator costs an hour, busy or idle, and when renting one is dearer.

Capital per year: (capex - residual (1 + w)^-n) x w / (1 - (1 + w)^-n), the capital recovery
factor, for a cost of capital w over n years; without one (capex - residual) / n. Power per hour:
kilowatts x price, where kW = (TDP x load + host) x PUE / 1000 unless they are given. A year has
8,760 h.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from advisor.core.economics.figures import (
    AMOUNT,
    SHARE,
    WORKING,
    Range,
    plain,
    quotient,
    refuse_outside,
    working,
)
from advisor.core.errors import FieldError, InvalidInput

HOURS_PER_YEAR = 8760
LIFE = Range(Fraction(1, 10), Fraction(50))
PUE = Range(Fraction(1), Fraction(10), "The building draws at least what the hardware does.")
INTEREST = Range(Fraction(0), Fraction(10), "10 % is written 0.1.")
POWER = Range(Fraction(0), Fraction(10**6))
_FROM_TDP = ("load", "pue", "host_overhead_w")


@dataclass(frozen=True)
class OwnershipInputs:
    """Money of one currency; power as `power_kw`, all in, or from `tdp_w`, `load` and `pue`."""

    capex: Decimal
    life_years: Fraction
    price_per_kwh: Decimal
    residual_share: Fraction = Fraction(0)
    cost_of_capital: Fraction = Fraction(0)
    power_kw: Fraction | None = None
    tdp_w: Fraction | None = None
    load: Fraction | None = None
    pue: Fraction | None = None
    host_overhead_w: Fraction | None = None
    other_cost_per_year: Decimal = Decimal(0)
    rent_per_hour: Decimal | None = None
    currency: str = "USD"

    def __post_init__(self) -> None:
        refuse_outside(
            self, capex=AMOUNT, life_years=LIFE, price_per_kwh=AMOUNT, residual_share=SHARE,
            cost_of_capital=INTEREST,
            power_kw=POWER, tdp_w=POWER, load=SHARE, pue=PUE, host_overhead_w=POWER,
            other_cost_per_year=AMOUNT, rent_per_hour=AMOUNT,
        )  # fmt: skip
        if (self.power_kw is None) == (self.tdp_w is None):
            detail = "The power is power_kw, or tdp_w with load and pue: one of the two."
            raise InvalidInput(FieldError("/power_kw", detail))
        needed = ("load", "pue") if self.tdp_w is not None else ()
        errors = [
            FieldError(f"/{name}", "This belongs to tdp_w.")
            for name in _FROM_TDP
            if self.tdp_w is None and getattr(self, name) is not None
        ]
        errors += [
            FieldError(f"/{name}", "tdp_w alone does not say what is drawn.")
            for name in needed
            if getattr(self, name) is None
        ]
        if errors:
            raise InvalidInput(*errors)

    @property
    def drawn_kw(self) -> Fraction:
        """Power drawn, cooling and host in."""
        if self.power_kw is not None:
            return self.power_kw
        assert self.tdp_w is not None
        assert self.load is not None
        assert self.pue is not None
        return (self.tdp_w * self.load + (self.host_overhead_w or 0)) * self.pue / 1000


@dataclass(frozen=True)
class Ownership:
    """Money of an hour in all, `by_part` (`capital`, `power`, `other`) and with capital written off
    in a straight line; `break_even_busy_share` is the share of the hours in which a rented one
    would run from which owning is cheaper."""

    status: str
    reason: str | None
    per_hour: Decimal
    by_part: dict[str, Decimal]
    per_hour_straight_line: Decimal
    per_year: Decimal
    power_kw: float
    power_share: float | None
    break_even_busy_share: float | None
    currency: str


def ownership(inputs: OwnershipInputs) -> Ownership:
    """What an hour costs. `status` is `never` when owning is dearer than renting every hour."""
    power = inputs.drawn_kw * Fraction(inputs.price_per_kwh)
    other = Fraction(inputs.other_cost_per_year) / HOURS_PER_YEAR
    capital = _capital_per_year(inputs) / HOURS_PER_YEAR
    total = capital + power + other
    straight = _straight_line(inputs) / HOURS_PER_YEAR + power + other
    rent = inputs.rent_per_hour
    never = rent is not None and total >= rent
    return Ownership(
        status="never" if never else "ok",
        reason=_never(inputs, total) if never else None,
        per_hour=quotient(total),
        by_part={
            "capital": quotient(capital), "power": quotient(power), "other": quotient(other),
        },
        per_hour_straight_line=quotient(straight),
        per_year=quotient(total * HOURS_PER_YEAR),
        power_kw=float(inputs.drawn_kw),
        power_share=float(power / total) if total else None,
        break_even_busy_share=None if rent is None or never else float(total / Fraction(rent)),
        currency=inputs.currency,
    )  # fmt: skip


def _straight_line(inputs: OwnershipInputs) -> Fraction:
    """(capex - residual) / n."""
    return Fraction(inputs.capex) * (1 - inputs.residual_share) / inputs.life_years


def _capital_per_year(inputs: OwnershipInputs) -> Fraction:
    """The annuity that pays for the hardware, its residual value discounted."""
    if not inputs.cost_of_capital:
        return _straight_line(inputs)
    rate = working(inputs.cost_of_capital)
    left = WORKING.power(WORKING.add(Decimal(1), rate), -working(inputs.life_years))
    factor = WORKING.divide(rate, WORKING.subtract(Decimal(1), left))
    written_off = 1 - inputs.residual_share * Fraction(left)
    return Fraction(inputs.capex) * written_off * Fraction(factor)


def _never(inputs: OwnershipInputs, total: Fraction) -> str:
    assert inputs.rent_per_hour is not None
    own, rent = plain(quotient(total)), plain(inputs.rent_per_hour)
    return f"Owning costs {own} {inputs.currency} an hour, renting every hour {rent}."
