"""Exact figures: how they are computed, rounded, checked and written.

Sums and products of decimals are exact. A quotient that does not terminate is rounded once, to
`SIGNIFICANT_DIGITS` significant digits; nothing is rounded before it is compared. What only roots,
powers or logarithms give is computed in `WORKING`.

A type says what a figure is: `Decimal` is money, `Fraction` any other exact number, `int` a count,
`float` what was measured or follows from that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, Inexact
from fractions import Fraction
from typing import Any

from advisor.core.errors import FieldError, InvalidInput

SIGNIFICANT_DIGITS = 28
LARGEST_FIGURE = 10**30
"""Inputs above this are refused: nothing sold or spent comes near it, and exact sums stay short."""
MOST_DECIMALS = 60
"""Of an amount in a request, so that one that was answered, of 28 digits, may be asked with."""
FINEST_DECIMALS = 100
"""Of any number in a request."""
LARGEST_JSON_INTEGER = 2**53
"""Above this an integer read as a double loses units, so it is written as a string."""

# The longest sum of products of such figures needs fewer than 400 digits.
_EXACT = Context(prec=600, traps=[Inexact])

WORKING = Context(prec=60 + FINEST_DECIMALS, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
"""For powers and logarithms: 60 digits are left of what the finest rate adds to 1. Growth over
centuries neither overflows nor is it NaN."""


def quotient(value: Fraction, rounding: str = ROUND_HALF_EVEN) -> Decimal:
    """`value` as a decimal, rounded once to 28 significant digits when it does not terminate."""
    context = Context(prec=SIGNIFICANT_DIGITS, rounding=rounding)
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def working(value: Fraction) -> Decimal:
    """`value` to all digits of `WORKING`, to compute powers with."""
    return WORKING.divide(Decimal(value.numerator), Decimal(value.denominator))


def exact(value: Fraction) -> Decimal:
    """`value` as a decimal without rounding; raises `decimal.Inexact` if it does not terminate."""
    return _EXACT.divide(Decimal(value.numerator), Decimal(value.denominator))


def written(value: Fraction) -> Decimal:
    """`value` without rounding where it terminates, else rounded to 28 significant digits."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return exact(value) if rest == 1 else quotient(value)


def plain(value: Decimal) -> str:
    """A decimal without exponent, trailing zeros or negative zero: `1E+3` is `1000`."""
    return format(value.normalize(_EXACT), "f") if value else "0"


def json_integer(value: int) -> int | str:
    """An integer as JSON carries it safely: a decimal string above 2^53."""
    return value if abs(value) <= LARGEST_JSON_INTEGER else str(value)


def quantity(value: Fraction) -> int | str | float:
    """A number that is not money as JSON carries it: whole ones exactly, others as doubles."""
    return json_integer(value.numerator) if value.denominator == 1 else float(value)


def as_json(value: Any) -> Any:
    """A figure, or a dataclass, mapping or tuple of figures, as JSON carries it."""
    match value:
        case Decimal():
            return plain(value)
        case Fraction():
            return quantity(value)
        case int() if not isinstance(value, bool):
            return json_integer(value)
        case Mapping():
            return {key: as_json(inner) for key, inner in value.items()}
        case tuple() | list():
            return [as_json(inner) for inner in value]
    if is_dataclass(value):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    return value


@dataclass(frozen=True)
class Range:
    """The values a number may have, and what a value just outside of them is likely to be."""

    least: Fraction
    most: Fraction
    hint: str = ""
    decimals: int = FINEST_DECIMALS

    def holds(self, value: Decimal | Fraction | int) -> bool:
        """Whether a value is one of them."""
        return self.least <= value <= self.most

    @property
    def allowed(self) -> dict[str, float]:
        """The bounds as errors and JSON Schema name them."""
        return {"minimum": _bound(self.least), "maximum": _bound(self.most)}


def _bound(value: Fraction) -> float:
    return value.numerator if value.denominator == 1 else float(value)


_PERCENT = "A share is expected: 60 % is written 0.6."
SHARE = Range(Fraction(0), Fraction(1), _PERCENT)
POSITIVE_SHARE = Range(Fraction(1, 10**6), Fraction(1), _PERCENT)
AMOUNT = Range(Fraction(0), Fraction(LARGEST_FIGURE))
DERIVED = Range(Fraction(0), Fraction(LARGEST_FIGURE**2), decimals=3 * FINEST_DECIMALS)
"""An amount that was computed from others, each of them an `AMOUNT`: nobody gave it, so it is not
refused where they are not."""
POSITIVE = Range(Fraction(1, 10**12), Fraction(LARGEST_FIGURE))
RATE = Range(Fraction(-99, 100), Fraction(100), "10 % is written 0.1.")
"""Growth, decline and interest: nothing shrinks to nothing, and nothing grows a hundredfold."""


def refuse_outside(inputs: Any, **ranges: Range) -> None:
    """Check fields of a dataclass, each by its range; None passes. InvalidInput names all faults.

    Its `currency`, where it has one, has to be an ISO 4217 code.
    """
    errors: list[FieldError] = []
    for name, allowed in ranges.items():
        value = getattr(inputs, name)
        errors += [] if value is None else range_errors(f"/{name}", value, allowed)
    currency = getattr(inputs, "currency", "USD")
    if not re.fullmatch("[A-Z]{3}", currency):
        detail = "Must be an ISO 4217 code such as USD."
        errors.append(FieldError("/currency", detail, given=currency))
    if errors:
        raise InvalidInput(*errors)


def range_errors(pointer: str, value: Decimal | Fraction | int, allowed: Range) -> list[FieldError]:
    """What is wrong with a number: it must be finite, within range and not too fine."""
    if isinstance(value, Decimal):
        if not value.is_finite():
            return [FieldError(pointer, "Must be a finite number.", given=str(value))]
        if int(value.as_tuple().exponent) < -allowed.decimals:
            detail = f"Has more than {allowed.decimals} decimal places."
            return [FieldError(pointer, detail, given=str(value))]
    if allowed.holds(value):
        return []
    given = str(value) if isinstance(value, Decimal | int) else float(value)
    detail = " ".join(filter(None, ("The number is out of bounds.", allowed.hint)))
    return [FieldError(pointer, detail, given=given, allowed=allowed.allowed)]


def count_errors(pointer: str, value: int) -> list[FieldError]:
    """What is wrong with a count: it must be a whole number from 0 to 1e30."""
    if isinstance(value, bool) or not isinstance(value, int):
        return [FieldError(pointer, "Must be a whole number.", given=str(value))]
    if not 0 <= value <= LARGEST_FIGURE:
        return [FieldError(pointer, "Is out of range.", allowed="0 to 1e30")]
    return []
