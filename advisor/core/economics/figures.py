"""Exact money: how figures are computed, rounded and written.

Sums and products of decimals are exact. A quotient that does not terminate is rounded once, to
`SIGNIFICANT_DIGITS` significant digits; nothing is rounded before it is compared.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal, Inexact
from fractions import Fraction

from advisor.core.errors import FieldError

SIGNIFICANT_DIGITS = 28
LARGEST_FIGURE = 10**30
"""Inputs above this are refused: nothing sold or spent comes near it, and exact sums stay short."""
MOST_DECIMALS = 30
LARGEST_JSON_INTEGER = 2**53
"""Above this an integer read as a double loses units, so it is written as a string."""

# The longest sum of products of such figures needs fewer than 200 digits.
_EXACT = Context(prec=400, traps=[Inexact])


def quotient(value: Fraction, rounding: str = ROUND_HALF_EVEN) -> Decimal:
    """`value` as a decimal, rounded once to 28 significant digits when it does not terminate."""
    context = Context(prec=SIGNIFICANT_DIGITS, rounding=rounding)
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def exact(value: Fraction) -> Decimal:
    """`value` as a decimal without rounding; raises `decimal.Inexact` if it does not terminate."""
    return _EXACT.divide(Decimal(value.numerator), Decimal(value.denominator))


def plain(value: Decimal) -> str:
    """A decimal without exponent, trailing zeros or negative zero: `1E+3` is `1000`."""
    return format(value.normalize(_EXACT), "f") if value else "0"


def json_integer(value: int) -> int | str:
    """An integer as JSON carries it safely: a decimal string above 2^53."""
    return value if abs(value) <= LARGEST_JSON_INTEGER else str(value)


def amount_errors(pointer: str, value: Decimal) -> list[FieldError]:
    """What is wrong with an amount of money: it must be finite, not negative and within range."""
    if not value.is_finite():
        return [FieldError(pointer, "Must be a finite number.", given=str(value))]
    if value < 0:
        return [FieldError(pointer, "Must not be negative.", given=str(value), allowed=">= 0")]
    if value > LARGEST_FIGURE:
        return [FieldError(pointer, "Is too large.", given=str(value), allowed="<= 1e30")]
    if int(value.as_tuple().exponent) < -MOST_DECIMALS:
        detail = f"Has more than {MOST_DECIMALS} decimal places."
        return [FieldError(pointer, detail, given=str(value))]
    return []


def count_errors(pointer: str, value: int) -> list[FieldError]:
    """What is wrong with a count: it must be a whole number from 0 to 1e30."""
    if isinstance(value, bool) or not isinstance(value, int):
        return [FieldError(pointer, "Must be a whole number.", given=str(value))]
    if not 0 <= value <= LARGEST_FIGURE:
        return [FieldError(pointer, "Is out of range.", allowed="0 to 1e30")]
    return []
