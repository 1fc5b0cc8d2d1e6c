"""Provider break-even: is a model worth training for the calls it can sell?

The founding condition (Chip Huyen, *AI Engineering*, 2025, chapter 9, a footnote that credits Mark
Saroufim) is T <= p N: the training cost T is worth it when the price p times the calls N that can
be sold covers it; equality counts. It says nothing of what a call costs to serve. With a serving
cost c per call the contribution p - c takes the place of p. A third party that hosts an open model
has no training cost to recover, so for it only the contribution counts.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import Any

from advisor.core.economics.figures import (
    amount_errors,
    count_errors,
    exact,
    json_integer,
    plain,
    quotient,
)
from advisor.core.errors import FieldError, InvalidInput

_AMOUNTS = ("training_cost", "price_per_call", "serving_cost_per_call")
_NOT_INCLUDED = (
    "the time value of money: a later payment counts as much as an early one",
    "changes of price, cost or demand over time",
    "fixed cost per month (staff, idle capacity, licences)",
    "calls given away free, payment and reseller fees, taxes",
)
_NO_SERVING_COST = "the serving cost per call, which is not given"


@dataclass(frozen=True)
class BreakEvenInputs:
    """Money in one `currency` (ISO 4217); `calls` is the number expected to be sold in all.

    Without `serving_cost_per_call` the condition stays T <= p N, which is not the same as a serving
    cost of 0: margins are then unknown. Raises `InvalidInput` for figures that are negative, not
    finite, above 1e30 or finer than 30 decimal places.
    """

    training_cost: Decimal
    price_per_call: Decimal
    serving_cost_per_call: Decimal | None = None
    calls: int | None = None
    currency: str = "USD"

    def __post_init__(self) -> None:
        errors: list[FieldError] = []
        for name in _AMOUNTS:
            if (amount := getattr(self, name)) is not None:
                errors += amount_errors(f"/{name}", amount)
        if self.calls is not None:
            errors += count_errors("/calls", self.calls)
        if not re.fullmatch("[A-Z]{3}", self.currency):
            detail = "Must be an ISO 4217 code such as USD."
            errors.append(FieldError("/currency", detail, given=self.currency))
        if errors:
            raise InvalidInput(*errors)

    @property
    def contribution(self) -> Fraction:
        """What a call brings in above its serving cost: p - c, or p when no c is given."""
        return Fraction(self.price_per_call) - Fraction(self.serving_cost_per_call or 0)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, with every default filled in."""
        return {name: _json(getattr(self, name)) for name in (*_AMOUNTS, "calls", "currency")}


@dataclass(frozen=True)
class Condition:
    """The sum T <= (p - c) N with its figures; `holds` is `None` while N is not given."""

    expression: str
    holds: bool | None


@dataclass(frozen=True)
class BreakEven:
    """The answer; money in `currency`.

    Exact: `break_even_calls*` (the least whole number that covers the training cost),
    `contribution_per_call`, `profit`. Rounded to 28 significant digits where they do not terminate:
    `gross_margin` (over revenue) and `markup_on_cost` (over serving cost) to the nearest,
    `price_needed` upwards, so that the stated price does cover the cost. A figure that is `None`
    has its reason in `null_reasons`, or in `reason` when `status` is `never`.
    """

    status: str
    reason: str | None
    condition: Condition
    break_even_calls: int | None
    break_even_calls_without_serving_cost: int | None
    contribution_per_call: Decimal
    gross_margin: Decimal | None
    markup_on_cost: Decimal | None
    profit: Decimal | None
    price_needed: Decimal | None
    training_cost_applies: bool
    currency: str
    null_reasons: dict[str, str]
    not_included: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: money and ratios as plain decimal strings, integers above 2^53 as strings."""
        condition = {"expression": self.condition.expression, "holds": self.condition.holds}
        return {name: _json(value) for name, value in vars(self).items()} | {"condition": condition}


def break_even(inputs: BreakEvenInputs) -> BreakEven:
    """How many calls recover the training cost, and what each brings in.

    `status` is `never` when no number of calls does: the contribution per call is negative, or it
    is 0 and there is a training cost. Otherwise `ok`.
    """
    calls_needed = _calls_to_cover(inputs.training_cost, inputs.contribution)
    figures = {
        "gross_margin": _margin(inputs, "price_per_call"),
        "markup_on_cost": _margin(inputs, "serving_cost_per_call"),
        "profit": _profit(inputs),
        "price_needed": _price_needed(inputs),
    }
    by_price_alone = _calls_to_cover(inputs.training_cost, Fraction(inputs.price_per_call))
    null_reasons = {name: value for name, value in figures.items() if isinstance(value, str)}
    if by_price_alone is None:
        null_reasons["break_even_calls_without_serving_cost"] = "price_per_call is 0"
    return BreakEven(
        status="never" if calls_needed is None else "ok",
        reason=_reason(inputs),
        condition=_condition(inputs),
        break_even_calls=calls_needed,
        break_even_calls_without_serving_cost=by_price_alone,
        contribution_per_call=exact(inputs.contribution),
        training_cost_applies=inputs.training_cost > 0,
        currency=inputs.currency,
        null_reasons=null_reasons,
        not_included=_not_included(inputs),
        **{name: None if isinstance(value, str) else value for name, value in figures.items()},
    )


def _calls_to_cover(training_cost: Decimal, contribution: Fraction) -> int | None:
    """N* = ceil(T / (p - c)), the least N with (p - c) N >= T; `None` when there is none."""
    if contribution > 0:
        return math.ceil(Fraction(training_cost) / contribution)
    return 0 if contribution == 0 and training_cost == 0 else None


# A figure below is a decimal or, where it has no value, the sentence that says why.


def _margin(inputs: BreakEvenInputs, base_field: str) -> Decimal | str:
    """(p - c) / p over revenue, or (p - c) / c over cost; with no call sold both are 0 / 0."""
    base = getattr(inputs, base_field)
    if inputs.serving_cost_per_call is None:
        return "serving_cost_per_call is not given"
    if inputs.calls == 0:
        return "calls is 0"
    if base == 0:
        return f"{base_field} is 0"
    return quotient(inputs.contribution / Fraction(base))


def _profit(inputs: BreakEvenInputs) -> Decimal | str:
    """(p - c) N - T."""
    if inputs.calls is None:
        return "calls is not given"
    return exact(inputs.contribution * inputs.calls - Fraction(inputs.training_cost))


def _price_needed(inputs: BreakEvenInputs) -> Decimal | str:
    """p* = T / N + c, the price at which N calls just cover the training cost."""
    if not inputs.calls:
        return "calls is not given" if inputs.calls is None else "calls is 0"
    serving_cost = Fraction(inputs.serving_cost_per_call or 0)
    return quotient(Fraction(inputs.training_cost) / inputs.calls + serving_cost, ROUND_CEILING)


def _condition(inputs: BreakEvenInputs) -> Condition:
    """T <= p N, or T <= (p - c) N, with the figures in place."""
    price = plain(inputs.price_per_call)
    if inputs.serving_cost_per_call is not None:
        price = f"({price} - {plain(inputs.serving_cost_per_call)})"
    left = f"{plain(inputs.training_cost)} <= {price} x "
    if inputs.calls is None:
        return Condition(f"{left}calls", None)
    recovered = inputs.contribution * inputs.calls
    expression = f"{left}{inputs.calls} = {plain(exact(recovered))}"
    return Condition(expression, Fraction(inputs.training_cost) <= recovered)


def _reason(inputs: BreakEvenInputs) -> str | None:
    """Why the answer is `never`, or that there is nothing to recover."""
    contribution, currency = inputs.contribution, inputs.currency
    if contribution < 0:
        loss = f"Each call loses {plain(exact(-contribution))} {currency}"
        if inputs.training_cost == 0:
            return f"{loss}: no volume is profitable, although 0 <= price x calls always holds."
        return f"{loss}: every further call adds to what must be recovered."
    if inputs.training_cost == 0:
        return (
            "There is no training cost to recover, as for a third party that hosts an open model: "
            "what counts is that the price covers the serving cost."
        )
    if contribution == 0:
        return "The contribution per call is 0, so no number of calls recovers the training cost."
    return None


def _not_included(inputs: BreakEvenInputs) -> tuple[str, ...]:
    """What the sum leaves out."""
    unknown_cost = inputs.serving_cost_per_call is None
    return (_NO_SERVING_COST, *_NOT_INCLUDED) if unknown_cost else _NOT_INCLUDED


def _json(value: Any) -> Any:
    """A figure as JSON carries it without loss."""
    if isinstance(value, Decimal):
        return plain(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return json_integer(value)
    return list(value) if isinstance(value, tuple) else value
