"""Amounts in other currencies: converted at a rate that is given with its date, or refused."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction

from advisor.core.economics.figures import Range, refuse_outside, written
from advisor.core.errors import FieldError, InvalidInput

HIGHEST_RATE = 10**9
_RATE = Range(Fraction(1, HIGHEST_RATE), Fraction(HIGHEST_RATE))


@dataclass(frozen=True)
class ExchangeRate:
    """One unit of `from_currency` is `rate` of `to_currency`, on the day `as_of` (ISO 8601)."""

    from_currency: str
    to_currency: str
    rate: Decimal
    as_of: str

    def __post_init__(self) -> None:
        refuse_outside(self, rate=_RATE)
        errors = [
            FieldError(f"/{name}", "Must be an ISO 4217 code such as USD.", given=code)
            for name in ("from_currency", "to_currency")
            if not re.fullmatch("[A-Z]{3}", code := getattr(self, name))
        ]
        try:
            date.fromisoformat(self.as_of)
        except ValueError:
            detail = "A date is written YYYY-MM-DD."
            errors.append(FieldError("/as_of", detail, given=self.as_of))
        if errors:
            raise InvalidInput(*errors)


def converted(
    amount: Decimal, currency: str, wanted: str, rate: ExchangeRate | None, pointer: str
) -> Decimal:
    """`amount` in the currency wanted. InvalidInput at `pointer`, what brings the amount along,
    where they differ and the rate is not one between them."""
    if currency == wanted:
        return amount
    if rate is None or (rate.from_currency, rate.to_currency) != (currency, wanted):
        detail = (
            f"This is in {currency}, and the answer is asked for in {wanted}: give an "
            f"exchange_rate from {currency} to {wanted} with its date, or ask for {currency}."
        )
        raise InvalidInput(FieldError(pointer, detail, given=currency, allowed=[wanted]))
    return written(Fraction(amount) * Fraction(rate.rate))
